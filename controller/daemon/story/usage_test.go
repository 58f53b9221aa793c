package story_test

import (
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestAnEffectWithoutTheTrendSaysSo(t *testing.T) {
	t.Parallel()
	rec := reconcile.Record{Request: reconcile.Request{Own: cores(8)}, Course: reconcile.Course{State: driver.Running, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8)}, {Attempt: 2, Settings: cores(4), Action: tuning.Move}}}}
	for i, e := range epochs(30, 0, "") {
		if e.End = e.Start.Add(time.Second + time.Duration(i)*20*time.Millisecond); i >= 4 {
			e.Attempt, e.Settings = 2, cores(4)
		}
		rec.Epochs = append(rec.Epochs, e)
	}
	if s := story.Tell(&rec); !strings.HasPrefix(s.Effect, "per epoch without its trend: time ") {
		t.Errorf("effect %q", s.Effect)
	}
}

func TestTheCPUUsedIsThatOfAllAttempts(t *testing.T) {
	t.Parallel()
	own := cores(2)
	rec := reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended}
	rec.Profiles = map[string]tuning.Profile{own.Key(): {Settings: own, Features: map[string]float64{"cpu_utilisation": 1.02}}} // of the one core that its exporter saw
	rec.Policy.Knobs = []tuning.Knob{{Name: tuning.Cores}}
	rec.Runs = []reconcile.Run{{Attempt: 1, Settings: own, CPU: 31, CPUOver: 60, Suspended: 30 * time.Second}}
	const want = "ask for cores=1 in the next run: it used 1.03 cores of 2.00 cores"
	if s := story.Tell(&rec); s.Next != want {
		t.Errorf("next %q, want %q", s.Next, want)
	}
	if rec.Reason = tuning.ReasonRemembered; strings.HasPrefix(story.Tell(&rec).Next, "ask for") {
		t.Error("its kind is known to be worse with fewer cores")
	}
	rec.Runs = append(rec.Runs, reconcile.Run{Attempt: 2, Settings: cores(1), Action: tuning.Move, CPU: 89, CPUOver: 90})
	if s := story.Tell(&rec); s.Usage[0].Used != 1 || s.Usage[0].Requested != 2 {
		t.Errorf("after a move %+v, want 1 of 2 cores", s.Usage)
	}
}

func TestAGPUThatWasNeverBusyUsedNothing(t *testing.T) {
	t.Parallel()
	own := cores(8).With(tuning.GPUs, tuning.Number(2))
	rec := reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended}
	rec.Profiles = map[string]tuning.Profile{own.Key(): {Features: map[string]float64{"gpu_busy": 0}}}
	if s := story.Tell(&rec); s.Next != "ask for fewer gpus in the next run: it used 0.00 gpus of 2.00 gpus" {
		t.Errorf("next %q, usage %+v", s.Next, s.Usage)
	}
}
