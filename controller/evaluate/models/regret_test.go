package models_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

// kind is a program as the tests draw it: what it takes on one core and on two, and what
// an interval of half a second of it looks like.
type kind struct {
	name     string
	one, two float64 // seconds of the first input
	inputs   int
	busy     float64 // cores used under two
	switches float64 // voluntary, per second
	faults   float64
}

func scales() kind {
	return kind{name: "scales", one: 10, two: 5, inputs: 3, busy: 1.95, switches: 20, faults: 30}
}

func serial() kind {
	return kind{name: "serial", one: 10, two: 10, inputs: 5, busy: 0.99, switches: 4000, faults: 8000}
}

// recorded draws a recording: input n takes 3ⁿ times as long as the first, and every
// setting is measured in two repeats. wobble are factors of each run's seconds.
func recordedFactorial(wobble func() float64, kinds ...kind) (trials, samples evaluate.Table) {
	trials = evaluate.Table{File: "trials.csv", Format: evaluate.Trials, Columns: []string{"workload", "machine", "run", "input", "knob_cores", "seconds", "repeat"}}
	samples = evaluate.Table{File: "samples.csv", Format: evaluate.Samples, Columns: []string{
		"workload", "run", "machine", "input", "knob_cores", "t_seconds", "cpu_user_seconds", "cpu_system_seconds", "cpu_seconds",
		"voluntary_switches", "involuntary_switches", "minor_faults", "memory_rss_bytes", "threads",
	}}
	for _, k := range kinds {
		for input := range k.inputs {
			for repeat := range 2 {
				for _, cores := range []float64{1, 2} {
					seconds := k.one
					if cores == 2 {
						seconds = k.two
					}
					seconds *= math.Pow(3, float64(input)) * wobble()
					run := fmt.Sprintf("%s-%d-%v-%d", k.name, input+1, cores, repeat)
					row := evaluate.Row{Workload: k.name, Machine: "m", Run: run, Knobs: tuning.Settings{"cores": tuning.Number(cores)}}
					row.Set("input", float64(input+1))
					row.Set("seconds", seconds)
					row.Set("repeat", float64(repeat))
					trials.Rows = append(trials.Rows, row)
					samples.Rows = append(samples.Rows, k.sampled(row, wobble)...)
				}
			}
		}
	}
	return trials, samples
}

func (k kind) sampled(run evaluate.Row, wobble func() float64) []evaluate.Row {
	var out []evaluate.Row
	for i := range 10 {
		row := evaluate.Row{Workload: run.Workload, Machine: run.Machine, Run: run.Run, Knobs: run.Knobs}
		input, _ := run.Float("input")
		busy := min(k.busy, run.Knobs["cores"].Float()) / 2
		for column, v := range map[string]float64{
			"input": input, "t_seconds": float64(i+1) / 2, "cpu_user_seconds": 0.9 * busy, "cpu_system_seconds": 0.1 * busy, "cpu_seconds": busy,
			"voluntary_switches": k.switches * busy * wobble(), "involuntary_switches": 50 * busy, "minor_faults": k.faults * busy * wobble(),
			"memory_rss_bytes": 1e7 * input, "threads": 5,
		} {
			row.Set(column, v)
		}
		out = append(out, row)
	}
	return out
}

func still() float64 { return 1 }

func factorialInput(kinds ...kind) models.RegretInput {
	trials, samples := recordedFactorial(still, kinds...)
	return models.RegretInput{Set: evaluate.Set{Trials: []evaluate.Table{trials}, Samples: []evaluate.Table{samples}}}
}

