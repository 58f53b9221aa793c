package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

const saver = "epochs=10 seconds=4 parallel=1 checkpoint=5s start=3s"

// One move with every instant: the epoch in progress is finished, saving takes
// its time, and the next attempt goes on with the next epoch.
func TestMoveStepByStep(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", saver)
		b.until(8 * time.Second) // start 3 s, one epoch, one second of the second
		in := b.intent(job.ID, "in", driver.Change{Cores: 4})
		in.Note = "four cores:\n  epochs take a quarter"
		var got []string
		for _, at := range []int{8, 10, 15, 16, 17, 18, 19} {
			b.until(time.Duration(at) * time.Second)
			got = append(got, string(b.advance(in))+" "+string(b.get(job.ID).State))
		}
		want := []string{
			"checkpointing running", "checkpointing running", "checkpointing running",
			"stopped stopped", "changed stopped", "started running", "started running",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("steps (-want +got):\n%s", diff)
		}
		end := b.ended(job.ID)
		if end.State != driver.Succeeded || len(end.Attempts) != 2 {
			b.Fatalf("%s after %d attempts, want succeeded after 2", end.State, len(end.Attempts))
		}
		// Two epochs of 4 s after 3 s, then 5 s to save.
		if got := end.Attempts[0].Ended.Sub(b.start); got != 16*time.Second {
			b.Errorf("first attempt ended after %v, want 16s", got)
		}
		// Eight epochs of 1 s after 3 s, from 18 s on.
		if got := end.Ended.Sub(b.start); got != 29*time.Second {
			b.Errorf("the job ended after %v, want 29s", got)
		}
		a := end.Attempts[1]
		if a.Intent != "in" || a.Cause != driver.CauseIntent || a.Change.Cores != 4 || end.Attempts[0].ExitCode != 85 {
			b.Errorf("attempts %+v", end.Attempts)
		}
		b.wantEpochs(job.ID, 10)
		if note := "\npitchpipe: four cores: epochs take a quarter\n"; strings.Count(b.logs(job.ID), note) != 1 {
			b.Errorf("output does not hold the note once:\n%s", b.logs(job.ID))
		}
		if got := b.advance(in); got != driver.StepStarted {
			b.Errorf("after the end: %s, want started", got)
		}
	})
}

// What Advance answers in the end, for each way in which a job can meet it.
func TestAdvanceEndsAs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		options   string
		behaviour string
		at        time.Duration // when the intent is made
		tune      func(in *driver.Intent)
		want      []driver.StepKind
		state     driver.State // in the end
		attempts  int
	}{
		{
			"a job in its last epoch ends", "", "epochs=3 seconds=10 checkpoint=1s", 25 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepFinished},
			driver.Succeeded, 1,
		},
		{
			"a job that ignores the signal runs on", "", "epochs=20 seconds=10 ignore_signal=true", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepAbandoned},
			driver.Succeeded, 1,
		},
		{
			"a job that hangs is left alone", "time=00:10:00", "epochs=20 seconds=10 checkpoint=1s hang_at=2", 15 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepAbandoned},
			driver.TimeExceeded, 1,
		},
		{
			"a job that saves too late goes on by itself", "", "epochs=6 seconds=10 checkpoint=90s", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepAbandoned},
			driver.Succeeded, 2,
		},
		{
			"a job that knows no checkpoint dies of the signal", "", "epochs=6 seconds=10", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepFinished},
			driver.Failed, 1,
		},
		{
			"a job that leaves with another status has ended", "", "epochs=6 seconds=10 checkpoint=1s checkpoint_exit=9", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepFinished},
			driver.Failed, 1,
		},
		{
			"a job that says saved is stopped", "", "epochs=6 seconds=10 checkpoint=1s checkpoint_exit=none", 5 * time.Second,
			func(in *driver.Intent) { in.Checkpoint.Exit, in.Checkpoint.Done = 0, "^saved$" },
			[]driver.StepKind{driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted},
			driver.Succeeded, 2,
		},
		{
			"a job that says saved unasked runs on", "", "epochs=12 seconds=10 checkpoint=1s checkpoint_exit=none", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepAbandoned},
			driver.Succeeded, 1,
		},
		{
			"a job is asked while it starts up", "", "epochs=6 seconds=10 checkpoint=1s start=10s", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted},
			driver.Succeeded, 2,
		},
		{
			"the owner changed the job before the intent", "", "epochs=6 seconds=10 checkpoint=1s owner_changes_at=3s", 5 * time.Second,
			func(in *driver.Intent) { in.Fingerprint = "of before" },
			[]driver.StepKind{driver.StepSuperseded},
			driver.Succeeded, 1,
		},
		{
			"the owner changes the job while it saves", "", "epochs=6 seconds=10 checkpoint=9s owner_changes_at=12s", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepSuperseded},
			driver.Succeeded, 2,
		},
		{
			"the supervisor dies while it saves", "", "epochs=6 seconds=10 checkpoint=9s dies_at=12s", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepFinished},
			driver.Lost, 1,
		},
		{
			"the time limit comes while it saves", "time=00:00:12", "epochs=6 seconds=10 checkpoint=9s", 5 * time.Second, nil,
			[]driver.StepKind{driver.StepCheckpointing, driver.StepFinished},
			driver.TimeExceeded, 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, sim.Config{}, func(b *bench) {
				job := b.submit(tt.options, tt.behaviour)
				b.until(tt.at)
				in := b.intent(job.ID, "in", driver.Change{TimeLimit: time.Hour})
				if tt.tune != nil {
					tt.tune(&in)
				}
				if got := b.drive(in); !slices.Equal(got, tt.want) {
					b.Errorf("steps %v, want %v", got, tt.want)
				}
				end := b.ended(job.ID)
				if end.State != tt.state || len(end.Attempts) != tt.attempts {
					b.Errorf("%s after %d attempts, want %s after %d", end.State, len(end.Attempts), tt.state, tt.attempts)
				}
				if tt.state == driver.Succeeded {
					b.wantEpochs(job.ID, len(epochs(b.logs(job.ID))))
				}
				want := tt.want[len(tt.want)-1]
				if want != driver.StepStarted {
					want = driver.StepFinished
				}
				if got := b.advance(in); got != want {
					b.Errorf("asked again after the end: %s, want %s", got, want)
				}
			})
		})
	}
}

