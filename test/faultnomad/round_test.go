package faultnomad_test

import (
	"fmt"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/test/fault"
)

// round is many jobs of two owners, and the faults that meet them.
type round struct {
	*fault.Round

	w    *world
	jobs []*job
}

// perOwner are the jobs of one owner in a round: of a sample fewer.
func (r *round) perOwner(o *owner, sample bool) []*job {
	late := func() time.Duration { return time.Duration(r.Random(2500)) * time.Millisecond }
	all := []*job{
		{name: "says", way: waySay, marked: true},
		{name: "plain-says", way: waySay},
		{name: "leaves", way: wayLeave, marked: true},
		{name: "plain-leaves", way: wayLeave},
		{name: "plain-ends", way: wayEnd, late: late()},
		{name: "ends", way: wayEnd, marked: true, late: late()},
		{name: "says-2", way: waySay, marked: true, again: true},
		{name: "plain-says-2", way: waySay, again: true},
		{name: "leaves-again", way: wayLeave, marked: true, again: true},
		{name: "plain-says-3", way: waySay},
	}
	if sample {
		all = all[:5]
	}
	for _, j := range all {
		j.owner, j.name, j.epochs = o, fmt.Sprintf("r%d-%s", r.Number, j.name), epochs
	}
	return all
}

// hurry is the file that has the jobs of this round come to their end.
func (r *round) hurry() string { return r.w.path(fmt.Sprintf("hurry-%d", r.Number)) }

func (r *round) submit(sample bool) error {
	for _, o := range r.w.owners {
		r.jobs = append(r.jobs, r.perOwner(o, sample)...)
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

// Inject does the faults. The controllers are struck at the same time, each by one fault at a time.
func (r *round) Inject(faults []fault.Fault) (left []fault.Fault) {
	queues := make([][]fault.Fault, len(r.w.owners)+1)
	for _, f := range faults {
		i := f.Owner
		if clusterwide(f) {
			i = len(r.w.owners)
		}
		queues[i] = append(queues[i], f)
	}
	defer r.tell()
	return r.Round.Inject(fault.Work{Queues: queues, Inflict: r.inflict, Families: r.w.families(), Left: r.left, Moved: r.moved, Log: r.w.story.Logf})
}

// tell logs what the controllers are doing, to show why no job is moved.
func (r *round) tell() {
	for _, j := range r.jobs {
		if j.owner.client == nil {
			return
		}
		seen, err := j.owner.client.Job(r.w.t.Context(), j.id())
		r.w.story.Logf("round %d: %s is %s, %s (%s) %s, epoch %d, attempt %d, %d restarts, %d probes, error %v", r.Number, j.id(),
			seen.State, seen.Phase, seen.Reason, seen.Detail, seen.Epoch, seen.Attempt, seen.Restarts, seen.Probes, err)
	}
}

// left are the jobs that faults can meet and that are not at their end.
func (r *round) left() int {
	n := 0
	for _, j := range r.jobs {
		if j.lives() {
			n++
		}
	}
	return n
}

// moved reports whether one of its jobs is.
func (r *round) moved() bool { return len(r.moving(r.w.owners...)) > 0 }

// moving are its jobs that are being moved.
func (r *round) moving(owners ...*owner) []string {
	var out []string
	for _, o := range owners {
		for _, id := range o.moving() {
			if j := r.byID(id); j != nil {
				out = append(out, id)
			}
		}
	}
	return out
}

func (r *round) byID(id string) *job {
	for _, j := range r.jobs {
		if j.id() == id {
			return j
		}
	}
	return nil
}

// Passive are the faults that happen by themselves: jobs that came to their end in the move
// that asked them to save.
func (r *round) Passive() []fault.Strike {
	var out []fault.Strike
	for i, o := range r.w.owners {
		for _, j := range r.jobs {
			told := j.told()
			if n := len(told.Attempts); j.owner == o && j.way == wayEnd && told.Ends == 1 && told.Attempts[n-1].Saved > 0 {
				out = append(out, fault.Strike{Fault: fault.Fault{Kind: kindEnd, Owner: i}, Round: r.Number, Touched: []string{j.id()}})
			}
		}
	}
	return out
}

// Clear purges the jobs of the round, so that lists stay short.
func (r *round) Clear() error {
	for _, j := range r.jobs {
		err := eventually(func() error {
			_, _, err := r.w.nomad.Jobs().Deregister(j.name, true, &nomadapi.WriteOptions{Namespace: j.owner.name})
			if absent(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
