package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// submitted shows a cluster's jobs as if their users had registered them with a change.
type submitted struct {
	*sim.Cluster
	intent string
	change driver.Change
}

func (s submitted) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	job, err := s.Cluster.Get(ctx, id)
	if err != nil {
		return job, err
	}
	job.Intent, job.Change = s.intent, s.change
	for i := range job.Attempts {
		job.Attempts[i].Intent, job.Attempts[i].Change, job.Attempts[i].Cause = s.intent, s.change, driver.CauseIntent
	}
	return job, nil
}

// offers keeps offers as they are.
type offers struct {
	kept  map[string]reconcile.Offer
	fails bool
}

func (o *offers) Put(_ context.Context, x reconcile.Offer) error {
	if o.fails {
		return errInjected
	}
	o.kept[x.ID] = x
	return nil
}

func (o *offers) Get(_ context.Context, id string) (reconcile.Offer, error) {
	if x, ok := o.kept[id]; ok {
		return x, nil
	}
	return reconcile.Offer{}, reconcile.ErrNoOffer
}

func (o *offers) Delete(_ context.Context, id string) error { delete(o.kept, id); return nil }

// recalling decides for a job that waits that it begins with one core.
func recalling(reason tuning.Reason) func(tuning.State) tuning.Decision {
	return func(s tuning.State) tuning.Decision {
		if s.Pending {
			return tuning.Decision{Action: tuning.Move, Reason: reason, Settings: cores(1), At: s.Now}
		}
		return tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonWarmingUp, At: s.Now}
	}
}

func fits(context.Context, driver.Change) error { return nil }

// offering is a world in which offers are kept, and what the job of them will be.
func offering(t *testing.T, reason tuning.Reason) (*world, *offers, driver.Job) {
	t.Helper()
	w, err := newWorld(t.Context(), sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.offers = &offers{kept: map[string]reconcile.Offer{}}
	w.decide = recalling(reason)
	w.restart()
	return w, w.offers, driver.Job{ID: "1", Name: "train", Owner: "alice", State: driver.Pending, Resources: driver.Resources{Cores: 4}}
}

// A job that was offered something is known for it however it is first seen, and nothing
// is done to it again.
func TestAJobThatBeganWithAnOfferIsTheOneItWasMadeTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// seen is when the job is looked at first.
		seen    time.Duration
		restart bool // of the controller, before that
		recalls bool
	}{
		{"while it waits", 0, false, true},
		{"as it runs", 3 * time.Second, false, true},
		{"as it runs, by another controller", 3 * time.Second, true, true},
		{"after its end", 10 * time.Minute, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, kept, draft := offering(t, tuning.ReasonRecalled)
				defer w.cluster.Close()
				o, err := w.loop.Offer(t.Context(), "1/offer", draft, fits)
				if err != nil || o.Change.Cores != 1 || len(kept.kept) != 1 {
					t.Fatalf("offer %+v, %v", o, err)
				}
				w.scheduler = submitted{w.cluster, o.ID, o.Change}
				w.restart()
				job, err := w.submit("train", "epochs=20 seconds=1")
				if err != nil || job.ID != o.Job {
					t.Fatalf("job %s, %v", job.ID, err)
				}
				time.Sleep(c.seen)
				if c.restart {
					w.restart()
				}
				if err := w.drive(job.ID); err != nil {
					t.Fatal(err)
				}
				rec, err := w.records.Load(t.Context(), job.ID)
				if err != nil {
					t.Fatal(err)
				}
				if !rec.Recalled() || len(rec.Runs) != 1 || rec.Runs[0].Action != tuning.Move || len(rec.Restarts)+len(rec.Probed) != 0 {
					t.Errorf("runs %+v, %d restarts, %d probes; want one that was recalled", rec.Runs, len(rec.Restarts), len(rec.Probed))
				}
				for _, line := range w.trace {
					if line != "audit 1/offer" {
						t.Errorf("%s: something was done to it again", line)
					}
				}
				acts := tuning.Each(w.audits, func(a reconcile.Audit) string { return a.Action })
				if diff := cmp.Diff([]string{"offer", "move"}, acts); diff != "" {
					t.Errorf("the audit: %s", diff)
				}
				if len(kept.kept) != 0 {
					t.Error("the offer is still there")
				}
				told := false
				for _, e := range rec.History {
					told = told || e.To == reconcile.Changing && e.Decision != nil && e.Decision.Reason == tuning.ReasonRecalled
				}
				if !told {
					t.Errorf("its story does not tell why: %+v", rec.History)
				}
			})
		})
	}
}

