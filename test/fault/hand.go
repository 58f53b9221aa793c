package fault

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sandbox"
)

// Move is a job in the middle of a move by hand.
type Move struct {
	ID       string
	Attempts int       // that had begun before
	Asked    time.Time // to save; zero = not yet
	Changed  bool
}

// Hand is an owner who moves his jobs without a tuner, a few at a time. He looks at the
// scheduler before each step, so that he goes on after whatever was killed meanwhile.
type Hand struct {
	steady sync.Mutex // held for each round of steps

	mu     sync.Mutex
	moving map[string]*Move
	turns  int // moves that began
}

// ByHand moves jobs until the test ends. Ready are the moves that may begin, in an order
// that stays the same; step takes the next step that the job's state allows and reports
// whether the move is over.
func ByHand(t testing.TB, story *Story, atOnce int, ready func() []Move, step func(m *Move) (over bool, err error)) *Hand {
	t.Helper()
	h := &Hand{moving: map[string]*Move{}}
	sandbox.Beside(t, "the hand", func(ctx context.Context) error {
		for ctx.Err() == nil {
			h.round(story, atOnce, ready, step)
			_ = driver.Pause(ctx, 300*time.Millisecond) // the loop looks at ctx
		}
		return nil
	})
	return h
}

func (h *Hand) round(story *Story, atOnce int, ready func() []Move, step func(m *Move) (bool, error)) {
	h.steady.Lock()
	defer h.steady.Unlock()
	candidates := ready()
	h.mu.Lock()
	for i := 0; i < len(candidates) && len(h.moving) < atOnce; i++ {
		if c := candidates[(h.turns+i)%len(candidates)]; h.moving[c.ID] == nil {
			h.turns++
			h.moving[c.ID] = &c
		}
	}
	open := slices.Collect(maps.Values(h.moving))
	h.mu.Unlock()
	for _, m := range open {
		over, err := step(m)
		if err != nil {
			story.Logf("by hand: job %s: %v", m.ID, err) // he looks again
		}
		if over {
			h.mu.Lock()
			delete(h.moving, m.ID)
			h.mu.Unlock()
		}
	}
}

// Rest has the hand rest between two steps until the answer is called.
func (h *Hand) Rest() (goOn func()) {
	h.steady.Lock()
	return h.steady.Unlock
}

// Moving are the jobs in the middle of a move.
func (h *Hand) Moving() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.moving))
}
