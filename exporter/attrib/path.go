package attrib

import (
	"path"
	"regexp"
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
	Base   string // path of the job's own cgroup; the given one may be a descendant
	UID    uint32
	HasUID bool // Slurm writes the user into the v1 path
	// Alias means that Key.ID is a name from which the job's id does not follow: an SLUID of
	// Slurm, or the id of a container of Docker.
	Alias bool
}

// rule says what the names below a directory mean.
type rule struct {
	parent  string // a pattern of path.Match
	manager string
	name    string // a regular expression: the id, and perhaps the attempt
	alias   bool
}

func rules() []rule {
	const (
		local = `(.+)\.([1-9]\d{0,9})`
		slurm = `job_(\d{1,19})`
		// An SLUID, which newer versions write instead: the letter s and 13 characters of
		// Crockford's base 32.
		sluid = `(s[0-9A-HJKMNP-TV-Z]{13})`
		// "<allocation>.<task>"; some versions join the two by a dash.
		nomad     = `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[.-].+)`
		container = `([0-9a-f]{64})`
	)
	out := []rule{
		{"pitchpipe", Local, local, false},
		{"nomad.slice/share.slice", Nomad, nomad + `\.scope`, false},
		{"nomad.slice/reserve.slice", Nomad, nomad + `\.scope`, false},
		{"nomad.slice", Nomad, nomad + `\.scope`, false},
		{"nomad/reserve", Nomad, nomad, false},
		{"nomad", Nomad, nomad, false},
		{"docker", Nomad, container, true}, // a task of Nomad may be in it
		{"*.slice", Nomad, "docker-" + container + `\.scope`, true},
	}
	// Several slurmd on a machine have names.
	for _, parent := range []string{"slurm/uid_*", "slurm_*/uid_*", "slurmstepd.scope", "*_slurmstepd.scope"} {
		out = append(out, rule{parent, Slurm, slurm, false}, rule{parent, Slurm, sluid, true})
	}
	return out
}

// owner reads a job off a name.
func (r rule) owner(name string) (o Owner, ok bool) {
	m := regexp.MustCompile("^" + r.name + "$").FindStringSubmatch(name)
	if m == nil {
		return o, false
	}
	o = Owner{Key: Key{r.manager, m[1], 1}, Alias: r.alias}
	switch {
	case r.manager == Local:
		o.Key.Attempt, ok = attemptNumber(m[2])
		return o, ok
	case r.manager == Nomad && !r.alias:
		o.Key.ID = m[1][:uuid] + "." + m[1][uuid+1:]
	}
	return o, true
}

// uuid is the length of the id of an allocation.
const uuid = 36

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
			o, ok := r.owner(segments[i+n])
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

// leads reports whether job cgroups may be below a path that is not one itself, so that a
// scan descends only there.
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

func attemptNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, false
	}
	return int(n), true
}
