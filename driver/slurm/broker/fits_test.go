package broker_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
)

// twoJobs is a rig with jobs 7 and 8 of alice that wait, and her limit of six CPUs,
// unused by others.
func twoJobs(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, func(c *broker.Config) { c.Above = []string{"main"} })
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.f.config, r.f.assoc = "AccountingStorageEnforce = associations,limits,qos\n", strings.ReplaceAll(limited, "cpu=6(3)", "cpu=6(0)")
	r.f.job.state = "PENDING"
	second := r.f.job
	r.f.second = &second
	return r
}

func TestJobsThatWaitWithASizeOfOursCountAsUsed(t *testing.T) {
	t.Parallel()
	r := twoJobs(t)
	second := func(change func(*fakeJob)) {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		change(r.f.second)
	}
	refused := func(what, words string) {
		t.Helper()
		err := r.client.Update(t.Context(), "7", size(3, 0, 0))
		if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %v with the words %q", what, err, driver.ErrDenied, words)
		}
	}
	if err := r.client.Update(t.Context(), "8", size(5, 0, 0)); err != nil {
		t.Fatal(err)
	}
	refused("beside five that wait", "GrpTRES=cpu 6, of which other jobs use 5, and the job would add 3")
	if err := r.client.May(t.Context(), "7", size(3, 0, 0)); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("asked beforehand: %v, want %v", err, driver.ErrDenied)
	}
	second(func(j *fakeJob) { j.state = "COMPLETING" })
	refused("beside five that may be put back", "of which other jobs use 5")
	second(func(j *fakeJob) { j.state = "PENDING" })
	// Back at its owner's size it stays free of its limits.
	if err := r.client.Update(t.Context(), "8", size(4, 0, 0)); err != nil {
		t.Fatal(err)
	}
	refused("beside one that has its owner's size again", "of which other jobs use 4")
	second(func(j *fakeJob) { j.uid = 9 })
	if err := r.client.Update(t.Context(), "7", size(3, 0, 0)); err != nil {
		t.Errorf("beside another user's job of that number: %v", err)
	}
	second(func(j *fakeJob) { j.uid, j.state = 7, "RUNNING" })
	if err := r.client.Update(t.Context(), "7", size(2, 0, 0)); err != nil {
		t.Errorf("beside one that runs, which Slurm counts: %v", err)
	}
}

func TestOfTwoRequestsAtATimeTheSecondSeesTheFirst(t *testing.T) {
	t.Parallel()
	r := twoJobs(t)
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, id := range []string{"7", "8"} {
		both.Go(func() { errs[i] = r.client.Update(t.Context(), id, size(5, 0, 0)) })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), driver.ErrDenied) {
		t.Errorf("%v and %v, want that one is refused", errs[0], errs[1])
	}
	if did := r.f.did(); len(did) != 1 {
		t.Errorf("done: %q, want one update", did)
	}
}

func TestASizeThatAJobHasIsNotSetOnceMore(t *testing.T) {
	t.Parallel()
	r := twoJobs(t)
	// It would free the job from its limits.
	if err := r.client.Update(t.Context(), "7", size(4, 100, 60)); err != nil {
		t.Error(err)
	}
	if did := r.f.did(); len(did) > 0 {
		t.Errorf("done: %q, want nothing", did)
	}
	r.f.with(func(j *fakeJob) { j.state = "RUNNING" })
	r.waits(t)
	u := size(4, 100, 60)
	u.Start = start(time.Minute).Start
	if err := r.client.Update(t.Context(), "7", u); err != nil {
		t.Error(err)
	}
	if did := r.f.did(); !slices.Equal(did[2:], []string{"update 7 StartTime=now+60"}) {
		t.Errorf("done: %q, want the start alone", did)
	}
}

func TestWhatSqueuePrintsOfOthersIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"a|b", "physics|1"} {
		r := twoJobs(t)
		r.f.mu.Lock()
		r.f.second.account = account
		r.f.mu.Unlock()
		if err := r.client.Update(t.Context(), "7", size(5, 0, 0)); !errors.Is(err, driver.ErrTransient) || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v, want %v", account, err, driver.ErrTransient)
		}
	}
}

func TestATimeLimitWhereThereIsNoneMayBeGivenInAPartitionAbove(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Above = []string{"main"} })
	r.f.with(func(j *fakeJob) { j.state, j.minutes = "PENDING", 0 })
	for _, minutes := range []int{60, 120} {
		if err := r.client.Update(t.Context(), "7", size(0, 0, minutes)); err != nil {
			t.Errorf("%d minutes: %v", minutes, err)
		}
	}
	if err := r.client.Update(t.Context(), "7", size(0, 500, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "does not allow 500 MiB") {
		t.Errorf("memory that the knob does not have: %v, want %v", err, driver.ErrDenied)
	}
	if did := r.f.did(); len(did) != 2 {
		t.Errorf("done: %q, want 2 updates", did)
	}
}