func runRegret(t testing.TB, in models.RegretInput) evaluate.Report {
	t.Helper()
	r, err := models.Regret(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(v evaluate.Figure, want float64) bool { return math.Abs(float64(v)-want) < 1e-9 }

// By cores × seconds²: what scales costs 100 on one core and 50 on two, what is serial
// 100 and 200. Of all others together the kind with more inputs wins, and the default,
// which is both cores, is right for what scales only.
func TestEachOfTwoKindsGetsWhatItsClassPrefers(t *testing.T) {
	t.Parallel()
	r := runRegret(t, factorialInput(scales(), serial()))
	for _, row := range r.Rows {
		best, single, own := "cores=2", 2.0, 1.0
		if row.Text("workload") == "serial" {
			best, single, own = "cores=1", 1.0, 2.0
		}
		if row.Text("optimum") != best || !slices.Equal(words(row, "chosen"), []string{best}) || !near(row.Figure("regret"), 1) || !near(row.Figure("regret_hindsight"), 1) {
			t.Errorf("%s/%v: %+v", row.Text("workload"), row.Figure("input"), row)
		}
		if !near(row.Figure("single_regret"), single) || !near(row.Figure("default_regret"), own) || !near(row.Figure("oracle_over_default"), 1/own) || !near(row.Figure("known"), 1) {
			t.Errorf("%s/%v: single %v, default %v, oracle %v, known %v", row.Text("workload"), row.Figure("input"), row.Figure("single_regret"), row.Figure("default_regret"), row.Figure("oracle_over_default"), row.Figure("known"))
		}
	}
	s := r.Summary
	if s.Figure("workloads") != 2 || s.Figure("inputs") != 8 || s.Figure("optima") != 2 || s.Figure("questions") != 16 || !near(s.Figure("share_known"), 1) || !near(s.Figure("share_own_kind"), 1) || !near(s.Figure("regret_mean"), 1) {
		t.Errorf("summary %+v", s)
	}
	if want := math.Pow(2, 3.0/8); !near(s.Figure("single_regret_mean"), want) || !near(s.Figure("single_regret_hindsight_mean"), want) || !near(s.Figure("single_regret_worst"), 2) {
		t.Errorf("single %v, want %v", s.Figure("single_regret_mean"), want)
	}
	if want := math.Pow(2, 5.0/8); !near(s.Figure("default_regret_mean"), want) || !near(s.Figure("oracle_over_default_mean"), 1/want) || !near(s.Figure("share_moved"), 10.0/16) || !near(s.Figure("repeat_sd_log"), 0) {
		t.Errorf("default %v, want %v; oracle %v, moved %v", s.Figure("default_regret_mean"), want, s.Figure("oracle_over_default_mean"), s.Figure("share_moved"))
	}
}

func TestAnInputOfNoKnownKindKeepsItsDefaultAndPaysForIt(t *testing.T) {
	t.Parallel()
	stranger := kind{name: "stranger", one: 10, two: 20, inputs: 1, busy: 0.05, switches: 1e6, faults: 1}
	r := runRegret(t, factorialInput(scales(), serial(), stranger))
	row := r.Rows[len(r.Rows)-1]
	if row.Text("workload") != "stranger" || !near(row.Figure("known"), 0) || !slices.Equal(words(row, "reasons"), []string{string(tuning.ReasonTooFar)}) || !slices.Equal(words(row, "chosen"), []string{"cores=2"}) {
		t.Fatalf("%+v", row)
	}
	if !near(row.Figure("regret"), 8) || !near(row.Figure("default_regret"), 8) || !near(r.Summary.Figure("unknown_regret_mean"), 8) || !near(r.Summary.Figure("known_regret_mean"), 1) {
		t.Errorf("regret %v, of the unknown %v", row.Figure("regret"), r.Summary.Figure("unknown_regret_mean"))
	}
	if !near(row.Figure("probed_regret"), 1) || !near(r.Summary.Figure("unknown_probed_regret_mean"), 1) || !near(r.Summary.Figure("probed_regret_mean"), 1) || !near(r.Summary.Figure("probed_regret_worst"), 1) {
		t.Errorf("probed it would cost %v, all %v", row.Figure("probed_regret"), r.Summary.Figure("probed_regret_mean"))
	}
	if !near(r.Summary.Figure("share_known"), 16.0/18) || !near(r.Summary.Figure("regret_worst"), 8) {
		t.Errorf("summary %+v", r.Summary)
	}
}

func TestObjectivesWeighCoresAndTime(t *testing.T) {
	t.Parallel()
	in := factorialInput(scales(), serial())
	for _, c := range []struct {
		objective tuning.Objective
		weight    float64
		want      map[string]string
	}{
		{tuning.Time, 0, map[string]string{"scales": "cores=2", "serial": "cores=1"}}, // of equals the first by name
		{tuning.Energy, 0, map[string]string{"scales": "cores=1", "serial": "cores=1"}},
		{tuning.Blend, 0.1, map[string]string{"scales": "cores=2", "serial": "cores=1"}},
	} {
		in := in
		in.Objective, in.Weight = c.objective, c.weight
		for _, row := range runRegret(t, in).Rows {
			if row.Text("optimum") != c.want[row.Text("workload")] {
				t.Errorf("%s: the optimum of %s/%v is %s, want %s", c.objective, row.Text("workload"), row.Figure("input"), row.Text("optimum"), c.want[row.Text("workload")])
			}
		}
	}
}

func TestTheReportIsAsItWas(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	trials, samples := recordedFactorial(func() float64 { return 1 + 0.05*rng.Float64() }, scales(), serial())
	r := runRegret(t, models.RegretInput{Set: evaluate.Set{Trials: []evaluate.Table{trials}, Samples: []evaluate.Table{samples}}})
	fixtures.Golden(t, *update, "testdata/regret.txt", r.Text())
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fixtures.Golden(t, *update, "testdata/regret.json", string(text)+"\n")
}

// Costs are compared within an input: another unit of time, other names and another
// order of the rows change nothing.
func TestUnitsNamesAndOrderDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rng := rand.New(rand.NewPCG(seed, 7))
		one, other := scales(), serial()
		one.inputs, other.inputs = 2, 1
		trials, samples := recordedFactorial(func() float64 { return 1 + 0.3*rng.Float64() }, one, other)
		in := models.RegretInput{Set: evaluate.Set{Trials: []evaluate.Table{trials}, Samples: []evaluate.Table{samples}}}
		before := runRegret(t, in)
		shuffled := trials
		shuffled.Rows = nil
		unit := rapid.Float64Range(0.01, 100).Draw(rt, "unit")
		for _, i := range rng.Perm(len(trials.Rows)) {
			was := trials.Rows[i]
			row := evaluate.Row{Workload: was.Workload, Machine: was.Machine, Run: was.Run, Knobs: was.Knobs}
			for _, c := range []string{"input", "repeat"} {
				v, _ := was.Float(c)
				row.Set(c, v)
			}
			v, _ := was.Float("seconds")
			row.Set("seconds", unit*v)
			shuffled.Rows = append(shuffled.Rows, row)
		}
		in.Trials = []evaluate.Table{shuffled}
		after := runRegret(t, in)
		for i, b := range before.Rows {
			a := after.Rows[i]
			if a.Text("workload") != b.Text("workload") || a.Text("optimum") != b.Text("optimum") || !slices.Equal(words(a, "chosen"), words(b, "chosen")) || !near(a.Figure("regret"), float64(b.Figure("regret"))) || !near(a.Figure("regret_hindsight"), float64(b.Figure("regret_hindsight"))) {
				rt.Fatalf("%+v became %+v", b, a)
			}
			if b.Figure("regret_hindsight") < 1-1e-12 {
				rt.Fatalf("%s/%v costs less than the cheapest in hindsight: %v", b.Text("workload"), b.Figure("input"), b.Figure("regret_hindsight"))
			}
		}
	})
}

