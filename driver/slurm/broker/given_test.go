package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

// What a job counts for is what Slurm gives it, which may be more than it asks for.
func TestWhatAJobIsGivenCountsAndNotWhatItAsksFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(f *fake)
		cores  int
		want   string // of the refusal; empty = it is done
	}{
		{"as many as it asks for", func(*fake) {}, 3, ""},
		{"both threads of a core", func(f *fake) { f.nodes = "4|2\n" }, 5, ""},
		{"both threads of each core", func(f *fake) { f.nodes = "8|1\n4|2\n"; f.assoc = strings.ReplaceAll(limited, "cpu=6(3)", "cpu=6(2)") }, 5, "the job would add 6"},
		{
			"single threads where these are given", func(f *fake) {
				f.config += "SelectTypeParameters = CR_CPU_Memory\n"
				f.nodes, f.assoc = "4|2\n", strings.ReplaceAll(limited, "cpu=6(3)", "cpu=6(1)")
			}, 5, "",
		},
		{"whole sockets", func(f *fake) { f.config += "SelectTypeParameters = CR_Socket\n"; f.nodes = "4|2\n" }, 1, "the job would add 8"},
		{"nodes that its user has to himself", func(f *fake) { f.job.shares = "USER" }, 1, ""},
		{"a node of its own", func(f *fake) { f.job.shares = "NO" }, 1, "more than the cores that it asks for"},
		{"nodes of a partition that gives whole ones", func(f *fake) { f.partition = " OverSubscribe=EXCLUSIVE" }, 1, "more than the cores that it asks for"},
		{"nodes of a cluster that gives whole ones", func(f *fake) { f.config += "SelectType = select/linear\n" }, 1, "more than the cores that it asks for"},
		{"one thread of each core, and the others with it", func(f *fake) { f.job.threads, f.nodes = "1", "4|2\n" }, 1, "more than the cores that it asks for"},
		{"one thread of cores that have no more", func(f *fake) { f.job.threads = "1" }, 3, ""},
		{"a node of its own where no limit is", func(f *fake) { f.job.shares, f.config = "NO", "AccountingStorageEnforce = none\n" }, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := twoJobs(t)
			r.f.mu.Lock()
			r.f.second.gone = true
			c.change(r.f)
			r.f.mu.Unlock()
			err := r.client.Update(t.Context(), "7", size(c.cores, 0, 0))
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestAJobOfAWholeNodeThatWaitsIsNotCountedByItsCores(t *testing.T) {
	t.Parallel()
	r := twoJobs(t)
	if err := r.client.Update(t.Context(), "8", size(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	r.f.second.shares = "NO"
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "7", size(2, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "what a job that waits has of that is unknown") {
		t.Errorf("%v, want %v", err, driver.ErrDenied)
	}
}

func TestFewerCoresWithMoreMemoryEachThanAPartitionGivesAreRefusedBeforehand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, partition, config string }{
		{"by the partition", " MaxMemPerCPU=40", ""},
		{"by the cluster", " MaxMemPerNode=UNLIMITED", "MaxMemPerCPU = 40\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil) // no limits are enforced
			r.f.mu.Lock()
			r.f.partition = c.partition
			r.f.config += c.config
			r.f.mu.Unlock()
			err := r.client.May(t.Context(), "7", size(2, 0, 0))
			if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "partition main has MaxMemPerCPU 40, and the job would have 50") {
				t.Errorf("two cores of four with 100 MiB: %v, want %v", err, driver.ErrDenied)
			}
			if err := r.client.May(t.Context(), "7", size(3, 0, 0)); err != nil {
				t.Errorf("three: %v", err)
			}
		})
	}
}

func TestTheMinutesThatAJobHasLeftAreNotCountedAgainstIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.mu.Lock()
	// Four cores for an hour, of which it has run a quarter, and no other runs.
	r.f.job.started = time.Now().Add(-15 * time.Minute)
	r.f.config = "AccountingStorageEnforce = associations,limits\n"
	r.f.assoc = strings.ReplaceAll(limited, "cpu=6(3) GrpTRESMins= GrpTRESRunMins=", "cpu=N(4) GrpTRESMins= GrpTRESRunMins=cpu=240(180)")
	if !strings.Contains(r.f.assoc, "cpu=240(180)") {
		t.Fatal("the fake has no such limit")
	}
	r.f.mu.Unlock()
	if err := r.client.May(t.Context(), "7", size(3, 0, 0)); err != nil {
		t.Error(err)
	}
}

func TestAJobWithADeadlineIsNotMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.deadline = stamp(time.Now().Add(time.Hour)) })
	if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v, want %v", err, driver.ErrUnsupported)
	}
}
