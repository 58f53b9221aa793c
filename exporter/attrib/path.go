package attrib

import (
	"path"
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
	// Alias means that Key.ID is a name from which the job's id does not follow: an SLUID of
	// Slurm, or the id of a container of Docker.
	Alias bool
}

// rule says what the names below a directory mean.
type rule struct {
	parent string // a pattern of path.Match
	job    func(name string) (Owner, bool)
}

func rules() []rule {
	return []rule{
		{"pitchpipe", localName},
		{"slurm/uid_*", slurmName},
		{"slurm_*/uid_*", slurmName}, // one of several slurmd on a machine
		{"slurmstepd.scope", slurmName},
		{"*_slurmstepd.scope", slurmName},
		{"nomad.slice/share.slice", nomadScope},
		{"nomad.slice/reserve.slice", nomadScope},
		{"nomad.slice", nomadScope},
		{"nomad/reserve", nomadName},
		{"nomad", nomadName},
		{"docker", containerName},
		{"*.slice", containerScope},
	}
}

// fits reports whether the first segments match a pattern of as many.
func fits(pattern string, segments []string) (n int, ok bool) {
	n = 1 + strings.Count(pattern, "/")
	if n > len(segments) {
		return n, false
	}
	ok, err := path.Match(pattern, strings.Join(segments[:n], "/"))
	return n, ok && err == nil
}

// ParsePath reports which job owns the cgroup at path, which is relative to the root
// of its hierarchy. Ids never hold a slash; those of Nomad are "<allocation>.<task>".
func ParsePath(cgroup string) (Owner, bool) {
	segments := strings.Split(strings.Trim(cgroup, "/"), "/")
	for i := range segments {
		for _, r := range rules() {
			n, ok := fits(r.parent, segments[i:])
			if !ok || i+n == len(segments) {
				continue
			}
			o, ok := r.job(segments[i+n])
			if text, is := strings.CutPrefix(segments[i+n-1], "uid_"); ok && is && n > 1 {
				uid, err := strconv.ParseUint(text, 10, 32)
				o.UID, o.HasUID, ok = uint32(uid), true, err == nil
			}
			if ok {
				o.Base = "/" + strings.Join(segments[:i+n+1], "/")
				return o, true
			}
		}
	}
	return Owner{}, false
}

// leads reports whether job cgroups may be below a path that is none itself, so that a scan
// descends only there.
func leads(cgroup string) bool {
	s := strings.Split(strings.Trim(cgroup, "/"), "/")
	for _, r := range rules() {
		parents := strings.Split(r.parent, "/")
		if len(s) <= len(parents) {
			if _, ok := fits(strings.Join(parents[:len(s)], "/"), s); ok {
				return true
			}
		}
	}
	if nested(s) {
		return true
	}
	last := s[len(s)-1]
	return (last == "slurmstepd.scope" || strings.HasSuffix(last, "_slurmstepd.scope")) && (len(s) == 2 || nested(s[:len(s)-1]))
}

// nested reports whether the path is a slice in a slice as systemd nests them by their names,
// which a site's CgroupSlice may do: hpc.slice/hpc-batch.slice. Those of users are theirs.
func nested(s []string) bool {
	outer, ok := strings.CutSuffix(s[0], ".slice")
	return ok && len(s) == 2 && outer != "user" && strings.HasSuffix(s[1], ".slice") && strings.HasPrefix(s[1], outer+"-")
}

// localName reads "<id>.<attempt>".
func localName(name string) (Owner, bool) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return Owner{}, false
	}
	attempt, ok := attemptNumber(name[i+1:])
	return Owner{Key: Key{Local, name[:i], attempt}}, ok
}

func attemptNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, false
	}
	return int(n), true
}

// slurmName reads job_<number>, or an SLUID, which newer versions write instead:
// the letter s and 13 characters of Crockford's base 32.
func slurmName(name string) (Owner, bool) {
	if id, ok := strings.CutPrefix(name, "job_"); ok {
		_, err := strconv.ParseUint(id, 10, 64)
		return Owner{Key: Key{Slurm, id, 1}}, err == nil
	}
	ok := len(name) == 14 && name[0] == 's' && strings.Trim(name[1:], "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
	return Owner{Key: Key{Slurm, name, 1}, Alias: true}, ok
}

func nomadScope(name string) (Owner, bool) {
	name, ok := strings.CutSuffix(name, ".scope")
	if !ok {
		return Owner{}, false
	}
	return nomadName(name)
}

// nomadName reads "<allocation>.<task>"; some versions join the two by a dash.
func nomadName(name string) (Owner, bool) {
	const uuid = 36
	if len(name) < uuid+2 || (name[uuid] != '.' && name[uuid] != '-') {
		return Owner{}, false
	}
	for i, c := range name[:uuid] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') ||
			!dash && !strings.ContainsRune("0123456789abcdef", c) {
			return Owner{}, false
		}
	}
	return Owner{Key: Key{Nomad, name[:uuid] + "." + name[uuid+1:], 1}}, true
}

// containerName reads the id of a container of Docker. A task of Nomad may be in it.
func containerName(name string) (Owner, bool) {
	const digits = 64
	return Owner{Key: Key{Nomad, name, 1}, Alias: true}, len(name) == digits && strings.Trim(name, "0123456789abcdef") == ""
}

// containerScope reads "docker-<id>.scope", as systemd names it.
func containerScope(name string) (Owner, bool) {
	id, scope := strings.CutSuffix(name, ".scope")
	id, engine := strings.CutPrefix(id, "docker-")
	if !scope || !engine {
		return Owner{}, false
	}
	return containerName(id)
}
