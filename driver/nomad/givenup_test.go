package nomad_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// A controller that sees why an intent is over gives it up, and never asks for a step of it
// again: here no one does after the first.
func TestAnIntentThatIsNotAskedForAgainIsClosed(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"its owner registers the job anew before it leaves":                               anewAsItLeaves,
		"the job ends by itself, and is a new job when it is run":                         endsUnasked,
		"its owner restarts it while it saves":                                            restartedAsItSaves,
		"a right is lost when the job has left, and it runs again":                        rightIsLost,
		"its client was restarted, and the job has ended meanwhile":                       nodeIsBack,
		"its client was restarted, and the job has ended before its attempt is discarded": discardsNothingUnseen,
		"its client cannot be reached for a moment: nothing counts as asked or seen":      clientIsAway,
	})
}

func (s *story) ask(t *testing.T, in driver.Intent) {
	t.Helper()
	if step, err := s.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Fatalf("step %+v (%v), want %s", step, err, driver.StepCheckpointing)
	}
}

func anewAsItLeaves(t *testing.T, s *story) {
	id, first := s.runs(t, mover(long), nil)
	s.ask(t, s.intent(first, "given-up", driver.Change{TimeLimit: time.Hour}))
	s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, `type      = "batch"`, "type      = \"batch\"\n  priority  = 60", 1)
	})
	again := s.wait(t, id, "what left runs again", func(j driver.Job) bool {
		return running(j) && j.Attempts[j.Attempt-1].Unit != first.Attempts[0].Unit
	})
	s.works(t, id)
	s.drives(t, s.intent(again, "next", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	if got := s.finish(t, id); got.State != driver.Succeeded {
		t.Errorf("%s (%s), want %s", got.State, got.Detail, driver.Succeeded)
	}
}

func endsUnasked(t *testing.T, s *story) {
	be := drivertest.Behaviour{Epochs: long, Epoch: epoch, IgnoreSignal: true}
	id := s.register(t, be, nil)
	s.ask(t, s.intent(s.started(t, id), "given-up", driver.Change{TimeLimit: time.Hour}))
	first := s.finish(t, id)
	s.register(t, be, func(file string) string {
		return strings.Replace(file, `    task "main" {`, "    task \"main\" {\n      meta { again = \"second\" }", 1)
	})
	second := s.wait(t, id, "it is run as a new job", func(j driver.Job) bool { return j.Submitted.After(first.Submitted) && j.State == driver.Running })
	if second.Attempt != 1 {
		t.Errorf("the new job is in attempt %d, want 1", second.Attempt)
	}
}

func restartedAsItSaves(t *testing.T, s *story) {
	id, first := s.runs(t, drivertest.Behaviour{Epochs: long, Epoch: epoch, IgnoreSignal: true}, nil)
	in := s.intent(first, "restarted", driver.Change{TimeLimit: time.Hour})
	s.ask(t, in)
	if err := s.clean.Allocations().Restart(&api.Allocation{ID: s.allocs(t, id)[0].ID}, "main", s.read()); err != nil {
		t.Fatal(err)
	}
	s.drives(t, in, driver.StepSuperseded)
}

func rightIsLost(t *testing.T, s *story) {
	id := s.register(t, mover(long), nil)
	in := s.intent(s.started(t, id), "refused", driver.Change{TimeLimit: time.Hour})
	s.ask(t, in)
	s.proxy.set(func(p *proxy) {
		p.answer = func(r *http.Response) error {
			if strings.HasSuffix(r.Request.URL.Path, "/plan") {
				r.StatusCode = http.StatusForbidden
				return say(r, "Permission denied")
			}
			return nil
		}
	})
	eventually(t, "it is refused", func() bool {
		_, err := s.d.Advance(t.Context(), in)
		return errors.Is(err, driver.ErrDenied)
	})
	if got := s.finish(t, id); got.State != driver.Succeeded || len(got.Attempts) != 2 || got.Attempts[1].Intent != "" {
		t.Errorf("%s (%s) after %+v, want %s after a second attempt under its owner's settings", got.State, got.Detail, got.Attempts, driver.Succeeded)
	}
}

func ofNode(path string) bool { return strings.HasPrefix(path, "/v1/node/") }

// nodeIsBack: a client that comes back believes of its tasks what it knew when it was
// killed. Nothing is registered over a job until it has had time to look.
func nodeIsBack(t *testing.T, s *story) {
	var back atomic.Bool
	edit(s.proxy, ofNode, func(n *api.Node) {
		if back.Load() {
			n.StatusUpdatedAt++
		}
	})
	id := s.register(t, sayer(long), nil)
	in := says(s.intent(s.started(t, id), "too-soon", driver.Change{TimeLimit: time.Hour}))
	s.ask(t, in)
	back.Store(true)
	eventually(t, "it has saved, and its node has yet to look", func() bool {
		step, err := s.d.Advance(t.Context(), in)
		return err == nil && strings.Contains(step.Detail, "its node has come back")
	})
	defer s.hurry(t)()
	s.drives(t, in, driver.StepFinished)
	if n := s.proxy.count("PUT /v1/job"); n != 0 {
		t.Errorf("%d registrations, want none", n)
	}
	if len(s.found(t, id, `(?m)^(saved)$`)) == 0 {
		t.Error("it never saved, so that the test shows nothing")
	}
}

// discardsNothingUnseen: where a client has come back a moment ago, an attempt that Nomad
// takes for one that runs may have done its work.
func discardsNothingUnseen(t *testing.T, s *story) {
	back := time.Now().Unix()
	edit(s.proxy, ofNode, func(n *api.Node) { n.StatusUpdatedAt = back })
	id := s.register(t, mover(long), nil)
	in := s.intent(s.started(t, id), "too-soon", driver.Change{TimeLimit: time.Hour})
	in.Discard = true
	back = time.Now().Unix()
	s.ask(t, in)
	defer s.hurry(t)()
	s.drives(t, in, driver.StepFinished)
	if n := s.proxy.count("PUT /v1/job"); n != 0 {
		t.Errorf("%d registrations, want none", n)
	}
}

// clientIsAway: where no server is connected to a client, as while it is restarted, Nomad answers with 404.
func clientIsAway(t *testing.T, s *story) {
	id := s.register(t, mover(long), nil)
	job := s.started(t, id)
	discards := s.intent(job, "discards", driver.Change{TimeLimit: time.Hour})
	discards.Discard = true
	in := s.intent(job, "moved", driver.Change{TimeLimit: time.Hour})
	away := func(alloc string) {
		s.proxy.set(func(p *proxy) {
			p.answer = func(r *http.Response) error {
				if path := r.Request.URL.Path; !strings.HasPrefix(path, "/v1/client/") || !strings.Contains(path, alloc) {
					return nil
				}
				r.StatusCode = http.StatusNotFound
				return say(r, "No path to node")
			}
		})
	}
	first := s.allocs(t, id)[0].ID
	away(first)
	for _, in := range []driver.Intent{says(s.intent(job, "says", driver.Change{TimeLimit: time.Hour})), discards} {
		if step, err := s.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrTransient) {
			t.Errorf("step %+v (%v), want %v", step, err, driver.ErrTransient)
		}
	}
	if _, err := s.d.Logs(t.Context(), id, 0); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("Logs: %v, want %v", err, driver.ErrTransient)
	}
	s.ask(t, in)
	away("none")
	s.drives(t, in, driver.StepStarted)
	away(first) // its node may be gone for good, and hides nothing of the next
	for _, offset := range []int64{0, 1} {
		in, err := s.d.Logs(t.Context(), id, offset)
		if err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
	}
}
