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

// Limits are those of an association or a QOS, by trackable resource (cpu, mem in
// MiB, node, billing, …); where a resource is missing there is none. Grp limits count all
// jobs under them, Max and Min limits one job. Minutes are those of a resource.
type Limits struct {
	Grp, GrpMinutes, GrpRunMinutes      map[string]Bound
	MaxJob, MaxNode, MaxMinutes, MinJob map[string]uint64
	GrpWall                             Bound  // in minutes
	MaxWall                             uint64 // in minutes; Unlimited = none
}

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
// by uid and by name, for those who do.
type QOS struct {
	Limits
	Name            string
	Users, Accounts map[string]map[string]Bound
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
	a := Association{Account: r.text("Account"), ID: r.number("ID", count), Partition: f["Partition"], Limits: limits(&r)}
	if who := f["UserName"]; who != "" && r.err == nil {
		var uid int
		a.User, uid, r.err = named("UserName", who)
		a.UID = uint32(uid)
	}
	if above := f["ParentAccount"]; above != "" && r.err == nil {
		_, a.Parent, r.err = named("ParentAccount", above)
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
	q := QOS{Limits: limits(&r)}
	if r.err == nil {
		q.Name, _, r.err = named("QOS", r.text("QOS"))
	}
	if r.err == nil {
		q.Accounts, r.err = shares(accounts, "MaxTRESPA")
	}
	if r.err == nil {
		q.Users, r.err = shares(users, "MaxTRESPU")
	}
	return q, r.err
}

// limits reads the fields that associations and QOS have in common. A field must be
// there, and may be empty.
func limits(r *reader) Limits {
	return Limits{
		Grp: listed(r, "GrpTRES", bound), GrpMinutes: listed(r, "GrpTRESMins", bound), GrpRunMinutes: listed(r, "GrpTRESRunMins", bound),
		MaxJob: listed(r, "MaxTRESPJ", amount), MaxNode: listed(r, "MaxTRESPN", amount), MaxMinutes: listed(r, "MaxTRESMinsPJ", amount),
		MinJob: optional(r, "MinTRESPJ"), GrpWall: read(r, "GrpWall", wall), MaxWall: minutes(r, "MaxWallPJ"),
	}
}

// words splits a line at its blanks. A key that stands twice is an error.
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

// named reads NAME(NUMBER).
func named(field, s string) (string, int, error) {
	name, rest, ok := strings.Cut(s, "(")
	number, end, ok2 := strings.Cut(rest, ")")
	if !ok || !ok2 || end != "" || name == "" {
		return "", 0, badValue(field, s)
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return "", 0, badValue(field, s)
	}
	return name, int(n), nil
}

// listed reads NAME=VALUE,NAME=VALUE.
func listed[T any](r *reader, key string, as func(field, s string) (T, error)) map[string]T {
	text, ok := r.fields[key]
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: no field %s", ErrFormat, key)
	}
	out, err := pairs(key, text, as)
	if err != nil && r.err == nil {
		r.err = err
	}
	return out
}

func pairs[T any](key, text string, as func(field, s string) (T, error)) (map[string]T, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no limit is no map
	}
	out := map[string]T{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := out[name]; !ok || twice || name == "" {
			return nil, badValue(key, text)
		}
		v, err := as(key, value)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// optional reads a field that only QOS have.
func optional(r *reader, key string) map[string]uint64 {
	if _, ok := r.fields[key]; !ok {
		return nil
	}
	return listed(r, key, amount)
}

// bound reads LIMIT(USED), of which LIMIT may be N.
func bound(field, s string) (Bound, error) {
	limit, rest, ok := strings.Cut(s, "(")
	used, end, ok2 := strings.Cut(rest, ")")
	if !ok || !ok2 || end != "" {
		return Bound{}, badValue(field, s)
	}
	b := Bound{Limit: Unlimited}
	var err error
	if limit != "N" {
		if b.Limit, err = amount(field, limit); err != nil {
			return Bound{}, err
		}
	}
	b.Used, err = amount(field, used)
	return b, err
}

// wall reads LIMIT(USED) in minutes, of which USED has a fraction.
func wall(field, s string) (Bound, error) {
	open := strings.IndexByte(s, '(')
	dot := strings.IndexByte(s, '.')
	if open < 0 || dot < open || !strings.HasSuffix(s, ")") || strings.Trim(s[dot+1:len(s)-1], "0123456789") != "" {
		return Bound{}, badValue(field, s)
	}
	return bound(field, s[:dot]+")")
}

func amount(field, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, badValue(field, s)
	}
	return n, nil
}

// minutes reads a number, or nothing for no limit.
func minutes(r *reader, key string) uint64 {
	text, ok := r.fields[key]
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: no field %s", ErrFormat, key)
	}
	if text == "" || r.err != nil {
		return Unlimited
	}
	n, err := amount(key, text)
	if err != nil {
		r.err = err
	}
	return n
}

// shares reads NAME={KEY=VALUE KEY=VALUE} NAME={…} and keeps the list of one key.
func shares(text, key string) (map[string]map[string]Bound, error) {
	text = strings.TrimSpace(text)
	out := map[string]map[string]Bound{}
	if strings.HasPrefix(text, "No ") {
		return out, nil
	}
	for text != "" {
		name, rest, ok := strings.Cut(text, "={")
		inner, after, ok2 := strings.Cut(rest, "}")
		if _, twice := out[name]; !ok || !ok2 || twice || name == "" || strings.ContainsAny(name, " =") {
			return nil, badValue(key, text)
		}
		f, err := words(inner)
		if err != nil {
			return nil, err
		}
		list, ok := f[key]
		if !ok {
			return nil, fmt.Errorf("%w: no field %s", ErrFormat, key)
		}
		if out[name], err = pairs(key, list, bound); err != nil {
			return nil, err
		}
		text = strings.TrimSpace(after)
	}
	return out, nil
}
