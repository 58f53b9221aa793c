package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// believing is a scheduler that may have verified the accounts of its jobs.
type believing struct {
	driver.Driver
	accounts bool
}

// Capabilities implements driver.Driver.
func (b believing) Capabilities() driver.Capabilities {
	return driver.Capabilities{Accounts: b.accounts}
}

func TestTheSiteKnowsAJobByItsQOSWhereThatWasVerified(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(path, []byte("qos:\n  gold: {max_mode: apply}\naccount:\n  bio: {margin: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site, err := config.LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	job := driver.Job{Owner: "alice", Partition: "p", Account: "bio", QOS: "gold"}
	for _, tc := range []struct {
		accounts bool
		mode     tuning.Mode
		margin   float64
	}{{true, tuning.Apply, 3}, {false, tuning.DefaultSite().MaxMode, tuning.DefaultSite().Margin}} {
		got := (&services{driver: believing{accounts: tc.accounts}, site: site}).siteFor(job)
		if got.MaxMode != tc.mode || got.Margin != tc.margin {
			t.Errorf("verified %t: mode %s, margin %g; want %s, %g", tc.accounts, got.MaxMode, got.Margin, tc.mode, tc.margin)
		}
	}
}

func openStore(t testing.TB, dir string) *knowledge.Store {
	t.Helper()
	store, err := knowledge.Open(filepath.Join(dir, "k.db"), knowledge.Options{Wait: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestWhenTheTunerPausedItselfSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := openStore(t, dir)
	p, err := loadPauses(store)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	again := func() time.Time {
		t.Helper()
		q, err := loadPauses(store)
		if err != nil {
			t.Fatal(err)
		}
		if !q.clearedAt().Equal(p.clearedAt()) {
			t.Errorf("after a restart %s, before it %s", q.clearedAt(), p.clearedAt())
		}
		return q.clearedAt()
	}
	for _, x := range []api.Pause{{Scope: ScopeCluster, By: "root", At: at}, {Scope: ScopeJob, Name: "1", By: byTuner, At: at}} {
		if err := p.put(x); err != nil {
			t.Fatal(err)
		}
		if err := p.drop(x.Scope, x.Name); err != nil {
			t.Fatal(err)
		}
	}
	if got := again(); !got.IsZero() {
		t.Errorf("other people's pauses cleared the count at %s", got)
	}
	if err := p.put(api.Pause{Scope: ScopeCluster, By: byTuner, At: at}); err != nil {
		t.Fatal(err)
	}
	if got := again(); !got.Equal(at) {
		t.Errorf("paused itself at %s, want %s", got, at)
	}
	before := time.Now()
	if err := p.drop(ScopeCluster, ""); err != nil {
		t.Fatal(err)
	}
	if got := again(); got.Before(before) {
		t.Errorf("lifted at %s, want after %s", got, before)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// ended is the record of a job that was moved and is over since then.
func ended(id string, over time.Time) *reconcile.Record {
	return &reconcile.Record{
		Identity: reconcile.Identity{Job: driver.JobID(id), Name: "train", Owner: "alice", Submitted: over.Add(-time.Hour)},
		Phase:    reconcile.Ended,
		Course:   reconcile.Course{State: driver.Succeeded, Ended: over, Epochs: []tuning.Epoch{{Number: 1, Attempt: 1}}},
		Tuning:   reconcile.Tuning{Restarts: []time.Time{over}, Probed: []time.Time{over, over}, Outcome: &tuning.Outcome{Verdict: tuning.Improved}},
		Story:    reconcile.Story{History: []reconcile.Entry{{At: over, From: reconcile.Settled, To: reconcile.Ended, Trigger: reconcile.JobEnded}}},
	}
}

func TestOldStoriesAreDroppedAndStillCounted(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	live := &reconcile.Record{Identity: reconcile.Identity{Job: "live", Owner: "alice", Submitted: day(90)}, Phase: reconcile.Held}
	for _, rec := range []*reconcile.Record{ended("old", day(40)), ended("remembered", day(41)), ended("new", day(1)), ended("older", day(2)), live} {
		if err := r.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	known := func(id driver.JobID) bool { return id == "remembered" }
	dropped := func(before time.Time, most, want int) {
		t.Helper()
		if n, err := r.prune(before, most, known); n != want || err != nil {
			t.Errorf("%d were dropped (%v), want %d", n, err, want)
		}
	}
	dropped(day(30), 10, 2)
	dropped(day(30), 10, 0)
	for id, want := range map[driver.JobID]bool{"old": false, "remembered": true, "new": true, "older": true, "live": true} {
		if _, err := r.Load(t.Context(), id); (err == nil) != want {
			t.Errorf("record of %s: %v; want it kept: %t", id, err, want)
		}
	}
	rest, err := r.Load(t.Context(), "remembered")
	if err != nil || !rest.Phase.Over() || len(rest.Epochs)+len(rest.History) > 0 || rest.Owner != "alice" || !rest.OverAt().Equal(day(41)) {
		t.Errorf("what is left of a job that its scheduler knows is %+v (%v)", rest, err)
	}
	dropped(day(30), 1, 1) // the older one of two
	if _, err := r.Load(t.Context(), "older"); err == nil {
		t.Error("more are kept than should be")
	}
	again, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*records{r, again} {
		sum := x.totals()
		if sum.Restarts != 4 || sum.Probes != 8 || sum.Outcomes[tuning.Improved] != 4 || sum.phases[reconcile.Held] != 1 || sum.phases[reconcile.Ended] != 2 {
			t.Errorf("counted %+v and %v, want 4 restarts, 8 probes, 4 outcomes, one job held and two ended", sum, sum.phases)
		}
	}
	known = func(driver.JobID) bool { return false }
	dropped(day(30), 1, 1)
	if sum := r.totals(); sum.Restarts != 4 {
		t.Errorf("%d restarts after the last trace was dropped, want 4", sum.Restarts)
	}
}

// listing is a scheduler that knows one job, or does not answer.
type listing struct {
	driver.Driver
	err error
}

// List implements driver.Driver.
func (l listing) List(context.Context) ([]driver.Job, error) {
	return []driver.Job{{ID: "known"}}, l.err
}

func TestNoStoryIsDroppedWhileTheSchedulerIsAway(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"known", "forgotten"} {
		if err := r.Save(t.Context(), ended(id, time.Now().Add(-keepRecords-time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	for _, away := range []error{driver.ErrTransient, nil} {
		d := &Daemon{records: r, searches: trials.New(trials.Config{}), services: &services{store: store, driver: listing{err: away}, pauses: &pauses{}, log: slog.New(slog.DiscardHandler)}}
		if err := d.prune(t.Context()); !errors.Is(err, away) {
			t.Errorf("pruned with %v, want %v", err, away)
		}
		_, err := r.Load(t.Context(), "forgotten")
		if kept := err == nil; kept != (away != nil) {
			t.Errorf("the scheduler answers %v, and the story is kept: %t", away, kept)
		}
	}
	if rec, err := r.Load(t.Context(), "known"); err != nil || !rec.Pruned {
		t.Errorf("of a job that is known there is left %+v (%v)", rec, err)
	}
}

func TestTotalsAndEventsAreThoseOfTheRecords(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for i, id := range []string{"c", "a", "b"} {
		if err := r.Save(t.Context(), ended(id, now.Add(-time.Duration(i)*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	other := ended("hers", now)
	other.Owner = "bob"
	if err := r.Save(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	again, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*records{r, again} {
		var ids string
		for _, e := range x.events(func(owner string) bool { return owner == "alice" }) {
			ids += e.Job
			if e.Text == "" || e.Phase != string(reconcile.Ended) {
				t.Errorf("event %+v", e)
			}
		}
		if ids != "bac" {
			t.Errorf("events of jobs %s, want bac: hers are not shown, the newest comes last", ids)
		}
	}
}

// Name implements driver.Driver.
func (listing) Name() string { return "listing" }
