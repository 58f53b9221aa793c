package sim_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func (b *bench) wantState(id driver.JobID, want driver.State) {
	b.Helper()
	if job := b.get(id); job.State != want {
		b.Errorf("at %v job %s is %s (%s), want %s", time.Since(b.start), id, job.State, job.Detail, want)
	}
}

// startedAt is when the job's first attempt began.
func (b *bench) startedAt(id driver.JobID) time.Duration { return b.get(id).Started.Sub(b.start) }

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 1 << 30}}}, func(b *bench) {
		first := b.submit("cpus-per-task=3", "epochs=10 seconds=1")
		large := b.submit("cpus-per-task=4", "epochs=5 seconds=1")
		small := b.submit("cpus-per-task=1", "epochs=1 seconds=1") // would fit next to the first
		if got := b.get(large.ID).Detail; got != "waits for room" {
			b.Errorf("detail of the large job is %q", got)
		}
		b.ended(small.ID)
		for id, want := range map[driver.JobID]time.Duration{first.ID: 0, large.ID: 10 * time.Second, small.ID: 15 * time.Second} {
			if got := b.startedAt(id); got != want {
				b.Errorf("job %s started after %v, want %v", id, got, want)
			}
		}
	})
}

func TestAHeldJobLetsOthersPass(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 1, MemoryBytes: 1 << 30}}}, func(b *bench) {
		s := spec("", "epochs=1 seconds=1")
		s.NotBefore = b.start.Add(time.Minute)
		held := b.submitSpec(s)
		free := b.submit("", "epochs=1 seconds=1")
		b.wantState(held.ID, driver.Pending)
		b.wantState(free.ID, driver.Running)
		b.ended(held.ID)
		if got := b.startedAt(held.ID); got != time.Minute {
			b.Errorf("held job started after %v, want 1m", got)
		}
	})
}

func TestNodesAreFilledInOrderAndMemoryCounts(t *testing.T) {
	t.Parallel()
	nodes := []sim.NodeSpec{{Name: "a", Cores: 4, MemoryBytes: 1 << 30}, {Name: "b", Cores: 4, MemoryBytes: 4 << 30}}
	inBubble(t, sim.Config{Nodes: nodes}, func(b *bench) {
		var got []string
		for _, options := range []string{"mem=600M", "mem=600M", "cpus-per-task=3", "cpus-per-task=4", "cpus-per-task=3"} {
			got = append(got, b.get(b.submit(options, "epochs=9 seconds=1").ID).Node)
		}
		want := []string{"a", "b", "a", "", ""}
		for i := range want {
			if got[i] != want[i] {
				b.Fatalf("nodes %q, want %q", got, want)
			}
		}
	})
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	if _, err := sim.New(sim.Config{Nodes: []sim.NodeSpec{{Name: "n", MemoryBytes: 1}}}); err == nil {
		t.Error("a node without cores is no error")
	}
}

func TestWatchTellsOfChangesWhenTheyHappen(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		events, err := b.c.Watch(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		job := b.submit("", "epochs=3 seconds=10")
		if e := <-events; e.Job != job.ID || time.Since(b.start) != 0 {
			b.Errorf("event %+v after %v, want the start at once", e, time.Since(b.start))
		}
		// No call is made meanwhile.
		for e := range events {
			if e.Job != job.ID {
				b.Fatalf("event of job %q", e.Job)
			}
			if time.Since(b.start) >= 30*time.Second {
				break
			}
		}
		if got := time.Since(b.start); got != 30*time.Second {
			b.Errorf("event of the end after %v, want 30s", got)
		}
		b.wantState(job.ID, driver.Succeeded)
	})
}

func TestWatchMergesWhatASlowReaderMissed(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		events, err := b.c.Watch(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for range 50 {
			b.submit("", "epochs=1 seconds=1")
		}
		b.until(time.Hour)
		got := 0
		for {
			select {
			case <-events:
				got++
				time.Sleep(time.Millisecond) // lets the stream bring the next one
				continue
			default:
			}
			break
		}
		// Fifty jobs, and the few that the stream held in its hand before.
		if got < 50 || got > 100 {
			b.Errorf("%d events of 50 jobs that changed hundreds of times", got)
		}
	})
}

func TestCloseEndsWatchesAndJobs(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		b.submit("", "epochs=3 seconds=10")
		events, err := b.c.Watch(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.c.Close()
		n := 0
		for range events {
			n++
		}
		if n > 1 {
			b.Errorf("%d events of one job before the end", n)
		}
		_, err = b.c.List(b.Context())
		wantError(b.T, err, driver.ErrTransient)
		b.c.Close()
	})
}

// Many callers at once; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		var ids []driver.JobID
		for range 8 {
			ids = append(ids, b.submit("cpus-per-task=4", "epochs=20 seconds=1 noise=0.2 checkpoint=1s").ID)
		}
		events, err := b.c.Watch(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		var callers sync.WaitGroup
		for n, id := range ids {
			in := b.intent(id, "in", driver.Change{Cores: 1 + n})
			callers.Go(func() {
				for range 100 {
					if _, err := b.c.Advance(b.Context(), in); err != nil {
						b.Error(err)
					}
					if _, err := b.c.Window(b.Context(), string(id), 0, 0); err != nil && !errors.Is(err, driver.ErrNotFound) {
						b.Error(err)
					}
					if _, err := b.c.List(b.Context()); err != nil {
						b.Error(err)
					}
					time.Sleep(700 * time.Millisecond)
				}
			})
			callers.Go(func() {
				for range 5 {
					<-events
				}
			})
		}
		callers.Wait()
		for _, id := range ids {
			if job := b.ended(id); job.State != driver.Succeeded {
				b.Errorf("job %s is %s", id, job.State)
			}
			b.wantEpochs(id, 20)
		}
	})
}
