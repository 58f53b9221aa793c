package sim_test

import (
	"errors"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// What a fault does to one Advance, and what the same Advance finds afterwards.
func TestFaultsOfAdvance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault error
		want  error
		taken bool
	}{
		{"a time-out, but done", driver.ErrUnknown, driver.ErrUnknown, true},
		{"a time-out, and not done", sim.ErrNotTaken, driver.ErrUnknown, false},
		{"refused", driver.ErrDenied, driver.ErrDenied, false},
		{"unreachable", driver.ErrTransient, driver.ErrTransient, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// The third advance is the one that would say changed.
			faults := sim.Script(sim.Fault{Op: sim.OpAdvance, Nth: 3, Err: tt.fault})
			inBubble(t, sim.Config{Faults: faults}, func(b *bench) {
				job := b.submit("", "epochs=6 seconds=10 checkpoint=1s")
				in := b.intent(job.ID, "in", driver.Change{Cores: 2})
				b.advance(in)
				b.until(15 * time.Second)
				b.advance(in)
				_, err := b.c.Advance(b.Context(), in)
				wantError(b.T, err, tt.want)
				if got := b.get(job.ID).Change.Cores == 2; got != tt.taken {
					b.Errorf("the step was taken: %t, want %t", got, tt.taken)
				}
				want := driver.StepChanged
				if tt.taken {
					want = driver.StepStarted
				}
				if got := b.advance(in); got != want {
					b.Errorf("next step %s, want %s", got, want)
				}
				b.drive(in)
				if end := b.ended(job.ID); len(end.Attempts) != 2 || end.State != driver.Succeeded {
					b.Errorf("%s after %d attempts, want succeeded after 2", end.State, len(end.Attempts))
				}
				b.wantEpochs(job.ID, 6)
			})
		})
	}
}

func TestStartThatTimedOutIsFoundAgain(t *testing.T) {
	t.Parallel()
	faults := sim.Script(sim.Fault{Op: sim.OpStart, Nth: 1, Err: driver.ErrUnknown})
	inBubble(t, sim.Config{Faults: faults}, func(b *bench) {
		s := spec("", "epochs=1 seconds=1")
		_, err := b.c.Start(b.Context(), "r", s)
		wantError(b.T, err, driver.ErrUnknown)
		job, err := b.c.Start(b.Context(), "r", s)
		if err != nil || job.ID != "1" {
			b.Errorf("the second Start returned job %q, %v; want the first one's", job.ID, err)
		}
	})
}

func TestFaultOfAnEventBreaksTheStream(t *testing.T) {
	t.Parallel()
	faults := sim.Script(sim.Fault{Op: sim.OpEvent, Job: "1", Nth: 2, Err: driver.ErrTransient})
	inBubble(t, sim.Config{Faults: faults}, func(b *bench) {
		events, err := b.c.Watch(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.submit("", "epochs=3 seconds=10")
		n := 0
		for range events {
			n++
		}
		if n != 1 {
			b.Errorf("%d events before the break, want 1", n)
		}
	})
}

func TestScriptCountsMatchingCallsOnly(t *testing.T) {
	t.Parallel()
	f := sim.Script(
		sim.Fault{Op: sim.OpGet, Job: "2", Nth: 2, Err: driver.ErrDenied},
		sim.Fault{Op: sim.OpList, Err: driver.ErrTransient},
	)
	calls := []struct {
		op   string
		job  driver.JobID
		want error
	}{
		{sim.OpGet, "2", nil},
		{sim.OpGet, "1", nil},
		{sim.OpStop, "2", nil},
		{sim.OpGet, "2", driver.ErrDenied},
		{sim.OpGet, "2", nil},
		{sim.OpList, "", driver.ErrTransient},
		{sim.OpList, "", driver.ErrTransient},
	}
	for i, call := range calls {
		if got := f(call.op, call.job); !errors.Is(got, call.want) {
			t.Errorf("call %d, %s of %q: %v, want %v", i, call.op, call.job, got, call.want)
		}
	}
}
