package pair_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon"
	"pitchpipe/controller/store"
	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/nomadagent"
)

// strike is how the one that leads ends.
type strike string

const (
	released strike = "it ends and gives its lock back"
	deposed  strike = "its lock is taken away"
	killed   strike = "it is killed, and its lock lapses"
)

// signalled and registered are the requests of a move after which it does.
func signalled(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/signal") }

func registered(r *http.Request) bool {
	return r.Method != http.MethodGet && (r.URL.Path == "/v1/jobs" || r.URL.Path == "/v1/job/work")
}

func TestTheNextLeaderFinishesAMoveAndTheJobIsDoneOnce(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		for name, story := range map[string]struct {
			how    strike
			behind func(*http.Request) bool
		}{
			"its lock is taken away behind the signal":         {deposed, signalled},
			"it is killed behind the registration, unanswered": {killed, registered},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if story.how == killed && testing.Short() {
					t.Skip("it waits for a lock to lapse, 22 s")
				}
				takeOver(t, a, story.how, story.behind)
			})
		}
	})
}

func takeOver(t *testing.T, a *nomadagent.Agent, how strike, behind func(*http.Request) bool) {
	s := newSite(t, a)
	first := s.start(t, "first")
	s.leads(t, "first")
	second := s.start(t, "second")
	id := s.register(t)
	job := s.wait(t, first, id, "two epochs are done", func(driver.Job) bool { return len(s.lines(t, "done")) >= 2 })
	intent := driver.Intent{
		ID: "moved", Job: id, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: driver.Change{Env: map[string]string{"MOVED": "once"}},
		Checkpoint: &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: savedExit}, Note: "a test",
	}
	if _, err := second.driver.Advance(t.Context(), intent); !errors.Is(err, nomad.ErrNotLeading) {
		t.Fatalf("the one that stands by: %v, want %v", err, nomad.ErrNotLeading)
	}
	if n := second.way.count(func(r *http.Request) bool { return signalled(r) || registered(r) }); n != 0 {
		t.Fatalf("the one that stands by has asked %d times for a change", n)
	}
	struck := make(chan struct{})
	first.way.strike(behind, how == killed, func() {
		if how == deposed {
			s.freeLock(t)
		}
		close(struck)
	})
	until(t, "the leader is struck in the middle of the move", func() bool {
		step, err := first.driver.Advance(t.Context(), intent)
		select {
		case <-struck:
			return true
		default:
		}
		if err != nil && !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown) || step.Kind.Done() {
			t.Fatalf("before it is struck: %+v, %v", step, err)
		}
		return false
	})
	first.end(t, how)
	before := first.way.count(func(r *http.Request) bool { return signalled(r) || registered(r) })
	_, _ = first.driver.Advance(t.Context(), intent) // it may see how far the move is, or nothing
	if n := first.way.count(func(r *http.Request) bool { return signalled(r) || registered(r) }); n != before {
		t.Errorf("the one that led before has asked for a change %d times since", n-before)
	}
	s.leads(t, "second")
	until(t, "the next leader ends the move", func() bool {
		step, err := second.driver.Advance(t.Context(), intent)
		if err != nil && !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown) || step.Kind.Done() && step.Kind != driver.StepStarted {
			t.Fatalf("the next leader: %+v, %v", step, err)
		}
		return err == nil && step.Kind.Done()
	})
	if err := os.WriteFile(filepath.Join(s.dir, "finish"), nil, 0o600); err != nil { // its epochs take no time from now on
		t.Fatal(err)
	}
	job = s.wait(t, second, id, "it ends", func(j driver.Job) bool { return j.State.Ended() })
	if job.State != driver.Succeeded || len(job.Attempts) != 2 || job.Attempts[1].Intent != "moved" {
		t.Errorf("the job: %s %q, attempts %+v", job.State, job.Detail, job.Attempts)
	}
	s.judge(t)
	second.end(t, released)
}

// judge looks at what the job and Nomad say.
func (s *site) judge(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(s.epochs(), s.lines(t, "done")); diff != "" {
		t.Errorf("epochs, -want +done:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"owner", "once"}, s.lines(t, "starts")); diff != "" {
		t.Errorf("starts, -want +got:\n%s", diff)
	}
	if n := len(s.lines(t, "ends")); n != 1 {
		t.Errorf("it ended %d times", n)
	}
	q := &api.QueryOptions{Namespace: s.ns}
	versions, _, _, err := s.clean.Jobs().Versions("work", false, q)
	if err != nil {
		t.Fatal(err)
	}
	allocs, _, err := s.clean.Jobs().Allocations("work", true, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 2 || len(allocs) != 2 {
		t.Errorf("%d versions and %d allocations, want two of each", len(versions), len(allocs))
	}
}

// end ends a controller.
func (m *member) end(t *testing.T, how strike) {
	t.Helper()
	if how != deposed {
		m.cancel()
	}
	err := <-m.done
	switch {
	case how == deposed && !errors.Is(err, daemon.ErrDeposed):
		t.Errorf("%s ended with %v, want %v", m.name, err, daemon.ErrDeposed)
	case how == released && err != nil, how == killed && err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, daemon.ErrDeposed) && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s ended with %v", m.name, err)
	}
	m.cancel()
}
