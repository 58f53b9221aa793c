package broker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/slurmctl"
)

// killed makes the broker lower the memory of a waiting job, which is then killed for it.
func killed(t *testing.T, change func(*broker.Config)) *rig {
	t.Helper()
	r := newRig(t, change)
	r.f.with(func(j *fakeJob) { j.state = "PENDING" })
	if err := r.client.Update(t.Context(), "7", size(0, 60, 0)); err != nil {
		t.Fatal(err)
	}
	r.f.with(func(j *fakeJob) { j.state = "OUT_OF_MEMORY" })
	return r
}

func TestAJobThatIsKilledForLessMemoryRunsAgainOnceWithItsOwners(t *testing.T) {
	t.Parallel()
	r := killed(t, nil)
	r.restart(t)
	if err := r.client.Do(t.Context(), slurmctl.Rerun, "7"); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), "7", start(0)); err != nil {
		t.Errorf("the wait is of our making: %v", err)
	}
	if err := r.client.Update(t.Context(), "7", size(0, 60, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "gets no less again") {
		t.Errorf("less memory after that: %v, want %v", err, driver.ErrDenied)
	}
	r.f.with(func(j *fakeJob) { j.state = "OUT_OF_MEMORY" })
	if err := r.client.Do(t.Context(), slurmctl.Rerun, "7"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "it had the memory that its owner asked for") {
		t.Errorf("a second rerun: %v, want %v", err, driver.ErrDenied)
	}
	want := []string{"update 7 MinMemoryNode=60", "rerun 7", "update 7 MinMemoryNode=100", "update 7 StartTime=now"}
	if got := r.f.did(); !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
}

func TestARerunThatIsCutOffIsFinished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cut  string // what does not come to be known
		next func(r *rig) error
	}{
		{"before it is in the queue", "rerun 7", func(r *rig) error { return r.client.Do(t.Context(), slurmctl.Rerun, "7") }},
		{"before it has its memory back, which limits do not keep from it", "update 7 MinMemoryNode=100", func(r *rig) error {
			r.f.mu.Lock()
			r.f.config, r.f.assoc = "AccountingStorageEnforce = limits\n", strings.ReplaceAll(limited, "cpu=6(3)", "cpu=6(6)")
			r.f.mu.Unlock()
			return r.client.Update(t.Context(), "7", size(0, 100, 0))
		}},
		{"and it began, and was killed, before that", "update 7 MinMemoryNode=100", func(r *rig) error {
			r.f.with(func(j *fakeJob) { j.state = "OUT_OF_MEMORY" })
			return r.client.Do(t.Context(), slurmctl.Rerun, "7")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := killed(t, nil)
			r.f.mu.Lock()
			r.f.lose = c.cut
			r.f.mu.Unlock()
			if err := r.client.Do(t.Context(), slurmctl.Rerun, "7"); !errors.Is(err, driver.ErrUnknown) {
				t.Fatalf("an unknown outcome: %v", err)
			}
			r.restart(t)
			if err := c.next(r); err != nil {
				t.Fatal(err)
			}
			r.f.with(func(j *fakeJob) {
				if j.state != "PENDING" || j.mib != 100 {
					t.Errorf("the job is %s with %d MiB", j.state, j.mib)
				}
			})
		})
	}
}

func TestAKillForMemoryStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		job   func(*fakeJob)
		words string
	}{
		{"where its owner forbids restarts by now", func(j *fakeJob) { j.noRequeue = true }, "--no-requeue"},
		{"where the memory was its owner's own word", func(j *fakeJob) { j.mib = 50 }, "it had the memory that its owner asked for"},
		{"where the job is another of the same number", func(j *fakeJob) { j.submitted = j.submitted.Add(1e9) }, "it had the memory that its owner asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := killed(t, nil)
			r.f.with(c.job)
			if err := r.client.Do(t.Context(), slurmctl.Rerun, "7"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %v with the words %q", err, driver.ErrDenied, c.words)
			}
			if did := r.f.did(); len(did) != 1 {
				t.Errorf("done all the same: %q", did)
			}
		})
	}
}

