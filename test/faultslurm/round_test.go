package faultslurm_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"pitchpipe/test/fault"
)

// round is many jobs of two users, and the faults that meet them. The next begins while
// Slurm is still about the end of its jobs.
type round struct {
	*fault.Round

	w      *world
	jobs   []*job
	missed atomic.Int32 // faults in a row that met nothing
}

func (r *round) byID(id string) *job {
	for _, j := range r.jobs {
		if j.id == id && id != "" {
			return j
		}
	}
	return nil
}

// needed reports whether another job waits for this one.
func (r *round) needed(j *job) bool {
	for _, other := range r.jobs {
		if other.after == j {
			return true
		}
	}
	return false
}

// perOwner are the jobs of one user in a round.
func (r *round) perOwner(o *owner, small bool) []*job {
	named := func(kind string, j *job) *job {
		j.owner, j.name = o, fmt.Sprintf("r%d-%s", r.Number, kind)
		if j.epochs == 0 {
			j.epochs = 12000
		}
		if j.way == "" {
			j.way = wayLeave
			j.exit = true
		}
		return j
	}
	// A sample does not wait for sbatch --wait, which asks every half minute in the end.
	first := named("leaves", &job{wait: !small})
	out := []*job{
		first, named("says", &job{way: waySay, wait: !small}), named("ends", &job{way: wayEnd, late: r.lateness()}),
		named("after", &job{plain: true, after: first, epochs: 3}), named("leaves-too", &job{}), named("says-too", &job{way: waySay}),
	}
	if small {
		return out
	}
	out = append(out, named("fails", &job{status: 3, way: waySay, wait: true}), named("ends-too", &job{way: wayEnd, exit: true, late: r.lateness()}),
		named("leaves-3", &job{}), named("leaves-4", &job{}), named("says-3", &job{way: waySay}))
	if o.controller != nil && o.broker == nil { // the controller of a site submits no user's jobs
		out = append(out, named("asked", &job{by: true}))
	}
	return out
}

func (r *round) lateness() time.Duration { return time.Duration(r.Random(2500)) * time.Millisecond }

// submit makes the jobs of the round. slurmctld is not touched meanwhile.
func (r *round) submit(small bool) error {
	for _, o := range r.w.owners {
		r.jobs = append(r.jobs, r.perOwner(o, small)...)
	}
	for _, j := range r.jobs {
		if err := j.submit(r.hurry()); err != nil {
			return err
		}
		r.w.add(j)
	}
	r.Began = time.Now()
	return nil
}

// hurry is the file that has the jobs of this round come to their end.
func (r *round) hurry() string { return filepath.Join(r.w.dir, fmt.Sprintf("hurry-%d", r.Number)) }

// Inject does the faults. The controllers are struck at the same time, each by one fault at a time.
func (r *round) Inject(faults []fault.Fault) (left []fault.Fault) {
	queues := make([][]fault.Fault, 3)
	for _, f := range faults {
		i := f.Owner
		switch {
		case clusterwide(f):
			i = 2
		case f.Kind == kindBroker || f.Kind == kindBrokerAny:
			i = 1
		}
		queues[i] = append(queues[i], f)
	}
	// While the round before comes to its end something happens all the time, and slurmctld
	// has never saved all of it.
	slices.SortStableFunc(queues[2], func(a, b fault.Fault) int {
		return cmp.Compare(btoi(a.Kind == kindCtldSaved), btoi(b.Kind == kindCtldSaved))
	})
	return r.Round.Inject(fault.Work{Queues: queues, Inflict: r.attempt, Families: families(true), Left: r.left, Moved: r.moved, Log: r.w.story.Logf})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// attempt does a fault, and counts.
func (r *round) attempt(f *fault.Fault) ([]string, error) {
	touched, err := r.inflict(f)
	if err == nil {
		r.missed.Store(0)
	} else {
		r.missed.Add(1)
	}
	return touched, err
}

// enough is how many faults in a row meet nothing where the jobs are hardly moved any more:
// a new round is quicker then.
const enough = 3

// left are the jobs that faults can meet and that are not at their end; none where faults
// meet nothing any more.
func (r *round) left() int {
	if r.missed.Load() >= enough {
		return 0
	}
	n := 0
	for _, j := range r.jobs {
		if !j.plain && fault.Read(j.journal(), j.epochs).Ends == 0 && !j.cancelled.Load() {
			n++
		}
	}
	return n
}

// moved reports whether one of its jobs is.
func (r *round) moved() bool {
	for _, o := range r.w.owners {
		for id := range o.moving() {
			if r.byID(id) != nil {
				return true
			}
		}
	}
	return false
}
