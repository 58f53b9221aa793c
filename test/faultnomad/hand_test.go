package faultnomad_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/spec"
)

// hand is an owner who moves his jobs without a tuner: he asks a job to save and registers
// it anew with another variable, and looks at Nomad before each step.
type hand struct {
	o *owner

	mu     sync.Mutex
	moving map[string]*moved
	turns  int // moves that began
}

// moved is a job in the middle of a move.
type moved struct {
	job        *job
	attempts   int // that had begun before
	asked      time.Time
	registered bool
}

// atOnce is how many jobs of an owner are moved at a time.
const atOnce = 2

func newHand(o *owner) *hand {
	h := &hand{o: o, moving: map[string]*moved{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(o.w.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			h.step()
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	o.w.t.Cleanup(func() {
		stop()
		<-done
	})
	return h
}

// held are the jobs in the middle of a move.
func (h *hand) held() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.moving))
}

// step begins with jobs that run, and takes one step with each that is being moved.
func (h *hand) step() {
	h.begin()
	h.mu.Lock()
	open := slices.Collect(maps.Values(h.moving))
	h.mu.Unlock()
	for _, m := range open {
		over, err := h.move(m)
		if over {
			h.mu.Lock()
			delete(h.moving, m.job.id())
			h.mu.Unlock()
		} else if err != nil {
			h.o.w.story.Logf("by hand: job %s: %v", m.job.id(), err) // he looks again
		}
	}
}

func (h *hand) begin() {
	jobs := h.o.w.every()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range jobs {
		j := jobs[(h.turns+i)%len(jobs)]
		if len(h.moving) >= atOnce {
			return
		}
		told := j.told()
		n := len(told.Attempts)
		if j.owner == h.o && h.moving[j.id()] == nil && j.lives() && n > 0 && !told.Attempts[n-1].Left && time.Since(told.Attempts[n-1].Began) > 3*time.Second {
			h.turns++
			h.moving[j.id()] = &moved{job: j, attempts: n}
		}
	}
}

// move takes the next step that the job's state allows, and reports whether the move is
// over.
func (h *hand) move(m *moved) (over bool, err error) {
	told := m.job.told()
	list, err := m.job.allocations()
	if err != nil || len(list) == 0 {
		return false, err // the agent is away
	}
	newest, n := list[len(list)-1], len(told.Attempts)
	saved := n > 0 && n == m.attempts && told.Attempts[n-1].Saved > told.Attempts[n-1].From
	switch {
	case told.Ends > 0 || n > m.attempts:
		return true, nil
	case !m.registered && !m.asked.IsZero() && (terminal(newest) || saved && m.job.way != wayLeave):
		m.registered = true
		return false, m.job.registerWith(fmt.Sprint(1 + h.turns%8))
	case m.asked.IsZero() && newest.ClientStatus == nomadapi.AllocClientStatusRunning:
		m.asked = time.Now()
		return false, h.o.w.nomad.Allocations().Signal(&nomadapi.Allocation{ID: newest.ID, NodeID: newest.NodeID}, h.o.read(), "main", "SIGUSR1")
	case !m.registered && !m.asked.IsZero() && time.Since(m.asked) > 20*time.Second:
		return true, nil // it was not heard
	}
	return false, nil
}

// registerWith has the owner register the job with another variable.
func (j *job) registerWith(batch string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, err := spec.Clone(j.own)
	if err != nil {
		return err
	}
	task := own.TaskGroups[0].Tasks[0]
	if task.Env == nil {
		task.Env = map[string]string{}
	}
	task.Env["BATCH_SIZE"] = batch
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
