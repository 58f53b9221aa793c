package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func (b *bench) outlook(id driver.JobID) driver.Outlook {
	b.Helper()
	got, err := b.c.Outlook(b.Context(), id)
	if err != nil {
		b.Fatalf("Outlook(%s): %v", id, err)
	}
	return got
}

// wantWait compares a wait; a negative one is unknown.
func (b *bench) wantWait(id driver.JobID, want time.Duration) {
	b.Helper()
	switch got := b.outlook(id).Wait; {
	case want < 0 && got != nil:
		b.Errorf("job %s would wait %v, want unknown", id, *got)
	case want >= 0 && (got == nil || *got != want):
		b.Errorf("job %s would wait %v, want %v", id, got, want)
	}
}

const minute = time.Minute

func TestARestartWaitsForThoseThatTakeItsRoom(t *testing.T) {
	t.Parallel()
	one := sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 8 << 30}}}
	const behaviour = "epochs=1000 seconds=10 checkpoint=1s"
	for _, tt := range []struct {
		name   string
		others []string // submitted after the job, in this order
		want   time.Duration
	}{
		{"an empty queue", nil, 0},
		{"others that fit beside it", []string{"cpus-per-task=2"}, 0},
		{"one that is waiting for its room, with a limit", []string{"cpus-per-task=4 time=00:10:00"}, 10 * minute},
		{"one that is waiting for its room, without a limit", []string{"cpus-per-task=4"}, -1},
		{"one that its room is not enough for", []string{"cpus-per-task=2 time=00:20:00", "cpus-per-task=4 time=00:10:00"}, 30*minute - 30*time.Second},
		{"one that could never start before it", []string{"cpus-per-task=2", "cpus-per-task=4 time=00:10:00"}, -1},
		{"two, one after the other", []string{"cpus-per-task=4 time=00:10:00", "cpus-per-task=4 time=00:05:00"}, 15 * minute},
		{"two beside each other", []string{"cpus-per-task=3 time=00:10:00", "cpus-per-task=1 time=00:05:00", "cpus-per-task=1 time=00:05:00"}, 10 * minute},
		{"one whose memory it takes", []string{"cpus-per-task=1 mem=8G time=00:10:00"}, 10 * minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, one, func(b *bench) {
				job := b.submit("cpus-per-task=2 mem=1024M", behaviour)
				for _, options := range tt.others {
					b.submit(options, behaviour)
				}
				b.until(30 * time.Second)
				b.wantWait(job.ID, tt.want)
			})
		})
	}
}

// What the outlook says is what happens, where the jobs before it use up their time.
func TestTheOutlookComesTrue(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 8 << 30}}}, func(b *bench) {
		job := b.submit("cpus-per-task=4", "epochs=6 seconds=10 checkpoint=0s")
		b.submit("cpus-per-task=3 time=00:10:00", "epochs=1 seconds=10 hang_at=1")
		b.submit("cpus-per-task=2 time=00:10:00", "epochs=1 seconds=10 hang_at=1")
		b.until(10 * time.Second)
		wait := b.outlook(job.ID).Wait
		if wait == nil || *wait != 20*minute {
			b.Fatalf("it would wait %v, want 20 minutes", wait)
		}
		in := b.intent(job.ID, "in", driver.Change{TimeLimit: time.Hour})
		b.drive(in)
		end := b.ended(job.ID)
		if got := end.Attempts[1].Started.Sub(end.Attempts[0].Ended); got != *wait {
			b.Errorf("it waited %v, the outlook was %v", got, *wait)
		}
	})
}

func TestAHeldJobHoldsNoOtherUpUntilItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 8 << 30}}}, func(b *bench) {
		job := b.submit("cpus-per-task=4", "epochs=100 seconds=10 checkpoint=1s")
		held := spec("cpus-per-task=4 time=00:10:00", "epochs=1 seconds=1")
		held.NotBefore = b.start.Add(time.Hour)
		late := b.submitSpec(held)
		b.wantWait(job.ID, 0)
		b.wantWait(late.ID, -1) // a change would end its hold; the other has no limit
	})
}

