package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// anyState draws states far wilder than the loop ever makes.
func anyState(t *rapid.T) tuning.State {
	s := running()
	number := func(name string) tuning.Value {
		return tuning.Number(float64(rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, name)))
	}
	settings := func(name string) tuning.Settings {
		n := number(name)
		out := tuning.Settings{tuning.Cores: n, tuning.Threads: n}
		if rapid.Bool().Draw(t, name+" has batch") {
			out["batch_size"] = tuning.Number(float64(rapid.SampledFrom([]int{32, 64, 128}).Draw(t, name+" batch")))
		}
		if rapid.Bool().Draw(t, name+" has prefetch") {
			out["prefetch"] = tuning.Number(float64(rapid.SampledFrom([]int{8, 64, 128}).Draw(t, name+" prefetch")))
		}
		return out
	}
	s.Policy.Mode = rapid.SampledFrom(tuning.Modes()).Draw(t, "mode")
	s.Policy.Budget.Restarts = rapid.IntRange(0, 3).Draw(t, "restarts allowed")
	s.Policy.Budget.Probes = rapid.IntRange(0, 3).Draw(t, "probes allowed")
	s.Restarts, s.Probes = rapid.IntRange(0, 4).Draw(t, "restarts"), rapid.IntRange(0, 4).Draw(t, "probes")
	s.Site.AboveRequest = rapid.Bool().Draw(t, "above request")
	s.Site.DryRun = rapid.Bool().Draw(t, "dry run")
	s.Own = settings("own")
	s.Policy = s.Site.Narrow(s.Policy, s.Own)
	s.Current, s.Next = settings("current"), settings("next")
	s.Pending = rapid.Bool().Draw(t, "pending")
	s.EpochsDone = rapid.IntRange(0, 50).Draw(t, "done")
	s.EpochsTotal = rapid.IntRange(0, 50).Draw(t, "total")
	s.Gate = rapid.SampledFrom([]tuning.Reason{"", "", "", tuning.ReasonPaused, tuning.ReasonOff}).Draw(t, "gate")
	s.Measured = rapid.SampledFrom([]tuning.Reason{"", "", tuning.ReasonWarmingUp}).Draw(t, "measured")
	s.NextReason = rapid.SampledFrom([]tuning.Reason{"", tuning.ReasonProbesDone}).Draw(t, "next reason")
	s.RestartCost = time.Duration(rapid.IntRange(0, 20).Draw(t, "cost")) * time.Second
	s.KindEffects = []tuning.Effect{effect(settings("effect"), rapid.Float64Range(-1, 1).Draw(t, "effect size"))}
	s.Wait = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 60, 3600}).Draw(t, "wait")) * time.Second
	s.ClosedIn = time.Duration(rapid.SampledFrom([]int{0, 0, 60, 600}).Draw(t, "closed in")) * time.Second
	s.LimitLeft = time.Duration(rapid.SampledFrom([]int{0, 0, 60, 600}).Draw(t, "limit left")) * time.Second
	s.KindSeconds, s.KindRuns = rapid.Float64Range(0, 2).Draw(t, "kind seconds"), rapid.IntRange(0, 3).Draw(t, "kind runs")
	s.Trials = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "trials") {
		trial := tuning.Trial{
			Settings: settings(fmt.Sprintf("trial %d", i)), Epochs: rapid.IntRange(1, 5).Draw(t, "epochs"),
			Seconds: rapid.Float64Range(0.1, 10).Draw(t, "seconds"),
		}
		trial.Reference = trial.Settings.Equal(s.Own)
		s.Trials = append(s.Trials, trial)
	}
	if rapid.Bool().Draw(t, "regressed before") {
		s.Regressed = []tuning.Settings{settings("regressed")}
	}
	s.BestGain = rapid.Float64Range(-1, 0).Draw(t, "gain")
	s.Best = &tuning.Trial{Settings: settings("best"), Epochs: 2, Seconds: 1}
	if rapid.Bool().Draw(t, "has outcome") {
		s.Outcome = &tuning.Outcome{
			Verdict:  rapid.SampledFrom([]tuning.Verdict{tuning.Regressed, tuning.Improved, tuning.Inconclusive}).Draw(t, "verdict"),
			LogRatio: rapid.Float64Range(-1, 1).Draw(t, "log ratio"),
		}
	}
	return s
}

// unnamed reports whether settings have the batch that the stanza takes for the owner's.
func unnamed(s tuning.Settings) bool {
	return !s["batch_size"].IsSet() || s["batch_size"] == tuning.Number(32)
}

func TestNoDecisionLeavesItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		d := plan.Decide(s)
		if d.Reason == tuning.ReasonNone || d.Reason.Sentence() == string(d.Reason) {
			t.Fatalf("decision %s has no reason that a user understands: %q", d.Action, d.Reason)
		}
		if d.Action == tuning.Hold {
			return
		}
		if s.Gate != tuning.ReasonNone {
			t.Fatalf("acted through a closed gate: %+v", d)
		}
		if s.Policy.Mode != tuning.Apply || s.Site.DryRun {
			t.Fatalf("acted in mode %s, dry run %v", s.Policy.Mode, s.Site.DryRun)
		}
		if knob, ok := s.Policy.Permits(s.Own, d.Settings); !ok {
			t.Fatalf("%s is outside of what is allowed: %s from %s", knob, d.Settings, s.Own)
		}
		if !s.Pending && d.Action != tuning.RollBack && d.Settings["batch_size"] != s.Current["batch_size"] &&
			!(unnamed(d.Settings) && unnamed(s.Current)) {
			t.Fatalf("%s changes what a running job learns: %s to %s", d.Action, s.Current, d.Settings)
		}
		if d.Settings.Equal(s.Current) && !s.Pending {
			t.Fatalf("%s to where it is already: %s", d.Action, d.Settings)
		}
		// No setting drawn is a hundred times slower than another.
		if !s.Pending && 100*s.Remaining() < s.Wait.Seconds() {
			t.Fatalf("%s waits %v for a job of %v s", d.Action, s.Wait, s.Remaining())
		}
		if !s.Pending && s.ClosedIn > 0 && s.ClosedIn <= s.RestartCost+s.Wait+s.Site.LimitReserve {
			t.Fatalf("%s although the nodes close in %v", d.Action, s.ClosedIn)
		}
		if d.Reason == tuning.ReasonDoubted && d.Action != tuning.Probe {
			t.Fatalf("a doubt is a probe, not a %s", d.Action)
		}
		switch d.Action {
		case tuning.Probe:
			if !s.Pending && d.Reason == tuning.ReasonDoubted != d.Settings.Equal(s.Own) {
				t.Fatalf("probe of %s, own %s, because %s", d.Settings, s.Own, d.Reason)
			}
			if s.Probes >= s.Policy.Budget.Probes {
				t.Fatalf("probe %d of %d", s.Probes+1, s.Policy.Budget.Probes)
			}
		case tuning.Move, tuning.RollBack:
			if !s.Pending && s.Restarts >= s.Policy.Budget.Restarts {
				t.Fatalf("restart %d of %d", s.Restarts+1, s.Policy.Budget.Restarts)
			}
		case tuning.Hold, tuning.Adapt:
		}
	})
}

// held draws a state under a policy that may lack or forbid much.
func held(t *rapid.T) tuning.State {
	s := anyState(t)
	s.Policy.Mode, s.Site.DryRun = tuning.Apply, false // most say nothing about single knobs
	maybe := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	if maybe("no checkpoint") {
		s.Policy.Checkpoint = nil
	}
	if maybe("no progress") {
		s.Policy.Progress = tuning.Progress{}
	}
	if maybe("no quality") {
		s.Policy.Quality = nil
	}
	if maybe("recommended only") {
		s.Site.MaxMode = tuning.Recommend
	}
	s.Site.MayRestart = !maybe("no restarts by the site")
	s.Site.Ceilings = tuning.Settings{}
	for _, name := range []string{tuning.Cores, tuning.Threads, "batch_size", "prefetch"} {
		if maybe("ceiling of " + name) {
			s.Site.Ceilings[name] = tuning.Number(float64(rapid.SampledFrom([]int{1, 8, 32}).Draw(t, name)))
		}
	}
	if maybe("knobs by name") {
		s.Site.Knobs = rapid.SliceOfN(rapid.SampledFrom([]string{tuning.Cores, tuning.Threads, "prefetch", "batch_size", tuning.Memory}), 1, 3).Draw(t, "knobs")
	}
	if maybe("other threads than cores") {
		s.Own = s.Own.With(tuning.Threads, tuning.Number(float64(rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "own threads"))))
	}
	if rapid.Bool().Draw(t, "asks for memory") {
		s.Own = s.Own.With(tuning.Memory, tuning.Number(float64(int(1)<<rapid.IntRange(25, 34).Draw(t, "memory"))))
		s.PeakRSS, s.PeakRuns = tuning.Bytes(1)<<rapid.IntRange(20, 32).Draw(t, "peak"), 3
		if m := s.Own[tuning.Memory]; !s.Pending {
			s.Current, s.Best.Settings = s.Current.With(tuning.Memory, m), s.Best.Settings.With(tuning.Memory, m)
		}
	}
	if rapid.Bool().Draw(t, "returns") {
		s.Policy.Budget.Returns = 4
		best := s.KindEffects[0]
		s.Returns = &tuning.Returns{Runs: 9, Next: s.Next, Expected: -0.2, Error: 0.05, Best: &best}
	}
	if rapid.Bool().Draw(t, "its kind knows better") {
		s.Policy.Mode, s.Site.MaxMode, s.Site.DryRun, s.Site.MayRestart = tuning.Apply, tuning.Apply, false, true
		s.Pending, s.Gate, s.Measured, s.Refused, s.Outcome, s.Toll, s.Regressed = false, "", "", "", nil, nil, nil
		s.Current, s.Probes, s.Restarts, s.EpochsDone, s.EpochsTotal, s.EpochSeconds = s.Own, 0, 0, 4, 400, 1
		s.Trials = []tuning.Trial{{Settings: s.Own, Epochs: 3, Seconds: 1, Reference: true}}
		s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)}
		if maybe("and it waits") {
			s.Pending, s.EpochsDone, s.EpochsTotal, s.Trials = true, 0, 0, nil
		}
	}
	if s.EpochsTotal > 0 {
		s.Policy.Progress.Total = s.EpochsTotal
	}
	return s
}