// A job that an intent holds between two attempts goes on as its owner wrote it
// when its owner edits it: the intent is void, and nothing stays held.
func TestAJobWhoseTunerDoesNotComeBackGoesOnByItself(t *testing.T) {
	t.Parallel()
	for _, steps := range []int{0, 1, 2} { // left, stopped, changed
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submit("", "epochs=6 seconds=10 checkpoint=1s")
			b.until(time.Second)
			in := b.intent(job.ID, "in", driver.Change{Cores: 2})
			b.advance(in)
			b.until(20 * time.Second)
			for range steps {
				b.advance(in)
			}
			end := b.ended(job.ID)
			if end.State != driver.Succeeded || len(end.Attempts) != 2 || end.Attempts[1].Change.Cores != 0 {
				b.Errorf("%s, attempts %+v; want success without the change", end.State, end.Attempts)
			}
			b.wantEpochs(job.ID, 6)
			if got := b.advance(in); got != driver.StepFinished {
				b.Errorf("step %s, want finished", got)
			}
		})
	}
}

func TestOwnersEditReleasesAHeldJob(t *testing.T) {
	t.Parallel()
	for _, steps := range []int{1, 2} { // stopped, changed
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submit("", "epochs=6 seconds=10 checkpoint=1s owner_changes_at=30s")
			b.until(time.Second)
			in := b.intent(job.ID, "in", driver.Change{Cores: 2})
			b.advance(in)
			b.until(20 * time.Second)
			for range steps {
				b.advance(in)
			}
			b.wantState(job.ID, driver.Stopped)
			b.until(40 * time.Second)
			if got := b.advance(in); got != driver.StepSuperseded {
				b.Errorf("step %s, want superseded", got)
			}
			end := b.ended(job.ID)
			if end.State != driver.Succeeded || len(end.Attempts) != 2 || end.Attempts[1].Change.Cores != 0 {
				b.Errorf("%s, attempts %+v; want success without the change", end.State, end.Attempts)
			}
			b.wantEpochs(job.ID, 6)
		})
	}
}

func TestOwnersLimitReturnsAfterATunedOneKilled(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("mem=1024M", "epochs=6 seconds=10 checkpoint=1s memory=512MiB")
		b.until(15 * time.Second)
		in := b.intent(job.ID, "in", driver.Change{MemoryBytes: 256 << 20, Cores: 2})
		b.drive(in)
		end := b.ended(job.ID)
		if end.State != driver.Succeeded || len(end.Attempts) != 3 {
			b.Fatalf("%s after %d attempts, want succeeded after 3", end.State, len(end.Attempts))
		}
		if a := end.Attempts[1]; a.ExitCode != 137 {
			b.Errorf("tuned attempt %+v, want exit code 137", a)
		}
		if a := end.Attempts[2]; a.Cause != driver.CauseMemory || a.Change.MemoryBytes != 0 || a.Change.Cores != 2 || a.Intent != "" {
			b.Errorf("last attempt %+v, want the owner's memory and the rest of the change", a)
		}
		b.wantEpochs(job.ID, 6)
	})
}

// An intent that meets a job whose owner's limit returns is void: it was made on
// the strength of a limit that did not do.
func TestIntentMeetsTheReturnOfMemory(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 1, MemoryBytes: 4 << 30}}}, func(b *bench) {
		s := spec("mem=1024M", "epochs=6 seconds=10 checkpoint=1s memory=512MiB")
		s.NotBefore = b.start.Add(time.Hour)
		job := b.submitSpec(s)
		b.drive(b.intent(job.ID, "tight", driver.Change{MemoryBytes: 256 << 20}))
		other := b.submit("", "epochs=1 seconds=100")
		for i, name := range []string{"asked before the kill", "made after it"} {
			in := b.intent(job.ID, name, driver.Change{MemoryBytes: 128 << 20})
			if i == 0 && b.advance(in) != driver.StepCheckpointing {
				b.Error("the attempt was not asked to save")
			}
			b.until(20 * time.Second) // killed after 5 s, now after the other
			b.wantState(job.ID, driver.Pending)
			b.wantState(other.ID, driver.Running)
			if got := b.advance(in); got != driver.StepSuperseded {
				b.Errorf("intent %s: %s, want superseded", name, got)
			}
		}
		end := b.ended(job.ID)
		if end.State != driver.Succeeded || end.Change.MemoryBytes != 0 || len(end.Attempts) != 2 {
			b.Errorf("%s after %d attempts with change %+v", end.State, len(end.Attempts), end.Change)
		}
	})
}

func TestStopOfAHeldJobCancelsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=6 seconds=10 checkpoint=1s")
		in := b.intent(job.ID, "in", driver.Change{Cores: 2})
		b.advance(in)
		b.until(20 * time.Second)
		b.wantState(job.ID, driver.Stopped)
		if err := b.c.Stop(b.Context(), job.ID); err != nil {
			b.Fatal(err)
		}
		b.wantState(job.ID, driver.Cancelled)
		if got := b.advance(in); got != driver.StepFinished {
			b.Errorf("step %s, want finished", got)
		}
	})
}

func TestASecondIntentDoesNotWait(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=6 seconds=10 checkpoint=1s")
		one, two := b.intent(job.ID, "one", driver.Change{Cores: 2}), b.intent(job.ID, "two", driver.Change{Cores: 3})
		b.advance(one)
		if got := b.advance(two); got != driver.StepSuperseded {
			b.Errorf("step %s, want superseded", got)
		}
		wantError(b.T, b.c.Check(b.Context(), two), driver.ErrConflict)
		b.drive(one)
		if got := b.ended(job.ID).Change.Cores; got != 2 {
			b.Errorf("%d cores, want those of the first intent", got)
		}
	})
}

func TestAdvanceRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options string
		tune    func(in *driver.Intent)
		want    error
	}{
		{"arguments of a script", "", func(in *driver.Intent) { in.Change.Args = map[string]string{"--lr": "1"} }, driver.ErrUnsupported},
		{"too many cores", "", func(in *driver.Intent) { in.Change.Cores = 17 }, driver.ErrInvalid},
		{"negative settings", "", func(in *driver.Intent) { in.Change.MemoryBytes = -1 }, driver.ErrInvalid},
		{"a running job without a checkpoint", "", func(in *driver.Intent) { in.Checkpoint = nil }, driver.ErrUnsupported},
		{"a checkpoint without a sign", "", func(in *driver.Intent) { in.Checkpoint.Exit = 0 }, driver.ErrInvalid},
		{"a sign that is no pattern", "", func(in *driver.Intent) { in.Checkpoint.Done = "(" }, driver.ErrInvalid},
		{"a job whose owner refuses restarts", "no-requeue", func(*driver.Intent) {}, driver.ErrDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, sim.Config{}, func(b *bench) {
				job := b.submit(tt.options, "epochs=6 seconds=10 checkpoint=1s")
				in := b.intent(job.ID, "in", driver.Change{Cores: 2})
				tt.tune(&in)
				_, err := b.c.Advance(b.Context(), in)
				wantError(b.T, err, tt.want)
				wantError(b.T, b.c.Check(b.Context(), in), tt.want)
				end := b.ended(job.ID)
				if end.State != driver.Succeeded || len(end.Attempts) != 1 {
					b.Errorf("%s after %d attempts: it was touched", end.State, len(end.Attempts))
				}
			})
		})
	}
}

// An attempt that is discarded is cut in the middle of an epoch, and the next one does
// again what was done since the last save.
func TestADiscardedAttemptIsDoneAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", saver)
		b.until(4 * time.Second) // in its first epoch, after which it saves
		b.drive(b.intent(job.ID, "probe", driver.Change{Cores: 2}))
		begun := time.Since(b.start)
		b.until(begun + 10*time.Second) // start 3 s, three epochs of 2 s, one second of the fifth
		in := b.intent(job.ID, "back", driver.Change{})
		in.Discard = true
		var got []string
		for range 4 {
			got = append(got, string(b.advance(in))+" "+string(b.get(job.ID).State))
		}
		want := []string{"checkpointing stopped", "stopped stopped", "changed stopped", "started running"}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("steps (-want +got):\n%s", diff)
		}
		end := b.ended(job.ID)
		if end.State != driver.Succeeded || len(end.Attempts) != 3 || end.Attempts[1].ExitCode != 137 {
			b.Fatalf("%s, attempts %+v; want success after 3, the second killed", end.State, end.Attempts)
		}
		if got := end.Attempts[1].Ended.Sub(b.start); got != begun+10*time.Second {
			b.Errorf("discarded after %v, want %v: without a wait", got, begun+10*time.Second)
		}
		if got, want := epochs(b.logs(job.ID)), []int{1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(got, want) {
			b.Errorf("epochs %v, want %v", got, want)
		}
		if got := b.advance(in); got != driver.StepStarted {
			b.Errorf("after the end: %s, want started", got)
		}
	})
}
