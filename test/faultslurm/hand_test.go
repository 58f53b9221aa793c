package faultslurm_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pitchpipe/test/fault"
)

// hand is an owner who moves his jobs without a tuner: he asks a job to save, requeues it,
// changes it and releases it, and looks at Slurm before each step. A few jobs are in the
// middle of that at any time.
type hand struct {
	o *owner

	turn   sync.Mutex // held for each step
	mu     sync.Mutex
	moving map[string]*moved
	turns  int // moves that began
}

// moved is a job in the middle of a move.
type moved struct {
	job      *job
	attempts int // that had begun before
	asked    time.Time
	changed  bool
}

// atOnce is how many jobs of an owner are moved at a time.
const atOnce = 3

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
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	o.w.t.Cleanup(func() {
		stop()
		<-done
	})
	return h
}

// freeze has the hand rest between two steps until the answer is called.
func (h *hand) freeze() (thaw func()) {
	h.turn.Lock()
	return h.turn.Unlock
}

// held are the jobs in the middle of a move.
func (h *hand) held() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.moving))
}

// step takes one step with each job that is being moved, and begins with others.
func (h *hand) step() {
	h.turn.Lock()
	defer h.turn.Unlock()
	records, err := h.o.w.records()
	if err != nil {
		return // slurmctld is away
	}
	h.begin(records)
	h.mu.Lock()
	open := slices.Collect(maps.Values(h.moving))
	h.mu.Unlock()
	for _, m := range open {
		if over, err := h.move(m, records[m.job.id]); over {
			h.mu.Lock()
			delete(h.moving, m.job.id)
			h.mu.Unlock()
		} else if err != nil {
			h.o.w.story.Logf("by hand: job %s: %v", m.job.id, err) // he looks again
		}
	}
}

// begin chooses jobs that run and are far from their end.
func (h *hand) begin(records map[string]record) {
	jobs := h.o.w.every()
	slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.id, b.id) })
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range jobs {
		j := jobs[(h.turns+i)%len(jobs)]
		told := fault.Read(j.journal(), j.epochs)
		if len(h.moving) >= atOnce {
			return
		}
		n := len(told.Attempts)
		if j.owner != h.o || j.plain || j.hurried() || h.moving[j.id] != nil || told.Ends > 0 || n == 0 || records[j.id]["JobState"] != "RUNNING" ||
			time.Since(told.Attempts[n-1].Began) < 3*time.Second {
			continue
		}
		h.turns++
		h.moving[j.id] = &moved{job: j, attempts: n}
	}
}

// move takes the next step that the job's state allows, and reports whether the move is
// over.
func (h *hand) move(m *moved, r record) (over bool, err error) {
	told := fault.Read(m.job.journal(), m.job.epochs)
	n := len(told.Attempts)
	waits := r["JobState"] == "PENDING" || r["JobState"] == "SPECIAL_EXIT" || r["JobState"] == "REQUEUE_HOLD"
	switch {
	case r == nil || r.ended() || told.Ends > 0 && r["JobState"] == "RUNNING":
		return true, nil
	case r["JobState"] == "RUNNING" && n > m.attempts:
		return true, nil
	case r["JobState"] == "RUNNING" && m.asked.IsZero():
		m.asked = time.Now()
		_, err = h.o.as("scancel", "--signal=USR1", "--batch", m.job.id)
	case r["JobState"] == "RUNNING" && n > 0 && !m.job.exit && told.Attempts[n-1].Saved > told.Attempts[n-1].From:
		_, err = h.o.as("scontrol", "requeuehold", m.job.id)
	case r["JobState"] == "RUNNING" && time.Since(m.asked) > 20*time.Second:
		return true, nil // it was not heard
	case waits && (r["Priority"] == "0" || strings.HasPrefix(r["Reason"], "JobHeld")) && !m.changed:
		m.changed = true
		_, err = h.o.as("scontrol", "update", "JobId="+m.job.id, "Comment=by hand")
	case waits && (r["Priority"] == "0" || strings.HasPrefix(r["Reason"], "JobHeld")):
		_, err = h.o.as("scontrol", "release", m.job.id)
	}
	if err != nil && refused(err) {
		err = nil
	}
	return false, err
}