// What validate and run tell before a job is submitted is what the planner keeps to.
func TestNoKnobActsSoonerThanItsProspect(t *testing.T) {
	t.Parallel()
	acted := map[tuning.When]int{}
	check := func(t *rapid.T) {
		s := held(t)
		asked := s.Policy
		reach := tuning.Reach{Scheduler: "x", Env: rapid.IntRange(0, 4).Draw(t, "env") > 0, Memory: rapid.Bool().Draw(t, "memory returns")}
		prospects := s.Site.Prospects(asked, reach, s.Own)
		s.Policy = s.Site.Narrow(asked.Carried(reach), s.Own)
		d := plan.Decide(s)
		if d.Action == tuning.Hold || d.Action == tuning.RollBack {
			return
		}
		for _, k := range prospects.Knobs {
			own := s.Own[k.Knob]
			if unnamed(d.Settings) && unnamed(s.Own) && k.Knob == "batch_size" {
				continue
			}
			if to := d.Settings[k.Knob]; to == own || !s.Pending && to == s.Current[k.Knob] {
				continue // as its owner has it, or as it is
			}
			acted[k.When]++
			if k.When == tuning.Never || k.When == tuning.NextStart && !s.Pending {
				t.Fatalf("%s moves %s to %s, pending %v, because %s, and its prospect is %+v", d.Action, s.Current, d.Settings, s.Pending, d.Reason, k)
			}
		}
	}
	for round := 0; round == 0 || round < 10 && (acted[tuning.Now] == 0 || acted[tuning.NextStart] == 0); round++ {
		rapid.Check(t, check) // until luck has drawn both
	}
	if acted[tuning.Now] == 0 || acted[tuning.NextStart] == 0 {
		t.Errorf("knobs acted %v, so that nothing was shown", acted)
	}
}

