package nomad_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
)

// An id may end like one of Nomad's query paths: a query about such a job is taken for one
// about another.
func TestAnIDThatNomadTakesForAQuestionHidesNoOtherJob(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"2.3 a job whose id ends as a question is seen and refused": misread,
	})
}

func misread(t *testing.T, s *story) {
	good := s.register(t, mover(long), nil)
	odd := []string{"x/allocations", "x/plan", "x/evaluations"}
	for _, name := range odd {
		s.register(t, mover(long), func(file string) string {
			return strings.Replace(file, `job "conformance"`, fmt.Sprintf("job %q", name), 1)
		})
		s.stopsByRegistration(t, name)
	}
	plain := s.job(t, mover(long)) // without a stanza
	plain.Source = []byte(strings.Replace(string(plain.Source), `job "conformance"`, `job "my/plan"`, 1))
	_, refused := nomad.Submission{Client: s.clean}.Submit(t.Context(), plain)
	if _, _, _, err := s.clean.Jobs().Versions("my/plan", false, s.read()); !errors.Is(refused, driver.ErrInvalid) || !strings.Contains(fmt.Sprint(refused), "give it another id") || err == nil {
		t.Errorf("submitted: %v, %v; want %v and no job", refused, err, driver.ErrInvalid)
	}
	plain = s.job(t, mover(long))
	plain.Source = []byte(strings.Replace(string(plain.Source), `job "conformance"`, `job "plain/summary"`, 1))
	job, err := s.clean.Jobs().ParseHCL(string(plain.Source), true)
	if err != nil {
		t.Fatal(err)
	}
	done(t)(s.clean.Jobs().Register(job, s.write()))
	s.stopsByRegistration(t, *job.ID)
	eventually(t, "all with a stanza are listed", func() bool {
		jobs, err := s.d.List(t.Context())
		if err != nil {
			t.Logf("list: %v", err)
			return false
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, strings.TrimSuffix(string(j.ID), "@"+s.ns))
		}
		slices.Sort(ids)
		return slices.Equal(ids, []string{"conformance", "x/allocations", "x/evaluations", "x/plan"})
	})
	if _, err := s.d.Watch(t.Context()); err != nil {
		t.Errorf("watch: %v", err)
	}
	for _, name := range odd {
		id := driver.JobID(name + "@" + s.ns)
		job := s.wait(t, id, "it runs", running)
		_, err := s.d.Advance(t.Context(), s.intent(job, "refused", driver.Change{TimeLimit: time.Hour}))
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "give it another id") {
			t.Errorf("%s: %v, want %v and why", name, err, driver.ErrUnsupported)
		}
	}
	s.drives(t, s.intent(s.started(t, good), "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
}

// stopsByRegistration makes a job end with the test that Nomad would not deregister: a
// path asks for that, too.
func (s *story) stopsByRegistration(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		versions, _, _, err := s.clean.Jobs().Versions(name, false, s.read())
		if err == nil && len(versions) > 0 {
			versions[0].Stop = new(true)
			_, _, err = s.clean.Jobs().Register(versions[0], s.write())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// A job that cannot be read hides no other, and is looked at again.
func TestAJobThatCannotBeReadHidesNoOther(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"2.3 a job that Nomad answers for with something else": unreadable,
	})
}

func unreadable(t *testing.T, s *story) {
	s.aged(t)
	var broken atomic.Bool
	broken.Store(true)
	s.proxy.set(func(p *proxy) {
		p.answer = func(r *http.Response) error {
			if r.Request.URL.Path == "/v1/job/bad" && broken.Load() {
				r.StatusCode = http.StatusInternalServerError
			}
			return nil
		}
	})
	s.register(t, mover(long), func(file string) string { return strings.Replace(file, `job "conformance"`, `job "bad"`, 1) })
	good := s.register(t, mover(long), nil)
	listed := func(names ...string) func() bool {
		return func() bool {
			jobs, err := s.d.List(t.Context())
			var ids []string
			for _, j := range jobs {
				ids = append(ids, strings.TrimSuffix(string(j.ID), "@"+s.ns))
			}
			slices.Sort(ids)
			return err == nil && slices.Equal(ids, names)
		}
	}
	eventually(t, "the other is listed", listed("conformance"))
	s.wait(t, good, "the other runs", running)
	broken.Store(false)
	eventually(t, "it is read again", listed("bad", "conformance"))
}
