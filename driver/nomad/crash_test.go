package nomad_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/driver"
)

// A move goes on wherever the controller died: before a request of it reached Nomad,
// or after it and before the answer.
func TestAMoveGoesOnAfterACrashAtEachRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T, *story){}
	for n := range 2 {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("before request %d", n)
			if after {
				name = fmt.Sprintf("behind request %d", n)
			}
			tests[name] = func(t *testing.T, s *story) { crashAt(t, s, int64(n), after, false) }
			if n == 0 { // the registration; how many others there are is up to the client
				tests[name+", where the attempt is discarded"] = func(t *testing.T, s *story) { crashAt(t, s, 0, after, true) }
			}
		}
	}
	stories(t, tests)
}

// dieAt lets a controller carry out the intent that dies before or after the changing
// request of this number, and is started again.
func (s *story) dieAt(t *testing.T, in driver.Intent, n int64, after bool) {
	t.Helper()
	var seen atomic.Int64
	var crashed atomic.Bool
	s.proxy.set(func(p *proxy) {
		p.cut = func(r *http.Request) (bool, bool) {
			if !call(r) || seen.Add(1) != n+1 {
				return false, false
			}
			crashed.Store(true)
			return !after, after
		}
	})
	var last driver.Step
	reopened := false
	eventually(t, "the intent is done", func() bool {
		step, err := s.d.Advance(t.Context(), in)
		if crashed.Load() && !reopened {
			reopened = true
			s.reopen(t)
			return false
		}
		last = step
		return err == nil && step.Kind.Done()
	})
	if !reopened || last.Kind != driver.StepStarted {
		t.Fatalf("step %+v, crashed %v; want %s behind a crash", last, reopened, driver.StepStarted)
	}
}

func crashAt(t *testing.T, s *story, n int64, after, discard bool) {
	id, job := s.runs(t, mover(long), nil)
	in := s.intent(job, "moved", driver.Change{TimeLimit: time.Hour})
	in.Discard = discard
	s.dieAt(t, in, n, after)
	got := s.finish(t, id)
	if got.State != driver.Succeeded || len(got.Attempts) != 2 || got.Attempts[1].Intent != in.ID || got.Attempts[1].Change.TimeLimit != time.Hour {
		t.Errorf("%s after %+v, want two attempts, the second with the change", got.State, got.Attempts)
	}
	epochs := s.output(t, id)
	if cut := slices.Index(epochs[1:], "1") + 1; discard { // nothing was saved
		if cut == 0 {
			t.Fatalf("epochs %v, want the first again", epochs)
		}
		epochs = epochs[cut:]
	}
	for i, epoch := range epochs {
		if epoch != fmt.Sprint(i+1) {
			t.Fatalf("epochs %v, want each once", epochs)
		}
	}
	if v := *s.nomadJob(t, id).Version; v != 1 {
		t.Errorf("version %d, want 1: one change is one registration", v)
	}
}