func TestWhereMemoryIsNotLowered(t *testing.T) {
	t.Parallel()
	mem := strings.ReplaceAll(limited, "cpu=6(3)", "mem=900(0)")
	for _, c := range []struct {
		name   string
		change func(f *fake)
		want   error // nil: it is done
		words  string
	}{
		{"nothing is against it", func(*fake) {}, nil, ""},
		{"a job depends on it", func(f *fake) { f.dependants = "8 9 afterany:6(unfulfilled),afterok:7(unfulfilled) after\n" }, driver.ErrUnsupported, "job 8 depends on it"},
		{"the next of its name waits for it", func(f *fake) { f.dependants = "8 7 singleton(unfulfilled) train\n" }, driver.ErrUnsupported, "job 8 depends on it"},
		{"others depend on others", func(f *fake) {
			f.dependants = "7 7 afterok:5(unfulfilled) train\n8 9 singleton(unfulfilled) train\n10 7 afterok:77(unfulfilled) train\n"
		}, nil, ""},
		{"slurmctld forgets ended jobs at once", func(f *fake) { f.config = strings.ReplaceAll(f.config, "300 sec", "60 sec") }, driver.ErrUnsupported, "MinJobAge"},
		{"the configuration does not say when it forgets them", func(f *fake) { f.config = "AccountingStorageEnforce = none\n" }, driver.ErrUnsupported, "MinJobAge"},
		{"a limit counts memory, which it would get back", func(f *fake) { f.config, f.assoc = f.config+"AccountingStorageEnforce = limits\n", mem }, driver.ErrDenied, "after a kill for memory"},
		{"a limit counts cores alone", func(f *fake) {
			f.config, f.assoc, f.job.cores = f.config+"AccountingStorageEnforce = limits\n", limited, 2
		}, nil, ""},
		{"the limits cannot be read", func(f *fake) { f.config += "AccountingStorageEnforce = limits\n" }, driver.ErrTransient, "cannot be read"},
		{"the job has no amount of memory", func(f *fake) { f.job.mib = 0 }, driver.ErrDenied, "no amount of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.mu.Lock()
			r.f.job.state = "PENDING"
			c.change(r.f)
			r.f.mu.Unlock()
			may := r.client.May(t.Context(), "7", size(0, 60, 0))
			err := r.client.Update(t.Context(), "7", size(0, 60, 0))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.words) || (may == nil) != (err == nil) {
				t.Errorf("%v, beforehand %v; want %v with the words %q", err, may, c.want, c.words)
			}
			if did := r.f.did(); (len(did) == 0) != (err != nil) {
				t.Errorf("done: %q", did)
			}
		})
	}
}

func TestMemoryThatWasGivenIsNeverLessAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) {
		c.Script = func(string, []byte) (broker.Stanza, error) {
			return broker.Stanza{Apply: true, Cores: broker.Knob{Min: 1, Max: 4}, Memory: broker.Knob{Min: 10 << 20, Max: 100 << 20}}, nil
		}
	})
	r.f.with(func(j *fakeJob) { j.state = "PENDING" })
	for _, c := range []struct {
		cores, mib int
		want       error
	}{
		{0, 60, nil},
		{0, 60, nil}, // a repeat
		{0, 50, driver.ErrDenied},
		{0, 70, nil},
		{2, 0, nil}, // besides the memory that it has, whatever depends on it by now
		{0, 60, nil},
		{0, 59, driver.ErrDenied},
		{4, 100, nil},
		{0, 9, driver.ErrDenied},
	} {
		r.f.mu.Lock()
		r.f.dependants = ""
		if c.cores > 0 {
			r.f.dependants = "8 9 afterok:7(unfulfilled) after\n"
		}
		r.f.mu.Unlock()
		if err := r.client.Update(t.Context(), "7", size(c.cores, c.mib, 0)); !errors.Is(err, c.want) {
			t.Errorf("%d cores with %d MiB: %v, want %v", c.cores, c.mib, err, c.want)
		}
	}
}

func TestMemoryByCPUComesBackAsTheSameInAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.state, j.perCPU, j.mib, j.threads, r.f.nodes = "PENDING", true, 25, "1", "4|2\n" })
	if err := r.client.Update(t.Context(), "7", size(2, 60, 0)); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("of a job that gets more CPUs than it asks for: %v, want %v", err, driver.ErrUnsupported)
	}
	r.f.with(func(j *fakeJob) { j.threads = "" })
	if err := r.client.Update(t.Context(), "7", size(2, 60, 0)); err != nil {
		t.Fatal(err)
	}
	r.f.with(func(j *fakeJob) { j.state = "OUT_OF_MEMORY" })
	if err := r.client.Do(t.Context(), slurmctl.Rerun, "7"); err != nil {
		t.Fatal(err)
	}
	if did := r.f.did(); did[len(did)-1] != "update 7 MinMemoryNode=100" {
		t.Errorf("done: %q", did)
	}
}

func TestFewerCoresWithLessMemoryAreRefusedWhereItsOwnersWouldBeTooMuchForThem(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.mu.Lock()
	r.f.job.state, r.f.partition = "PENDING", " MaxMemPerCPU=40"
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "7", size(2, 60, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "MaxMemPerCPU 40, and the job would have 50") {
		t.Errorf("two cores of four with 60 MiB of 100: %v, want %v", err, driver.ErrDenied)
	}
	if err := r.client.Update(t.Context(), "7", size(3, 60, 0)); err != nil {
		t.Errorf("three: %v", err)
	}
}

func TestMemoryIsNotLoweredWhereLimitsCannotBeReadAlthoughTheJobJustRan(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.waits(t)
	r.f.mu.Lock()
	r.f.config += "AccountingStorageEnforce = limits\n"
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "7", size(0, 60, 0)); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("%v, want %v", err, driver.ErrTransient)
	}
	if err := r.client.Update(t.Context(), "7", size(2, 0, 0)); err != nil {
		t.Errorf("fewer cores: %v", err)
	}
}
