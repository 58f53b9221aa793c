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

// A client that was cut off from its server says late how a task of it ended: its
// allocation counts as lost first, and the change is done. Where the work turns out to
// have been done before the change, what runs of it again is stopped.
func TestWorkThatWasDoneAsItsClientSaysLateIsStopped(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){"the client says so when the next attempt runs": saidLate})
}

func saidLate(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	first, _, _ := strings.Cut(job.Attempts[0].Unit, ".")
	var left, said atomic.Bool
	asked := func(path string) bool { return strings.HasSuffix(path, "/allocations") && left.Load() }
	edit(s.proxy, asked, func(list *[]*api.AllocationListStub) {
		for _, a := range *list {
			if a.ID == first {
				a.ClientStatus, a.TaskStates = api.AllocClientStatusLost, nil
				if said.Load() {
					a.ClientStatus = api.AllocClientStatusComplete
					a.TaskStates = map[string]*api.TaskState{"main": {State: "dead", StartedAt: job.Started, FinishedAt: job.Started.Add(time.Second), Events: []*api.TaskEvent{
						{Type: api.TaskStarted, Time: job.Started.UnixNano()},
						{Type: api.TaskTerminated, Time: job.Started.Add(time.Second).UnixNano(), Details: map[string]string{"exit_code": "0"}},
					}}}
				}
			}
		}
	})
	in := s.intent(job, "moved", driver.Change{TimeLimit: time.Hour})
	eventually(t, "it is changed", func() bool {
		step, err := s.d.Advance(t.Context(), in)
		left.Store(step.Kind == driver.StepChanged)
		return err == nil && (left.Load() || step.Kind.Done())
	})
	s.drives(t, in, driver.StepStarted)
	said.Store(true)
	eventually(t, "it is stopped", func() bool {
		_, _ = s.d.Advance(t.Context(), in)
		return *s.nomadJob(t, id).Stop
	})
	if got := s.wait(t, id, "it is over", ended); got.State != driver.Succeeded {
		t.Errorf("%s (%s), want %s: its work was done", got.State, got.Detail, driver.Succeeded)
	}
}

// TestAJobWhoseStartHadNoAnswerIsFound, so that a search that ends can end it.
func TestAJobWhoseStartHadNoAnswerIsFound(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){"the answer is lost": func(t *testing.T, s *story) {
		events, err := s.d.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range events { // List uses its list
			}
		}()
		var away atomic.Bool
		s.proxy.set(func(p *proxy) {
			p.cut = func(r *http.Request) (before, after bool) {
				before, after = away.Load(), registers(r)
				if after {
					away.Store(true) // and then Nomad is gone
				}
				return before, after
			}
		})
		if _, err := s.d.Start(t.Context(), "request", s.job(t, drivertest.Behaviour{Epochs: long, Epoch: epoch})); err == nil {
			t.Fatal("Start has an answer")
		}
		if id, err := s.d.Find(t.Context(), "request"); err == nil || errors.Is(err, driver.ErrNotFound) {
			t.Errorf("%q, %v; want that it is not known", id, err)
		}
		s.proxy.set(func(p *proxy) { p.cut = nil })
		id, err := s.d.Find(t.Context(), "request")
		if err != nil || *s.nomadJob(t, id).Status == "dead" {
			t.Errorf("%q, %v; want the job that runs", id, err)
		}
		if _, err := s.d.Find(t.Context(), "another"); !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("of no request: %v, want %v", err, driver.ErrNotFound)
		}
	}})
}
