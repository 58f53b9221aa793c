package nomad_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/driver"
)

// A job that Nomad does not answer for, however long, is shown as what is known of it, and
// does not hold up the others.
func TestAJobThatNomadDoesNotAnswerForIsShownAsItWasRead(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"2.3 a job that Nomad does not answer for is reported, and the others go on": unanswered,
	})
}

func unanswered(t *testing.T, s *story) {
	var broken, away atomic.Bool
	broken.Store(true)
	s.proxy.set(func(p *proxy) {
		p.answer = func(r *http.Response) error {
			if r.Request.URL.Path == "/v1/job/bad/allocations" && broken.Load() {
				r.StatusCode = http.StatusInternalServerError
			}
			return nil
		}
		p.cut = func(*http.Request) (before, after bool) { return away.Load(), false }
	})
	named := func(file string) string { return strings.Replace(file, `job "conformance"`, `job "bad"`, 1) }
	bad := s.register(t, mover(long), named)
	good := s.register(t, mover(long), nil)
	const told = "does not answer for it"
	listed := func(is func(bad driver.Job) bool) func() bool {
		return func() bool {
			jobs, err := s.d.List(t.Context())
			var ok, other bool
			for _, j := range jobs {
				ok = ok || j.ID == bad && is(j)
				other = other || j.ID == good && j.State == driver.Running && !strings.Contains(j.Detail, told)
			}
			return err == nil && len(jobs) == 2 && ok && other
		}
	}
	eventually(t, "it is shown as the list has it", listed(func(j driver.Job) bool {
		return j.State == driver.Running && j.Attempt == 0 && j.Name == "bad" && j.Owner == s.ns && !j.Submitted.IsZero() && strings.Contains(j.Detail, told)
	}))
	if _, err := s.d.Watch(t.Context()); err != nil {
		t.Errorf("watch: %v", err)
	}
	broken.Store(false)
	eventually(t, "it is read", listed(func(j driver.Job) bool { return running(j) && j.Attempt == 1 && !strings.Contains(j.Detail, told) }))
	broken.Store(true)
	s.register(t, mover(long), func(file string) string {
		return strings.Replace(named(file), `type      = "batch"`, "type = \"batch\"\n  priority = 51", 1)
	})
	eventually(t, "it is shown as it was last read", listed(func(j driver.Job) bool { return running(j) && j.Attempt == 1 && strings.Contains(j.Detail, told) }))
	if _, err := s.d.Get(t.Context(), bad); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("Get: %v, want %v", err, driver.ErrTransient)
	}
	s.epochs(t, good, 1)
	s.drives(t, s.intent(s.get(t, good), "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	// Where Nomad answers for nothing at all nothing says which jobs there are.
	away.Store(true)
	if _, err := s.d.List(t.Context()); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("List without Nomad: %v, want %v", err, driver.ErrTransient)
	}
	away.Store(false)
	broken.Store(false)
	eventually(t, "it is read again", listed(func(j driver.Job) bool { return running(j) && !strings.Contains(j.Detail, told) }))
}