func TestTheOutlookThatAJobFileDictates(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=6 seconds=10 checkpoint=1s queue_wait=10m closed_at=30m closed_by=maint-7")
		b.until(15 * time.Second)
		want := b.start.Add(30 * minute)
		if got := b.outlook(job.ID); !got.Closed.Equal(want) || got.ClosedBy != "maint-7" {
			b.Errorf("outlook %+v, want closed by maint-7 at %v", got, want)
		}
		b.wantWait(job.ID, 10*minute)
		b.drive(b.intent(job.ID, "in", driver.Change{TimeLimit: time.Hour}))
		b.wantState(job.ID, driver.Pending)
		// An intent changes what it runs under, and not when it runs.
		starts := time.Now().Add(*b.outlook(job.ID).Wait)
		b.until(minute)
		b.drive(b.intent(job.ID, "again", driver.Change{TimeLimit: 2 * time.Hour}))
		b.wantWait(job.ID, time.Until(starts))
		end := b.ended(job.ID)
		if len(end.Attempts) != 2 || !end.Attempts[1].Started.Equal(starts) || starts.Sub(end.Attempts[0].Ended) < 10*minute {
			b.Errorf("attempts %+v; want 2, the second at %v, ten minutes after the first", end.Attempts, starts)
		}
		if got := b.outlook(job.ID); got != (driver.Outlook{}) {
			b.Errorf("outlook of an ended job: %+v", got)
		}
	})
}

func TestAReservationThatBeganIsNotTheNext(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=60 seconds=10 closed_at=1m closed_by=maint")
		b.until(2 * minute)
		if got := b.outlook(job.ID); !got.Closed.IsZero() || got.ClosedBy != "" {
			b.Errorf("outlook %+v, want none planned", got)
		}
	})
}

func TestAnOutlookThatIsNotGiven(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	inBubble(t, sim.Config{Faults: sim.Script(sim.Fault{Op: sim.OpOutlook, Err: down})}, func(b *bench) {
		job := b.submit("", "epochs=1 seconds=1")
		if _, err := b.c.Outlook(b.Context(), job.ID); !errors.Is(err, down) {
			b.Errorf("Outlook: %v, want %v", err, down)
		}
	})
}

func TestALiveSettingSteersTheJob(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		s := spec("", "epochs=4 seconds=10 batch=batch_size show_settings=true")
		s.NotBefore = b.start.Add(time.Hour)
		job := b.submitSpec(s)
		live := map[string]string{"batch_size": "64"}
		b.drive(b.intent(job.ID, "in", driver.Change{Live: live}))
		live["batch_size"] = "128" // the caller's map is the caller's
		end := b.ended(job.ID)
		got := b.logs(job.ID)
		if !strings.Contains(got, `settings {"revision":1,"settings":{"batch_size":64}}`+"\n") || !strings.Contains(got, "batch 64,") {
			b.Errorf("output:\n%s\nwant the settings and batch 64", got)
		}
		if end.Change.Live["batch_size"] != "64" || end.Attempts[0].Change.Live["batch_size"] != "64" {
			b.Errorf("change %+v, attempt %+v", end.Change, end.Attempts[0])
		}
		end.Attempts[0].Change.Live["batch_size"] = "1"
		if b.get(job.ID).Attempts[0].Change.Live["batch_size"] != "64" {
			b.Error("a caller wrote into the cluster")
		}
	})
}

func TestADeclaredLiveKnobHasItsFileFromTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		s := spec("", "epochs=1 seconds=1 show_settings=true")
		s.Source = []byte(strings.Replace(string(s.Source), "#SIM", "#TUNE knob lr live=true values=1,2\n#SIM", 1))
		job := b.submitSpec(s)
		b.ended(job.ID)
		if got := b.logs(job.ID); !strings.Contains(got, `settings {"revision":1,"settings":{}}`+"\n") {
			b.Errorf("output:\n%s\nwant an empty settings file", got)
		}
	})
}
