package parse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unlimited is the limit of what has none.
const Unlimited = uint64(math.MaxUint64)

// Bound is a limit and what is in use of it.
type Bound struct {
	Limit uint64 // Unlimited = none
	Used  uint64
}

// Limits are those of an association or a QOS, by sacctmgr's name with the resource, such as
// GrpTRES=cpu, MaxTRESPerJob=mem and GrpWall. Memory is in MiB and time in minutes. Where a
// name is missing there is no limit. Grp limits count all jobs, Max and Min limits one job.
type Limits map[string]Bound

// Association is one record of an account, or of a user in an account.
type Association struct {
	Limits
	ID        int
	Account   string
	User      string // empty: the account's own
	UID       uint32 // of User
	Partition string // that it is for; empty = all
	Parent    int    // ID of the account above; 0 = none, or it is the account of the user
}

// QOS is one quality of service. Users and Accounts are what one of them may use of it,
// by uid and by name, for those who do: MaxTRESPerUser and MaxTRESPerAccount.
type QOS struct {
	Limits
	Name            string
	Users, Accounts map[string]Limits
}

// Assignments are what slurmctld counts against.
type Assignments struct {
	Associations []Association
	QOS          []QOS
}

// Associations reads `scontrol -o show assoc_mgr flags=assoc,qos`.
func Associations(output []byte) (Assignments, error) {
	var out Assignments
	begun := false
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "Current Association Manager state":
			begun = true
		case line == "" || line == "Association Records" || line == "QOS Records" || strings.HasPrefix(line, "No ") && !strings.Contains(line, "="):
		case strings.HasPrefix(line, "ClusterName="):
			a, err := association(line)
			if err != nil {
				return Assignments{}, fmt.Errorf("association: %w", err)
			}
			out.Associations = append(out.Associations, a)
		case strings.HasPrefix(line, "QOS="):
			q, err := qos(line)
			if err != nil {
				return Assignments{}, fmt.Errorf("qos: %w", err)
			}
			out.QOS = append(out.QOS, q)
		default:
			return Assignments{}, fmt.Errorf("%w: assoc_mgr: %.80q", ErrFormat, line)
		}
	}
	if !begun {
		return Assignments{}, fmt.Errorf("%w: assoc_mgr says nothing", ErrFormat)
	}
	return out, nil
}

func association(line string) (Association, error) {
	f, err := words(line)
	if err != nil {
		return Association{}, err
	}
	r := reader{fields: f}
	a := Association{Account: r.text("Account"), ID: read(&r, "ID", count), Partition: f["Partition"], Limits: limits(&r)}
	if f["UserName"] != "" {
		who := read(&r, "UserName", numbered)
		a.User, a.UID = who.name, who.number
	}
	if f["ParentAccount"] != "" {
		a.Parent = int(read(&r, "ParentAccount", numbered).number)
	}
	return a, r.err
}

func qos(line string) (QOS, error) {
	head, rest, ok := strings.Cut(line, " Account Limits=")
	accounts, users, ok2 := strings.Cut(rest, " User Limits=")
	if !ok || !ok2 {
		return QOS{}, fmt.Errorf("%w: a QOS without what accounts and users may use of it", ErrFormat)
	}
	f, err := words(head)
	if err != nil {
		return QOS{}, err
	}
	r := reader{fields: f}
	q := QOS{Limits: limits(&r), Name: read(&r, "QOS", numbered).name}
	if r.err == nil {
		q.Accounts, r.err = shares(accounts, "MaxTRESPA", "MaxTRESPerAccount")
	}
	if r.err == nil {
		q.Users, r.err = shares(users, "MaxTRESPU", "MaxTRESPerUser")
	}
	return q, r.err
}