func TestNothingIsOfferedWhereAWaitingJobWouldNotBeChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(w *world, o *offers)
	}{
		{"while the tuner is paused", func(w *world, _ *offers) { w.gate = tuning.ReasonPaused }},
		{"to the untuned share", func(w *world, _ *offers) { w.site.Control = 1; w.past = []tuning.PastRun{{}} }},
		{"without a stanza", func(w *world, _ *offers) {
			w.read = func(driver.Job) reconcile.Reading { return reconcile.Reading{Reason: tuning.ReasonNoStanza} }
		}},
		{"where too many jobs are tuned", func(w *world, _ *offers) { w.site.MaxTuned = 1 }},
		{"where a hold is decided", func(w *world, _ *offers) {
			w.decide = func(s tuning.State) tuning.Decision {
				return tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonFirstSeen, At: s.Now}
			}
		}},
		{"that cannot be audited", func(w *world, _ *offers) { w.auditFails = true }},
		{"that cannot be kept", func(_ *world, o *offers) { o.fails = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, kept, draft := offering(t, tuning.ReasonRecalled)
				defer w.cluster.Close()
				if _, err := w.loop.Offer(t.Context(), "0/other", driver.Job{ID: "0", Name: "other", State: driver.Pending, Resources: draft.Resources}, fits); err != nil {
					t.Fatal(err)
				}
				c.set(w, kept)
				if o, err := w.loop.Offer(t.Context(), "1/offer", draft, fits); err == nil {
					t.Errorf("it was offered %+v", o)
				}
				if _, there := kept.kept["1/offer"]; there {
					t.Error("an offer that was not made is kept")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w, _, draft := offering(t, tuning.ReasonRecalled)
		defer w.cluster.Close()
		_, err := w.loop.Offer(t.Context(), "1/offer", draft, func(context.Context, driver.Change) error { return driver.ErrUnsupported })
		if !errors.Is(err, reconcile.ErrNoOffer) || !errors.Is(err, driver.ErrUnsupported) || len(w.audits) != 0 {
			t.Errorf("where its scheduler would not take it: %v, audit %+v", err, w.audits)
		}
	})
}

// An offer counts like a job until its job is seen, and no longer than a minute where
// its user never submits.
func TestAnOfferCountsUntilItsJobIsSeenOrItLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, draft := offering(t, tuning.ReasonTryingReturn)
		defer w.cluster.Close()
		w.policy.Budget.Returns = 1
		w.past = []tuning.PastRun{{}}
		w.restart()
		if _, err := w.loop.Offer(t.Context(), "1/a", draft, fits); err != nil {
			t.Fatal(err)
		}
		other := draft
		other.ID = "2"
		if _, err := w.loop.Offer(t.Context(), "2/b", other, fits); !errors.Is(err, reconcile.ErrNoOffer) {
			t.Errorf("the budget of one try was offered twice: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := w.loop.Offer(t.Context(), "2/c", other, fits); err != nil {
			t.Errorf("no one submitted in a minute, and it is still not free: %v", err)
		}
	})
}

// Memory alone is not offered to a job whose first epochs would teach more; the epochs of a
// job that only whole runs can tune teach nothing of that kind.
func TestMemoryIsOfferedWhereEpochsTeachNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		knob    tuning.Knob
		offered bool
	}{
		"its cores may be tried as it runs":  {tuning.Knob{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(4)}}, false},
		"its batch changes between its runs": {tuning.Knob{Name: "batch", Env: "B", Values: []tuning.Value{tuning.Number(32), tuning.Number(64)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _, draft := offering(t, tuning.ReasonRightSized)
				defer w.cluster.Close()
				big, small := tuning.Number(8<<30), tuning.Number(1<<30)
				w.policy.Knobs = []tuning.Knob{c.knob, {Name: tuning.Memory, Min: small, Max: big}}
				w.read = func(job driver.Job) reconcile.Reading {
					return reconcile.Reading{Policy: w.policy, Own: own(job).With(tuning.Memory, big), Kind: tuning.JobKind{Owner: "alice", Name: job.Name}}
				}
				w.decide = func(s tuning.State) tuning.Decision {
					return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRightSized, Settings: s.Own.With(tuning.Memory, small)}
				}
				if o, err := w.loop.Offer(t.Context(), "1/offer", draft, fits); (err == nil) != c.offered {
					t.Errorf("offer %+v, %v; want one: %t", o, err, c.offered)
				}
			})
		})
	}
}
