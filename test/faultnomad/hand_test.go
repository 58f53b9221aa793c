package faultnomad_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/fault"
)

// newHand moves the owner's jobs: it asks a job to save and registers it again with
// another variable.
func newHand(o *owner) *fault.Hand {
	return fault.ByHand(o.w.t, o.w.story, 2, func() (out []fault.Move) {
		for _, j := range o.w.every() {
			told := j.told()
			if n := len(told.Attempts); j.owner == o && j.lives() && n > 0 && !told.Attempts[n-1].Left && time.Since(told.Attempts[n-1].Began) > 3*time.Second {
				out = append(out, fault.Move{ID: j.id(), Attempts: n})
			}
		}
		return out
	}, o.step)
}

// step takes the next step of a move by hand.
func (o *owner) step(m *fault.Move) (over bool, err error) {
	j := o.w.byID(m.ID)
	told := j.told()
	newest := j.newest()
	if newest == nil {
		return false, nil // the agent is away
	}
	n := len(told.Attempts)
	saved := n > 0 && n == m.Attempts && told.Attempts[n-1].Saved > told.Attempts[n-1].From
	switch {
	case told.Ends > 0 || n > m.Attempts:
		return true, nil
	case m.Changed:
		return false, nil
	case m.Asked.IsZero():
		if newest.ClientStatus != nomadapi.AllocClientStatusRunning {
			return true, nil
		}
		m.Asked = time.Now()
		return false, o.w.nomad.Allocations().Signal(&nomadapi.Allocation{ID: newest.ID, NodeID: newest.NodeID}, o.read(), "main", "SIGUSR1")
	case terminal(newest) || saved && j.way != wayLeave:
		err := j.registerWith(fmt.Sprint(1 + n%8))
		m.Changed = err == nil
		return false, err
	}
	return time.Since(m.Asked) > 20*time.Second, nil // it was not heard
}

// registerWith has the owner register the job with another variable.
func (j *job) registerWith(batch string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, err := spec.Clone(j.own)
	if err != nil {
		return err
	}
	own.TaskGroups[0].Tasks[0].Env = map[string]string{"BATCH_SIZE": batch}
	if _, _, err := j.owner.w.nomad.Jobs().Register(own, j.owner.write()); err != nil {
		return err
	}
	j.own = own
	return nil
}

// every are the jobs of all rounds, by their names.
func (w *world) every() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := slices.Collect(maps.Values(w.jobs))
	slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.id(), b.id()) })
	return jobs
}
