package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func carriers() tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Knobs = []tuning.Knob{
		{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4)}},
		{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores},
		{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 30)},
		{Name: "batch_size", Env: "BATCH_SIZE", Values: []tuning.Value{tuning.Number(8), tuning.Number(64)}},
		{Name: "lr", Arg: "--lr", Min: tuning.Number(0.001), Max: tuning.Number(0.1)},
		{Name: "depth", Live: true, Values: []tuning.Value{tuning.Number(1), tuning.Number(2)}},
		{Name: "mode", Live: true, Env: "MODE", Values: []tuning.Value{tuning.Word("slow"), tuning.Word("fast")}},
		{Name: tuning.GPUs},
	}
	p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85}
	return p
}

func carried() tuning.Settings {
	return tuning.Settings{
		tuning.Cores: tuning.Number(1), tuning.Threads: tuning.Number(1), tuning.Memory: tuning.Number(1 << 30),
		"batch_size": tuning.Number(8), "lr": tuning.Number(0.01), "depth": tuning.Number(1), "mode": tuning.Word("slow"),
	}
}

func TestChangeSaysOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		target tuning.Settings
		want   driver.Change
	}{
		{"the owner's own settings are no change", carried(), driver.Change{}},
		{
			"cores carry their threads", carried().With(tuning.Cores, tuning.Number(2)).With(tuning.Threads, tuning.Number(2)),
			driver.Change{Cores: 2, Env: map[string]string{"OMP_NUM_THREADS": "2"}},
		},
		{"memory is in bytes", carried().With(tuning.Memory, tuning.Number(64<<20)), driver.Change{MemoryBytes: 64 << 20}},
		{
			"a hyperparameter travels in its variable", carried().With("batch_size", tuning.Number(64)),
			driver.Change{Env: map[string]string{"BATCH_SIZE": "64"}},
		},
		{
			"or in the settings file", carried().With("depth", tuning.Number(2)),
			driver.Change{Live: map[string]string{"depth": "2"}},
		},
		{
			"a live knob with a variable travels in both", carried().With("mode", tuning.Word("fast")),
			driver.Change{Env: map[string]string{"MODE": "fast"}, Live: map[string]string{"mode": "fast"}},
		},
		{"or in its flag", carried().With("lr", tuning.Number(0.1)), driver.Change{Args: map[string]string{"--lr": "0.1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := reconcile.Change(carriers(), carried(), c.target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKnobWithoutACarrierIsAnError(t *testing.T) {
	t.Parallel()
	_, err := reconcile.Change(carriers(), carried(), carried().With(tuning.GPUs, tuning.Number(2)))
	if !errors.Is(err, reconcile.ErrNoCarrier) {
		t.Fatalf("got %v, want ErrNoCarrier", err)
	}
}

func TestSettingsIsTheInverseOfChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		target := carried()
		pick := func(name string, values ...float64) {
			if rapid.Bool().Draw(t, name+" differs") {
				target[name] = tuning.Number(rapid.SampledFrom(values).Draw(t, name))
			}
		}
		pick(tuning.Cores, 1, 2, 4)
		pick(tuning.Threads, 1, 2, 4)
		pick(tuning.Memory, 1<<20, 3<<20, 1<<30)
		pick("batch_size", 8, 64)
		pick("lr", 0.001, 0.05, 0.1)
		pick("depth", 1, 2, 1e-7, 1e20)
		if rapid.Bool().Draw(t, "mode differs") {
			target["mode"] = tuning.Word("fast")
		}
		change, err := reconcile.Change(carriers(), carried(), target)
		if err != nil {
			t.Fatal(err)
		}
		if got := reconcile.SettingsOf(carriers(), carried(), change); !got.Equal(target) {
			t.Fatalf("%s became %s", target, got)
		}
	})
}

func TestIntentHoldsWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	job := driver.Job{ID: "local-7", Attempt: 2, Fingerprint: "f00"}
	got, err := reconcile.NewIntent("local-7/3", job, carriers(), carried(), carried().With(tuning.Cores, tuning.Number(2)), "why")
	if err != nil {
		t.Fatal(err)
	}
	want := driver.Intent{
		ID: "local-7/3", Job: "local-7", Attempt: 2, Fingerprint: "f00", Change: driver.Change{Cores: 2}, Note: "why",
		Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intent (-want +got):\n%s", diff)
	}
}

type scripted struct {
	step driver.Step
	err  error
}

func (s scripted) Advance(context.Context, driver.Intent) (driver.Step, error) { return s.step, s.err }

func TestStepSaysWhatTheCallerMayDoNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		step   driver.StepKind
		err    error
		kind   driver.StepKind
		reason tuning.Reason
		again  bool // an error: the same step must be taken again
	}{
		{"a step on the way goes on", driver.StepCheckpointing, nil, driver.StepCheckpointing, "", false},
		{"a started attempt is done", driver.StepStarted, nil, driver.StepStarted, "", false},
		{"a late checkpoint abandons", driver.StepAbandoned, nil, driver.StepAbandoned, tuning.ReasonGraceExpired, false},
		{"a finished job is finished", driver.StepFinished, nil, driver.StepFinished, tuning.ReasonFinished, false},
		{"a changed job is its owner's", driver.StepSuperseded, nil, driver.StepSuperseded, tuning.ReasonOwnerChanged, false},
		{"denied is final", "", driver.ErrDenied, driver.StepSuperseded, tuning.ReasonDenied, false},
		{"unsupported is final", "", driver.ErrUnsupported, driver.StepSuperseded, tuning.ReasonUnsupported, false},
		{"invalid is final", "", driver.ErrInvalid, driver.StepSuperseded, tuning.ReasonUnsupported, false},
		{"a conflict is the owner's change", "", driver.ErrConflict, driver.StepSuperseded, tuning.ReasonOwnerChanged, false},
		{"no room is reported as such", driver.StepNoRoom, nil, driver.StepNoRoom, tuning.ReasonNoRoom, false},
		{"no room for the dry run", "", driver.ErrNoRoom, driver.StepNoRoom, tuning.ReasonNoRoom, false},
		{"a job that is gone is lost", "", driver.ErrNotFound, driver.StepSuperseded, tuning.ReasonLost, false},
		{"a busy scheduler is asked again", "", driver.ErrTransient, "", "", true},
		{"an unknown outcome is looked at again", "", driver.ErrUnknown, "", "", true},
		{"an error without a name too", "", errors.New("odd"), "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.err != nil {
				c.err = fmt.Errorf("wrapped: %w", c.err)
			}
			step, reason, err := reconcile.Step(t.Context(), scripted{driver.Step{Kind: c.step}, c.err}, driver.Intent{Job: "j"})
			if (err != nil) != c.again || step.Kind != c.kind || reason != c.reason {
				t.Errorf("got %q, %q, %v; want %q, %q, again %v", step.Kind, reason, err, c.kind, c.reason, c.again)
			}
		})
	}
}
