package attrib

import (
	"strconv"
	"strings"
)

// The managers whose cgroups are known.
const (
	Local = "local"
	Slurm = "slurm"
	Nomad = "nomad"
)

// Key names one attempt of one job.
type Key struct {
	Manager string
	ID      string
	Attempt int // from 1; the cgroups of Slurm and Nomad do not say, so 1
}

// String prints "local/7.2".
func (k Key) String() string { return k.Manager + "/" + k.ID + "." + strconv.Itoa(k.Attempt) }

// Owner is what a cgroup path says about the job that owns it.
type Owner struct {
	Key    Key
	Base   string // path of the job's own cgroup, of which the given one may be a descendant
	UID    uint32
	HasUID bool // Slurm writes the user into the v1 path
	SLUID  bool // the id is not the job's number but the name that newer Slurm gives
}

// ParsePath reports which job owns the cgroup at path, which is relative to the root
// of its hierarchy. Ids never hold a slash; those of Nomad are "<allocation>.<task>".
func ParsePath(path string) (Owner, bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := range segments {
		o, n, ok := match(segments[i:])
		if !ok {
			continue
		}
		o.Base = "/" + strings.Join(segments[:i+n], "/")
		return o, true
	}
	return Owner{}, false
}

// match reads a job off the beginning of the path and reports how many segments it
// took.
func match(s []string) (Owner, int, bool) {
	switch {
	case len(s) >= 2 && s[0] == "pitchpipe":
		key, ok := localName(s[1])
		return Owner{Key: key}, 2, ok
	case len(s) >= 3 && isSlurmRoot(s[0]) && strings.HasPrefix(s[1], "uid_"):
		uid, err := strconv.ParseUint(s[1][len("uid_"):], 10, 32)
		id, ok := slurmName(s[2])
		return Owner{Key: Key{Slurm, id, 1}, UID: uint32(uid), HasUID: true, SLUID: isSLUID(s[2])}, 3, ok && err == nil
	case len(s) >= 2 && isStepd(s[0]):
		id, ok := slurmName(s[1])
		return Owner{Key: Key{Slurm, id, 1}, SLUID: isSLUID(s[1])}, 2, ok
	case len(s) >= 3 && s[0] == "nomad.slice" && (s[1] == "share.slice" || s[1] == "reserve.slice"):
		id, ok := nomadScope(s[2])
		return Owner{Key: Key{Nomad, id, 1}}, 3, ok
	case len(s) >= 2 && s[0] == "nomad.slice":
		id, ok := nomadScope(s[1])
		return Owner{Key: Key{Nomad, id, 1}}, 2, ok
	case len(s) >= 3 && s[0] == "nomad" && s[1] == "reserve":
		id, ok := nomadName(s[2])
		return Owner{Key: Key{Nomad, id, 1}}, 3, ok
	case len(s) >= 2 && s[0] == "nomad":
		id, ok := nomadName(s[1])
		return Owner{Key: Key{Nomad, id, 1}}, 2, ok
	}
	return Owner{}, 0, false
}

// leads reports whether job cgroups may lie below a path that is none itself, so
// that a scan descends only where it pays.
func leads(path string) bool {
	s := strings.Split(strings.Trim(path, "/"), "/")
	last := s[len(s)-1]
	switch len(s) {
	case 1:
		return last == "pitchpipe" || last == "nomad" || last == "docker" || isSlurmRoot(last) || isStepd(last) || strings.HasSuffix(last, ".slice")
	case 2:
		switch {
		case isSlurmRoot(s[0]):
			return strings.HasPrefix(last, "uid_")
		case s[0] == "nomad":
			return last == "reserve"
		case s[0] == "nomad.slice":
			return last == "share.slice" || last == "reserve.slice"
		}
		return isStepd(last) || nested(s[0], last)
	case 3:
		return isStepd(last) && nested(s[0], s[1])
	}
	return false
}

// nested reports whether a slice lies in another as systemd nests them by their names, which
// a site's CgroupSlice may do: hpc.slice/hpc-batch.slice. Those of users are theirs.
func nested(outer, inner string) bool {
	name, ok := strings.CutSuffix(outer, ".slice")
	return ok && outer != "user.slice" && strings.HasSuffix(inner, ".slice") && strings.HasPrefix(inner, name+"-")
}

// localName reads "<id>.<attempt>".
func localName(name string) (Key, bool) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return Key{}, false
	}
	attempt, ok := attemptNumber(name[i+1:])
	return Key{Local, name[:i], attempt}, ok
}

func attemptNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, false
	}
	return int(n), true
}

// slurm, or slurm_<node> where several slurmd share a machine.
func isSlurmRoot(name string) bool { return name == "slurm" || strings.HasPrefix(name, "slurm_") }

func isStepd(name string) bool {
	return name == "slurmstepd.scope" || strings.HasSuffix(name, "_slurmstepd.scope")
}

// slurmName reads job_<number>, or an SLUID, which newer versions write instead:
// the letter s and 13 characters of Crockford's base 32.
func slurmName(name string) (string, bool) {
	if id, ok := strings.CutPrefix(name, "job_"); ok {
		_, err := strconv.ParseUint(id, 10, 64)
		return id, err == nil
	}
	return name, isSLUID(name)
}

func isSLUID(name string) bool {
	return len(name) == 14 && name[0] == 's' && strings.Trim(name[1:], "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

func nomadScope(name string) (string, bool) {
	name, ok := strings.CutSuffix(name, ".scope")
	if !ok {
		return "", false
	}
	return nomadName(name)
}

// nomadName reads "<allocation>.<task>"; some versions join the two by a dash.
func nomadName(name string) (string, bool) {
	const uuid = 36
	if len(name) < uuid+2 || (name[uuid] != '.' && name[uuid] != '-') {
		return "", false
	}
	for i, c := range name[:uuid] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') ||
			!dash && !strings.ContainsRune("0123456789abcdef", c) {
			return "", false
		}
	}
	return name[:uuid] + "." + name[uuid+1:], true
}
