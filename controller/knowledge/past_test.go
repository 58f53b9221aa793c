package knowledge

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/controller/tuning"
)

func TestThePastRunsOfAKind(t *testing.T) {
	t.Parallel()
	quality := 0.9
	measured := []tuning.Trial{reference(trial(onCores(1), 10, 0)), trial(onCores(2), 6, 0)}
	first, second, third, other := observation("a", 0), observation("b", 1), observation("c", 2), observation("d", 3)
	first.Trials = measured
	first.Began, first.Epochs, first.End, first.Final = onCores(1), 12, tuning.EndReached, &Final{Epochs: 12, Quality: quality}
	first.Reached = &tuning.Reached{Target: 0.8, Epochs: 7}
	second.Trials, second.Polluted, second.Trying, second.Began, second.End = measured, true, true, onCores(2), tuning.EndFailed
	third.Trials = measured // of a version that wrote no more
	other.Kind.Name = "another"
	now := first.At.Add(48 * time.Hour)
	got := PastRuns([]Observation{third, other, second, first, first}, first.Kind, now)
	age := func(o Observation) float64 { return now.Sub(o.At).Hours() / 24 }
	want := []tuning.PastRun{
		{
			Job: "a", Machine: first.Machine, Began: onCores(1), Trials: measured, Epochs: 12, End: tuning.EndReached,
			Quality: &quality, Reached: &tuning.Reached{Target: 0.8, Epochs: 7}, Age: age(first),
		},
		{Job: "b", Machine: second.Machine, Began: onCores(2), Trying: true, End: tuning.EndFailed, Age: age(second)},
		{Job: "c", Machine: third.Machine, Trials: measured, Age: age(third)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunsThatComeAgainUnderOneIDAreSeveral(t *testing.T) {
	t.Parallel()
	again := func(hours int, own, other float64) Observation {
		o := observation("nightly", hours)
		o.Submitted = o.At.Add(-time.Minute)
		o.ID = o.Submitted.String()
		o.Trials = []tuning.Trial{reference(trial(onCores(1), own, 0)), trial(onCores(2), other, 0)}
		return o
	}
	obs := []Observation{again(0, 10, 5), again(24, 100, 50)}
	past := PastRuns(obs, obs[0].Kind, obs[1].At)
	if len(past) != 2 || past[0].Trials[0].Seconds != 10 || past[1].Trials[0].Seconds != 100 {
		t.Errorf("got %+v", past)
	}
	effects := Effects(obs, Asker{Kind: obs[0].Kind, Own: onCores(1)}, tuning.Measure{Objective: tuning.Time}, obs[1].At)
	if len(effects) != 1 || effects[0].Runs != 2 {
		t.Errorf("two runs under one id teach %+v", effects)
	}
}

func TestAnObservationOfAnOlderVersionLoads(t *testing.T) {
	t.Parallel()
	const old = `{"id":"7@1","job":"7","kind":{"owner":"alice","name":"train","fingerprint":"f"},"at":"2026-01-01T00:00:00Z",
		"trials":[{"settings":{"cores":1},"epochs":3,"seconds":2,"sd_log":0,"reference":true}]}`
	var o Observation
	if err := json.Unmarshal([]byte(old), &o); err != nil {
		t.Fatal(err)
	}
	got := PastRuns([]Observation{o}, o.Kind, o.At)
	if len(got) != 1 || got[0].End != tuning.EndUnknown || got[0].Epochs != 0 || got[0].Quality != nil || got[0].Reached != nil || len(got[0].Began) != 0 {
		t.Errorf("what was never written is known: %+v", got)
	}
	if len(got) == 1 && len(got[0].Trials) != 1 {
		t.Errorf("what was measured is lost: %+v", got)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"began", "trying", "end", "reached", "submitted"} {
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		if _, ok := fields[name]; ok {
			t.Errorf("%s is written although it is unknown: %s", name, raw)
		}
	}
}

func TestTheNewestLessonsOfForecastsAreTold(t *testing.T) {
	t.Parallel()
	lesson := func(seen ...float64) (out []tuning.CurveLesson) {
		for _, v := range seen {
			out = append(out, tuning.CurveLesson{Seen: v, Total: 9, Told: []float64{1, 2}})
		}
		return out
	}
	a, b, c, other := observation("a", 0), observation("b", 1), observation("c", 2), observation("d", 3)
	a.Curve, b.Curve, other.Curve = lesson(1, 2), lesson(3), lesson(9)
	other.Kind.Name = "another"
	c.Polluted, c.Curve = true, lesson(4, 5)
	old := observation("e", 4) // of a version that wrote none
	obs := []Observation{c, old, other, a, b, a}
	for _, tc := range []struct {
		most int
		want []tuning.CurveLesson
	}{{9, lesson(1, 2, 3, 4, 5)}, {4, lesson(2, 3, 4, 5)}, {2, lesson(4, 5)}, {0, nil}} {
		if diff := cmp.Diff(tc.want, CurveLessons(obs, a.Kind, tc.most), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", tc.most, diff)
		}
	}
	if got := CurveLessons([]Observation{old}, a.Kind, 9); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestWhatOlderVersionsWroteHasNoLessons(t *testing.T) {
	t.Parallel()
	var o Observation
	if err := json.Unmarshal([]byte(`{"id":"7@1","job":"7","kind":{"owner":"ada","name":"train"},"at":"2026-01-02T03:04:05Z","epochs":5,"end":"reached"}`), &o); err != nil {
		t.Fatal(err)
	}
	if o.Curve != nil || o.Epochs != 5 {
		t.Errorf("%+v", o)
	}
}