func TestRunsThatOthersDisturbedAreCountedOrLeftOut(t *testing.T) {
	t.Parallel()
	in := factorialInput(scales(), serial())
	for i := range in.Trials[0].Rows {
		r := &in.Trials[0].Rows[i]
		r.Set("disturbed", 0)
		if n, _ := r.Float("input"); r.Workload == "serial" && n == 2 {
			r.Set("disturbed", 1)
		}
	}
	if s := runRegret(t, in).Summary; !near(s.Figure("share_disturbed"), 1.0/8) || s.Figure("inputs") != 8 {
		t.Errorf("%v of %v inputs disturbed", s.Figure("share_disturbed"), s.Figure("inputs"))
	}
	in.Undisturbed = true
	if s := runRegret(t, in).Summary; !near(s.Figure("share_disturbed"), 0) || s.Figure("inputs") != 7 || s.Figure("skipped") != 1 {
		t.Errorf("left out: %v disturbed, %v inputs, %v skipped", s.Figure("share_disturbed"), s.Figure("inputs"), s.Figure("skipped"))
	}
}

func TestRecordingsThatCannotAnswerAreRefused(t *testing.T) {
	t.Parallel()
	fine := factorialInput(scales(), serial())
	drop := func(keep func(evaluate.Row) bool) models.RegretInput {
		out := fine
		table := fine.Trials[0]
		table.Rows = slices.DeleteFunc(slices.Clone(table.Rows), func(r evaluate.Row) bool { return !keep(r) })
		out.Trials = []evaluate.Table{table}
		return out
	}
	unsampled, twice := fine, fine
	unsampled.Samples, twice.Samples = nil, slices.Repeat(fine.Samples, 2)
	joules, luck, heavy := fine, fine, fine
	joules.Energy, luck.Objective, heavy.Weight = models.Joules, "luck", 2
	elsewhere := fine
	elsewhere.Default = tuning.Settings{"cores": tuning.Number(9)}
	for name, in := range map[string]models.RegretInput{
		"one repeat":                drop(func(r evaluate.Row) bool { v, _ := r.Float("repeat"); return v == 0 }),
		"one setting":               drop(func(r evaluate.Row) bool { return r.Knobs["cores"] == tuning.Number(2) }),
		"no run under the default":  elsewhere,
		"samples of a run twice":    twice,
		"no samples":                unsampled,
		"joules that are not there": joules,
		"an unknown objective":      luck,
		"a weight that is no share": heavy,
	} {
		if _, err := models.Regret(t.Context(), in, evaluatetest.Quiet); !errors.Is(err, evaluate.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two recordings whose runs, repeats and inputs have the same names, on two machines and
// again on the first: each trial is profiled by the samples next to it.
func TestRunsOfSeveralRecordingsAreKeptApart(t *testing.T) {
	t.Parallel()
	var in models.RegretInput
	for i, machine := range []string{"m", "n", "m"} {
		trials, samples := recordedFactorial(still, scales(), serial())
		trials.File, samples.File = fmt.Sprintf("%d/trials.csv", i), fmt.Sprintf("%d/samples.csv", i)
		for _, table := range []evaluate.Table{trials, samples} {
			for j := range table.Rows {
				table.Rows[j].Machine = machine
			}
		}
		in.Trials, in.Samples = append(in.Trials, trials), append([]evaluate.Table{samples}, in.Samples...)
	}
	r := runRegret(t, in)
	if s := r.Summary; s.Figure("inputs") != 16 || s.Figure("repeats") != 4 || !near(s.Figure("share_known"), 1) || !near(s.Figure("regret_mean"), 1) || s.Figure("questions") != 8*4+8*2 {
		t.Errorf("%+v", s)
	}
}

func TestInputsMayBeWordsAndRepeatsUnnumbered(t *testing.T) {
	t.Parallel()
	plain, worded := factorialInput(scales(), serial()), factorialInput(scales(), serial())
	rewrite := func(table evaluate.Table) evaluate.Table {
		var b strings.Builder
		if err := evaluate.Write(&b, table); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		at := slices.Index(strings.Split(lines[0], ","), "input")
		for i, l := range lines[1:] {
			cells := strings.Split(l, ",")
			cells[at] = "size " + cells[at]
			lines[i+1] = strings.Join(cells, ",")
		}
		text := strings.Join(lines, "\n") + "\n"
		if table.Format == evaluate.Trials { // without the last column, repeat
			text = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, ",repeat\n", "\n"), ",0\n", "\n"), ",1\n", "\n")
		}
		return evaluatetest.Table(t, table.File, text, table.Format)
	}
	worded.Trials[0], worded.Samples[0] = rewrite(worded.Trials[0]), rewrite(worded.Samples[0])
	a, b := runRegret(t, plain), runRegret(t, worded)
	if diff := cmp.Diff(asJSON(t, a), asJSON(t, b)); diff != "" {
		t.Errorf("(-numbers +words):\n%s", diff)
	}
}

