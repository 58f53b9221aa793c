package daemon

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestAJobThatSaysSoItselfIsOff(t *testing.T) {
	t.Parallel()
	p := &pauses{on: map[string]api.Pause{}, off: map[string]string{}}
	if got := p.gate(driver.Job{ID: "7", Off: true}); got != tuning.ReasonOff {
		t.Errorf("gate %q, want %q", got, tuning.ReasonOff)
	}
	if got := p.gate(driver.Job{ID: "7"}); got != tuning.ReasonNone {
		t.Errorf("gate %q of another, want none", got)
	}
}

func TestOffIsForTheJobThatWasNamedAndNotForALaterOneOfItsName(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	first := time.Now()
	if err := store.PutJSON(bucketOff, "older", "alice"); err != nil { // as it was stored before
		t.Fatal(err)
	}
	p, err := loadPauses(store)
	if err == nil {
		err = p.switchOff("train", first)
	}
	if err == nil {
		p, err = loadPauses(store)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		job  driver.Job
		want tuning.Reason
	}{
		{"the job itself", driver.Job{ID: "train", Submitted: first}, tuning.ReasonOff},
		{"one that was submitted later", driver.Job{ID: "train", Submitted: first.Add(time.Second)}, tuning.ReasonNone},
		{"any job of an older entry", driver.Job{ID: "older", Submitted: first}, tuning.ReasonOff},
	} {
		if got := p.gate(c.job); got != c.want {
			t.Errorf("%s: gate %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatIsSaidOfJobsThatAreGoneIsPruned(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	p, err := loadPauses(store)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for key, at := range map[string]time.Time{"known": now.AddDate(0, -2, 0), "request/known": now.AddDate(0, -2, 0), "gone": now.AddDate(0, -2, 0), "new": now} {
		if err := p.switchOff(key, at); err != nil {
			t.Fatal(err)
		}
		if err := p.put(api.Pause{Scope: ScopeJob, Name: key, By: "alice", At: at}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.put(api.Pause{Scope: ScopeUser, Name: "alice", By: "alice", At: now.AddDate(0, -2, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := p.prune(now.Add(-keepRecords), map[string]bool{"known": true, "request/known": true}); err != nil {
		t.Fatal(err)
	}
	again, err := loadPauses(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*pauses{p, again} {
		if _, on := p.get(ScopeJob, "gone"); p.isOff("gone") || on || len(p.off) != 3 || len(p.on) != 4 {
			t.Errorf("kept off %v, paused %v", p.off, slices.Collect(maps.Keys(p.on)))
		}
	}
}