// Decisions that were recorded before rules had places are made again as they were.
func TestAHoldNamesItsRulesWhereTheirPlacesAreKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tuning.State)
		want   string
	}{
		"the site's mode":   {func(s *tuning.State) { s.Site.MaxMode, s.Policy.Mode = tuning.Recommend, tuning.Recommend }, "max_mode=recommend (site.yaml:2)"},
		"the stanza's mode": {func(s *tuning.State) { s.Policy.Mode = tuning.Observe }, "mode=observe (job.sh:3)"},
		"a dry run":         {func(s *tuning.State) { s.Site.DryRun = true }, "dry_run=true (default)"},
		"a site's restarts": {func(s *tuning.State) { s.Site.MayRestart, s.Policy.Checkpoint = false, nil }, "may_restart=false (default)"},
		"no checkpoint":     {func(s *tuning.State) { s.Policy.Checkpoint = nil }, "checkpoint=none (default)"},
		"the control group": {func(s *tuning.State) { s.Gate = tuning.ReasonControlGroup }, "control=0.1 (default)"},
		"nothing left to tune": {func(s *tuning.State) {
			s.Policy.Knobs, s.Site.AboveRequest = s.Policy.Knobs[:1], false
			s.Policy.Knobs[0].Values = s.Policy.Knobs[0].Values[1:]
		}, "above_request=false (default)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running()
			c.change(&s)
			rules := func() (out []string) {
				narrowed := s
				narrowed.Policy = s.Site.Narrow(s.Policy, s.Own)
				d := plan.Decide(narrowed)
				raw, err := json.Marshal(narrowed)
				if err != nil {
					t.Fatal(err)
				}
				var kept tuning.State
				if err := json.Unmarshal(raw, &kept); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(d.Evidence, plan.Decide(kept).Evidence); diff != "" {
					t.Errorf("made again of the state as it is kept:\n%s", diff)
				}
				for _, e := range d.Evidence {
					if e.Name == "rule" {
						out = append(out, e.Text)
					}
				}
				if d.Action != tuning.Hold {
					t.Errorf("it does %s", d.Action)
				}
				return out
			}
			if got := rules(); got != nil {
				t.Errorf("without places: %q", got)
			}
			s.Site.Sources = map[string]string{"max_mode": "site.yaml:2"}
			for _, key := range []string{"dry_run", "may_restart", "control", "above_request"} {
				s.Site.Sources[key] = tuning.FromDefault
			}
			s.Policy.Sources = map[string]string{"mode": "job.sh:3"}
			if got := rules(); len(got) != 1 || got[0] != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestNumbersThatAreNoneMoveNothingAndCanBeStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		wild := func(name string) float64 {
			return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e308, 1e-308}).Draw(t, name)
		}
		if rapid.Bool().Draw(t, "wild epochs") {
			s.EpochSeconds, s.KindSeconds = wild("epoch seconds"), wild("kind seconds")
		}
		if rapid.Bool().Draw(t, "wild gain") {
			s.BestGain, s.BestError = wild("gain"), wild("error")
		}
		if rapid.Bool().Draw(t, "wild effect") {
			s.KindEffects[0].LogRatio, s.KindEffects[0].LogTime, s.KindEffects[0].SD = wild("ratio"), wild("time"), wild("sd")
			s.KindEffects[0].Age = wild("age")
		}
		if s.Outcome != nil && rapid.Bool().Draw(t, "wild outcome") {
			s.Outcome.LogRatio, s.Outcome.Low, s.Outcome.High = wild("outcome"), wild("low"), wild("high")
		}
		for i := range s.Trials {
			if rapid.Bool().Draw(t, "wild trial") {
				s.Trials[i].Seconds = wild("trial seconds")
			}
		}
		d := plan.Decide(s)
		if _, err := json.Marshal(d); err != nil {
			t.Fatalf("%s because %s cannot be stored: %v", d.Action, d.Reason, err)
		}
		if d.Reason == tuning.ReasonRecalled && !(s.KindEffects[0].LogRatio < 0 && s.KindEffects[0].LogRatio > -1e3) {
			t.Fatalf("moved by an effect of %v", s.KindEffects[0].LogRatio)
		}
		if !s.Pending && d.Action != tuning.Hold && math.IsNaN(s.EpochSeconds) && d.Reason != tuning.ReasonDoubted {
			t.Fatalf("%s because %s although what remains is unknown", d.Action, d.Reason)
		}
	})
}

func TestTheSameStateGivesTheSameDecision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		a, b := plan.Decide(s), plan.Decide(s)
		if a.Action != b.Action || a.Reason != b.Reason || !a.Settings.Equal(b.Settings) {
			t.Fatalf("first %+v, then %+v", a, b)
		}
	})
}

// world is a job as it would run: the loop does what is decided, and the job's
// epochs are as long as they truly are under what it runs under.
type world struct {
	state   tuning.State
	seconds map[string]float64 // per epoch by settings
	noise   func() float64
	began   int // epochs of the present attempt
	doubts  int
	visits  []string // what it ran under, in order
}

func (w *world) epoch() {
	s := &w.state
	s.EpochsDone++
	w.began++
	if w.began <= s.Policy.Profile.WarmupEpochs {
		s.Measured = tuning.ReasonWarmingUp
		return
	}
	i := -1
	for j, x := range s.Trials {
		if x.Settings.Equal(s.Current) {
			i = j
		}
	}
	if i < 0 {
		s.Trials = append(s.Trials, tuning.Trial{Settings: s.Current, Reference: s.Current.Equal(s.Own)})
		i = len(s.Trials) - 1
	}
	x := &s.Trials[i]
	x.Seconds = (x.Seconds*float64(x.Epochs) + w.seconds[s.Current.Key()]*w.noise()) / float64(x.Epochs+1)
	x.Epochs++
	s.Measured = tuning.ReasonNone
	if x.Epochs < s.Policy.Profile.Epochs {
		s.Measured = tuning.ReasonProfiling
	}
}