func TestTrialsWithoutACostAreListed(t *testing.T) {
	t.Parallel()
	in := factorialInput(scales(), serial())
	lost := evaluate.Row{Line: 99, Workload: "scales", Machine: "m", Run: "lost", Knobs: tuning.Settings{"cores": tuning.Number(1)}}
	lost.Set("input", 1)
	lost.Set("repeat", 7)
	in.Trials[0].Rows = append(in.Trials[0].Rows, lost)
	s := runRegret(t, in).Summary
	want := []evaluate.Line{{"data": "trials.csv", "workload": "scales/1", "machine": "m", "rows": 1, "line": 99, "why": "no seconds above 0"}}
	if diff := cmp.Diff(want, s.Lines("left_out")); diff != "" || s.Figure("inputs") != 8 {
		t.Errorf("%v inputs, left out (-want +got):\n%s", s.Figure("inputs"), diff)
	}
}

// Epochs that end as the curves say, the first of them strange: it is warm-up.
func TestEpochsAreThoseOfTheCurves(t *testing.T) {
	t.Parallel()
	in := factorialInput(scales(), serial())
	var b strings.Builder
	b.WriteString("run,workload,machine,epoch,seconds\n")
	for _, r := range in.Samples[0].Rows {
		at, _ := r.Float("t_seconds")
		if at == 0.5 {
			r.Set("minor_faults", 1e9)
		}
		if end, ok := map[float64]int{1: 1, 2.5: 2, 4: 3, 5: 4}[at]; ok {
			fmt.Fprintf(&b, "%s,%s,m,%d,%g\n", r.Run, r.Workload, end, at)
		}
	}
	in.Curves = []evaluate.Table{evaluatetest.Table(t, "curves.csv", b.String(), evaluate.Curves)}
	with := runRegret(t, in)
	for i := range in.Samples[0].Rows {
		r := &in.Samples[0].Rows[i]
		if at, _ := r.Float("t_seconds"); at == 0.5 {
			r.Set("minor_faults", 17)
		}
	}
	if diff := cmp.Diff(asJSON(t, with.Summary), asJSON(t, runRegret(t, in).Summary)); diff != "" {
		t.Errorf("the first epoch counts:\n%s", diff)
	}
}
