package sampler

import (
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// claimed reports whether f is only a claim to the job: an environment names it, but
// the job has a cgroup or is another user's.
func (j *job) claimed(f attrib.Found) bool {
	return !f.Confirmed && len(f.Dirs) == 0 && (len(j.found.Dirs) > 0 || j.found.Confirmed || f.UID != j.uid)
}

// usurped reports whether j was found by the environment of another user than the
// user whose cgroup has come now. Where that is still empty, it counts as usurped.
func (j *job) usurped(f scanned) bool {
	if len(j.found.Dirs) > 0 || j.found.Confirmed || len(f.Dirs) == 0 {
		return false
	}
	uid, ok := f.UID, f.HasUID
	if !ok {
		uid, ok = f.user, f.owned
	}
	return !ok || uid != j.uid
}

// replacesEnded reports whether f, which only an environment names, would replace an attempt
// that ended and that had a cgroup or was another user's.
func (s *Sampler) replacesEnded(f attrib.Found) bool {
	if len(f.Dirs) > 0 || f.Confirmed {
		return false
	}
	return len(s.store.Jobs(func(j api.Job) bool {
		return j.Ended && j.Manager == f.Key.Manager && j.ID == f.Key.ID && j.Attempt == f.Key.Attempt &&
			(j.Cgroup != "" || j.UID != f.UID)
	})) > 0
}
