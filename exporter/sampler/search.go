package sampler

import (
	"context"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
)

// finding is the worker of the scanner, and of all else that reads who is where: any of
// these reads may hang.
const finding = "attrib"

// scanned is what one look for jobs saw of one.
type scanned struct {
	attrib.Found
	cpus   []int // that its cpuset gives it; nil = it has none
	looked bool  // at them
	anyone bool  // a process is in it; not looked for where the last reading saw one
	empty  bool  // no process is in it or about to come, and that could be read; of unknown jobs alone
}

// question is what a look for jobs has to find out about one that is known.
type question struct {
	cpus, anyone, user bool
}

const (
	looksAtFirst = 16 // at a job's cpuset: it may be made after its cgroup
	looksRarely  = 8  // where it has none
	looksForLife = 4  // at a cgroup that was empty from the first: one look in so many
)

// questions are what the next look has to find out. They are separate values: a look that
// hangs must not see changes of the jobs meanwhile.
func (s *Sampler) questions() map[attrib.Key]question {
	out := make(map[attrib.Key]question, len(s.jobs))
	for key, j := range s.jobs {
		j.looks++
		out[key] = question{
			cpus:   j.cpus != nil || j.looks < looksAtFirst || j.looks%looksRarely == 0,
			anyone: !s.sawSomebody(j),
			user:   len(j.found.Dirs) == 0 && !j.found.Confirmed,
		}
	}
	s.looks++
	for key, left := range s.leftovers {
		now := s.looks%looksForLife == 0
		out[key] = question{cpus: now, anyone: now}
		if left.by != nil {
			out[key] = question{cpus: true, anyone: key.Manager == attrib.Nomad}
		}
	}
	return out
}

// leftover is a cgroup that stays behind when its job has ended.
type leftover struct {
	found attrib.Found
	by    *job // nil = it ended before the sampler began
}

// isLeftover reports whether a job that is not known is what another left behind: one that
// has ended and was not started again, or that ended before the sampler began, whose cgroup
// was empty when it was first looked at, and is. One that an earlier exporter counted for is
// not a leftover, since its last value is to be read.
func (s *Sampler) isLeftover(f scanned) bool {
	left, known := s.leftovers[f.Key]
	begins := f.anyone || known && f.Reborn(left.found)
	if left.by != nil { // a task of Nomad may be restarted in the same cgroups
		begins = left.by.restarted(f) || f.anyone && f.Key.Manager == attrib.Nomad
	}
	switch {
	case begins:
		delete(s.leftovers, f.Key)
		return false
	case !known && (s.started || !f.empty):
		return false
	case !known:
		if _, counted := s.counted(f.Found); counted {
			return false
		}
	}
	s.leftovers[f.Key] = leftover{f.Found, left.by}
	return true
}

// look looks for jobs; an error means that nothing is known of any.
func (s *Sampler) look(ctx context.Context) ([]scanned, error) {
	questions := s.questions()
	return collector.Get(s.worker(finding), func() ([]scanned, error) {
		all := s.finder.Scan(ctx)
		out := make([]scanned, 0, len(all))
		for _, f := range all {
			w, known := questions[f.Key]
			if !known {
				w = question{cpus: true, anyone: true}
			}
			see := scanned{Found: f, looked: w.cpus}
			if w.cpus {
				see.cpus = cgroup.CPUs(f.Dirs)
			}
			if w.anyone {
				see.anyone = len(f.Processes()) > 0
			}
			if w.user && len(f.Dirs) > 0 && !f.HasUID {
				see.UID, see.HasUID = s.finder.User(f.Processes())
			}
			see.empty = !known && !see.anyone && !f.Fresh() && f.Readable()
			out = append(out, see)
		}
		return out, nil
	})
}
