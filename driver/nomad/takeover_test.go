package nomad_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/nomadagent"
)

func TestWhatIsKnownStaysKnown(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"a controller that stands by changes nothing, and knows after Recall what the one before noted": standsBy,
	})
}

var errStandby = errors.New("another leads")

func standsBy(t *testing.T, s *story) {
	var leads atomic.Bool
	cfg := s.cfg
	cfg.Leads = func(context.Context) error {
		if leads.Load() {
			return nil
		}
		return errStandby
	}
	standby := func() *nomad.Driver {
		d, err := nomad.New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	other := standby()
	// Without a stanza: who does not know the request does not see its job.
	job, err := s.d.Start(t.Context(), "request", s.job(t, mover(long)))
	if err != nil {
		t.Fatal(err)
	}
	// By another, since each driver that is asked for a job looks up its record.
	if err := standby().Stop(t.Context(), job.ID); !errors.Is(err, nomad.ErrNotLeading) || !errors.Is(err, driver.ErrTransient) {
		t.Errorf("Stop while another leads: %v, want %v", err, nomad.ErrNotLeading)
	}
	s.epochs(t, job.ID, 1)
	if got := s.wait(t, job.ID, "it runs", running); s.proxy.count("DELETE") != 0 {
		t.Errorf("it was stopped: %s", got.State)
	}
	lists := func() bool {
		jobs, err := other.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(jobs, func(j driver.Job) bool { return j.ID == job.ID && j.Request == "request" })
	}
	if lists() {
		t.Error("the job of the other's request is listed: the test shows nothing")
	}
	if err := s.d.Close(); err != nil { // it leads no more
		t.Fatal(err)
	}
	leads.Store(true)
	if err := other.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !lists() {
		t.Error("after Recall the job of the other's request is not listed")
	}
	if err := other.Stop(t.Context(), job.ID); err != nil {
		t.Error(err)
	}
}

func TestAllNamespacesAreSeenAndAJobInEachIsMoved(t *testing.T) { // not parallel: a machine has its limits
	nomadagent.Both(t, nomadagent.Options{ACL: true}, func(t *testing.T, a *nomadagent.Agent) {
		clean := a.Client(t)
		// The token may list everything that it may read, which is not all there is.
		s, other := limited(t, a, "")
		hidden := &api.Namespace{Name: s.ns + "-hidden"}
		if _, err := clean.Namespaces().Register(hidden, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.d.Close(); err != nil {
			t.Fatal(err)
		}
		s.cfg.Namespaces = []string{api.AllNamespacesNamespace}
		s.open(t)
		other.d = s.d
		away := &story{bench: &bench{ns: hidden.Name, dir: t.TempDir(), policy: s.policy, client: clean}, clean: clean}
		t.Cleanup(func() { away.deregister(t) })
		away.register(t, mover(long), nil)
		var moved []driver.JobID
		for _, part := range []*story{s, other} {
			id := part.register(t, mover(long), nil)
			part.epochs(t, id, 1)
			job := part.wait(t, id, "it runs", running)
			if step := part.drive(t, part.intent(job, "moved", driver.Change{TimeLimit: time.Hour})); step.Kind != driver.StepStarted {
				t.Errorf("%s: step %+v", id, step)
			}
			moved = append(moved, id)
		}
		listed := func(want ...driver.JobID) func() bool {
			return func() bool {
				jobs, err := s.d.List(t.Context())
				var got []driver.JobID
				for _, j := range jobs {
					got = append(got, j.ID)
				}
				slices.Sort(got)
				slices.Sort(want)
				return err == nil && slices.Equal(got, want)
			}
		}
		eventually(t, "the jobs of both namespaces are listed, and no other", listed(moved...))
		done(t)(clean.Jobs().Deregister("conformance", true, other.write()))
		eventually(t, "a purged job is forgotten, though its namespace is empty now", listed(moved[0]))
	})
}
