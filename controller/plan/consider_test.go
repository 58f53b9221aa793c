package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// why is the outcome of each alternative.
func why(d tuning.Decision) []string {
	var out []string
	for _, a := range d.Alternatives {
		text := string(a.From) + " " + a.Settings.String() + ": "
		if a.Taken {
			text += "taken, "
		}
		out = append(out, text+string(a.Reason))
	}
	return out
}

func TestEveryAlternativeHasAReason(t *testing.T) {
	t.Parallel()
	batch := func(n float64) tuning.Settings { return tuning.Settings{"prefetch": tuning.Number(n)} }
	for name, c := range map[string]struct {
		state func() tuning.State
		want  []string
	}{
		"an unknown job is probed": {running, []string{
			"present cores=1 threads=1: less-promising", "search cores=2 threads=2: taken, unknown-probe",
		}},
		"a known setting is moved to": {func() tuning.State {
			s := running()
			sure(&s)
			s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5), effect(batch(64), -0.01), effect(batch(8), 0.3)}
			return s
		}, []string{
			"present cores=1 threads=1: less-promising", "kind cores=2 threads=2: taken, recalled",
			"kind cores=1 prefetch=64 threads=1: neutral", "kind cores=1 prefetch=8 threads=1: neutral",
		}},
		"the best probe stays": {probed, []string{
			"present cores=2 threads=2: taken, already-best", "owner cores=1 threads=1: worthless",
		}},
		"a setting that is slower than allowed is left": {func() tuning.State {
			s := probed()
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonSlower, LogRatio: -0.2}
			return s
		}, []string{
			"present cores=2 threads=2: slower-than-allowed", "owner cores=1 threads=1: taken, slower-than-allowed",
		}},
		"in recommend mode nothing is done": {func() tuning.State {
			s := running()
			known(&s, -0.5, 0.05)
			s.Policy.Mode = tuning.Recommend
			return s
		}, []string{
			"present cores=1 threads=1: taken, recommend-mode", "kind cores=2 threads=2: recommend-mode",
		}},
		"a class that one job taught": {func() tuning.State {
			s := running()
			s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest, Distance: 0.5, Radius: 2, NearestID: "c1"}
			e := effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)
			e.Runs = 1
			s.ClassEffects = []tuning.Effect{e}
			s.Next = batch(64).Merge(cores(1))
			return s
		}, []string{
			"present cores=1 threads=1: less-promising", "class cores=2 threads=2: too-few-runs",
			"search cores=1 prefetch=64 threads=1: taken, class-probe",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.state()
			d := plan.Decide(s)
			if diff := cmp.Diff(c.want, why(d)); diff != "" {
				t.Errorf("%s because %s (-want +got):\n%s", d.Action, d.Reason, diff)
			}
			if d.Class != s.Class || d.Forecast != s.Forecast {
				t.Error("class and forecast are not among the evidence")
			}
		})
	}
}

func TestOneAlternativeAtMostIsTakenAndNoneIsUnreasoned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		d := plan.Decide(s)
		taken := 0
		for _, a := range d.Alternatives {
			if a.Taken {
				taken++
			}
			if a.Reason == tuning.ReasonNone || a.Reason.Sentence() == string(a.Reason) {
				t.Fatalf("%+v has no reason, the decision is %s because %s", a, d.Action, d.Reason)
			}
		}
		if taken > 1 || len(d.Alternatives) > 0 && taken == 0 && d.Action == tuning.Hold {
			t.Fatalf("%d of %+v taken", taken, d.Alternatives)
		}
	})
}