// limits reads the fields that associations and QOS have in common. A field must be
// there, and may be empty; the least of a job is a QOS's alone.
func limits(r *reader) Limits {
	out := Limits{}
	for _, l := range []struct {
		field, name string
		used        bool
	}{
		{"GrpTRES", "GrpTRES", true},
		{"GrpTRESMins", "GrpTRESMins", true},
		{"GrpTRESRunMins", "GrpTRESRunMins", true},
		{"GrpWall", "GrpWall", true},
		{"MaxTRESPJ", "MaxTRESPerJob", false},
		{"MaxTRESPN", "MaxTRESPerNode", false},
		{"MaxTRESMinsPJ", "MaxTRESMinsPerJob", false},
		{"MinTRESPJ", "MinTRESPerJob", false},
		{"MaxWallPJ", "MaxWall", false},
	} {
		text, ok := r.fields[l.field]
		if r.err == nil && !ok && l.field != "MinTRESPJ" {
			r.err = fmt.Errorf("%w: no field %s", ErrFormat, l.field)
		}
		if r.err == nil {
			r.err = out.add(l.field, l.name, text, l.used)
		}
	}
	return out
}

// add reads RESOURCE=BOUND,RESOURCE=BOUND, or BOUND alone where the limit is one of time.
func (l Limits) add(field, name, text string, used bool) error {
	if text == "" {
		return nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value := name, pair
		if !strings.HasSuffix(name, "Wall") {
			var ok bool
			if pair, value, ok = strings.Cut(pair, "="); !ok || pair == "" {
				return badValue(field, text)
			}
			key += "=" + pair
		}
		if _, twice := l[key]; twice {
			return badValue(field, text)
		}
		b, err := bound(field, value, used)
		if err != nil {
			return err
		}
		l[key] = b
	}
	return nil
}

// bound reads LIMIT, or LIMIT(USED); LIMIT may be N and USED may have a fraction.
func bound(field, s string, withUse bool) (Bound, error) {
	b, limit := Bound{Limit: Unlimited}, s
	var err error
	if withUse {
		var used, end string
		var ok, ok2 bool
		limit, used, ok = strings.Cut(s, "(")
		used, end, ok2 = strings.Cut(used, ")")
		whole, fraction, _ := strings.Cut(used, ".")
		if b.Used, err = strconv.ParseUint(whole, 10, 64); err != nil || !ok || !ok2 || end+strings.Trim(fraction, "0123456789") != "" {
			return Bound{}, badValue(field, s)
		}
		if limit == "N" {
			return b, nil
		}
	}
	if b.Limit, err = strconv.ParseUint(limit, 10, 64); err != nil {
		return Bound{}, badValue(field, s)
	}
	return b, nil
}

// words splits a line at its blanks. A repeated key is an error.
func words(line string) (map[string]string, error) {
	out := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, ok := strings.Cut(word, "=")
		if _, twice := out[key]; !ok || twice || key == "" {
			return nil, fmt.Errorf("%w: %.40q in %.60q", ErrFormat, word, line)
		}
		out[key] = value
	}
	return out, nil
}

// shares reads NAME={KEY=VALUE KEY=VALUE} NAME={…} and keeps the limits of one key.
func shares(text, field, name string) (map[string]Limits, error) {
	text = strings.TrimSpace(text)
	out := map[string]Limits{}
	if strings.HasPrefix(text, "No ") {
		return out, nil
	}
	for text != "" {
		whose, rest, ok := strings.Cut(text, "={")
		inner, after, ok2 := strings.Cut(rest, "}")
		if _, twice := out[whose]; !ok || !ok2 || twice || whose == "" || strings.ContainsAny(whose, " =") {
			return nil, badValue(field, text)
		}
		f, err := words(inner)
		if err != nil {
			return nil, err
		}
		list, ok := f[field]
		if !ok {
			return nil, fmt.Errorf("%w: no field %s", ErrFormat, field)
		}
		out[whose] = Limits{}
		if err := out[whose].add(field, name, list, true); err != nil {
			return nil, err
		}
		text = strings.TrimSpace(after)
	}
	return out, nil
}