// look fills in what the search and the verifier would say.
func (w *world) look() {
	s := &w.state
	s.Best, s.BestGain, s.BestError, s.Outcome = nil, 0, 0, nil
	s.Next, s.NextReason = nil, tuning.ReasonProfiling
	own, ok := tuning.Reference(s.Trials)
	s.EpochSeconds = s.Trials[0].Seconds
	if !ok {
		return
	}
	s.EpochSeconds = own.Seconds
	s.NextReason = tuning.ReasonProbesDone
	for i, x := range s.Trials {
		gain, _ := x.LogRatio(own, tuning.Measure{Objective: tuning.Time})
		if !x.Reference && (s.Best == nil || gain < s.BestGain) {
			s.Best, s.BestGain, s.BestError = &s.Trials[i], math.Min(gain, 0), 0.03
		}
		if x.Settings.Equal(s.Current) && !x.Reference && x.Epochs > 4 && gain > 0.1 {
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed, LogRatio: gain, Tuned: s.Current}
		}
	}
}

// fataler is a test, or one case of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (w *world) act(t fataler, d tuning.Decision) {
	t.Helper()
	s := &w.state
	switch d.Action {
	case tuning.Hold, tuning.Adapt:
		return
	case tuning.Probe:
		s.Probes++
		s.ProbeEpochs += s.Policy.Profile.WarmupEpochs + s.Policy.Profile.Epochs
	case tuning.Move, tuning.RollBack:
		s.Restarts++
	}
	if d.Reason == tuning.ReasonDoubted {
		w.doubts++
	}
	s.Current, w.began = d.Settings, 0
	w.visits = append(w.visits, d.Settings.String()+" because "+string(d.Reason))
	if len(w.visits) > s.Policy.Budget.Probes+s.Policy.Budget.Restarts+1 {
		t.Fatalf("it never comes to rest: %q", w.visits)
	}
}

// live runs a recalled job to its end and returns it.
func live(t fataler, restarts, probes int, size, effect float64, noise func() float64) *world {
	t.Helper()
	w := &world{state: recalled(), noise: noise}
	s := &w.state
	s.EpochsDone, s.EpochsTotal, s.Trials = 0, 200, nil
	s.Policy.Budget.Restarts, s.Policy.Budget.Probes = restarts, probes
	w.seconds = map[string]float64{cores(1).Key(): size, cores(2).Key(): size * effect}
	w.visits = []string{s.Current.String()}
	for s.EpochsDone < s.EpochsTotal {
		w.epoch()
		if len(s.Trials) > 0 {
			w.look()
			w.act(t, plan.Decide(*s))
		}
	}
	return w
}

func TestADoubtIsRaisedOnceAndTheJobComesToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		restarts, probes := rapid.IntRange(0, 5).Draw(t, "restarts"), rapid.IntRange(0, 5).Draw(t, "probes")
		size, effect := rapid.Float64Range(0.5, 4).Draw(t, "size of the input"), rapid.Float64Range(0.4, 2).Draw(t, "true effect")
		w := live(t, restarts, probes, size, effect, func() float64 { return rapid.Float64Range(0.95, 1.05).Draw(t, "noise") })
		switch {
		case w.doubts > 1:
			t.Fatalf("doubted %d times: %q", w.doubts, w.visits)
		case w.doubts == 0 && len(w.visits) > 1:
			t.Fatalf("moved without a doubt: %q", w.visits)
		case w.doubts == 1 && (restarts > 0 && effect < 0.8 && !w.state.Current.Equal(cores(2)) || effect > 1.3 && !w.state.Current.Equal(cores(1))):
			t.Fatalf("the recalled setting takes %.2f times as long, and the job ended under %s: %q", effect, w.state.Current, w.visits)
		}
	})
}

func TestTheLifeOfADoubtedJob(t *testing.T) {
	t.Parallel()
	one, two := cores(1).String(), cores(2).String()
	for name, c := range map[string]struct {
		size, effect float64
		want         []string
	}{
		"a larger input: it looks, and goes back": {4, 0.5, []string{two, one + " because doubted", two + " because probe-won"}},
		"a wrong setting: it looks, and stays":    {1, 2, []string{two, one + " because doubted"}},
		"no effect: it looks, and stays":          {4, 1, []string{two, one + " because doubted"}},
		"as its kind: nothing happens":            {1, 0.6, []string{two}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := live(t, 2, 4, c.size, c.effect, func() float64 { return 1 })
			if diff := cmp.Diff(c.want, w.visits); diff != "" {
				t.Errorf("it ran under (-want +got):\n%s", diff)
			}
		})
	}
}
