package models_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/tuning"
)

// recorded draws samples: programs whose counts per instruction differ by a factor,
// three executions of each under each number of cores.
func sampledPrograms(programs []string, cores []float64) evaluate.Table {
	rng := rand.New(rand.NewPCG(3, 4))
	t := evaluate.Table{File: "drawn.csv", Format: evaluate.Samples, Columns: []string{
		"workload", "run", "machine", "knob_cores", "knob_frequency_mhz", "t_seconds", "cycles", "instructions", "branches", "cache-misses", "dTLB-load-misses", "watts",
	}}
	for i, program := range programs {
		for _, n := range cores {
			for nth := range 6 {
				for second := range 8 {
					r := evaluate.Row{
						Workload: program, Machine: "m", Run: fmt.Sprintf("%s-%v-%d", program, n, nth),
						Knobs: tuning.Settings{"cores": tuning.Number(n), "frequency_mhz": tuning.Number(float64(1000 + 500*(nth%2)))},
					}
					noise := func() float64 { return 1 + 0.02*rng.NormFloat64() }
					r.Set("t_seconds", float64(second+1))
					r.Set("instructions", 1e9*noise())
					r.Set("cycles", 1e9*noise()*float64(1+i%3))
					r.Set("branches", 1e8*noise()*float64(1+i))
					r.Set("cache-misses", 1e6*noise()*float64(1+(i*7)%5))
					r.Set("dTLB-load-misses", 1e5*noise()*float64(1+(i*3)%4))
					r.Set("watts", float64(100*i))
					t.Rows = append(t.Rows, r)
				}
			}
		}
	}
	return t
}

func runClassifier(t *testing.T, in models.ClassifierInput) evaluate.Report {
	t.Helper()
	in.Seed, in.Resamples = 1, 3
	r, err := models.Classifier(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func variation(t *testing.T, r evaluate.Report, name string) evaluate.Line {
	t.Helper()
	for _, v := range r.Summary.Lines("variations") {
		if v.Text("name") == name {
			return v
		}
	}
	t.Fatalf("no variation %q in %+v", name, r.Summary.Lines("variations"))
	return evaluate.Line{}
}

func TestProgramsThatDifferAreRecognisedAndStrangersAreNot(t *testing.T) {
	t.Parallel()
	r := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{sampledPrograms([]string{"a", "b", "c", "d"}, []float64{1, 2})}}})
	s := r.Summary
	if s.Figure("recognised") < 0.9 || s.Figure("precision") != 1 || s.Figure("unknown_auc_min") < 0.95 || s.Figure("unknown_called_known") > 0 || s.Figure("k") != 4 || s.Figure("k_max") > 8 || s.Figure("strata_over") != 0 {
		t.Errorf("%v classes:\n%s", s.Figure("k"), r.Text())
	}
	if s.Figure("stability") < 0.9 {
		t.Errorf("stability %v", s.Figure("stability"))
	}
	if v := variation(t, r, "other cores or threads"); v.Figure("refused") != 1 || v.Figure("recognised") != 0 {
		t.Errorf("other cores are compared: %+v", v)
	}
	if v := variation(t, r, "another set of counters"); v.Figure("refused") != 1 {
		t.Errorf("another set of counters is compared: %+v", v)
	}
	if v := variation(t, r, "a third of the counts from a neighbour"); v.Figure("recognised") > 0.5 || v.Figure("questions") != 48 {
		t.Errorf("runs that are a third another's: %+v", v)
	}
}

func TestTheSameSeedGivesTheSameReport(t *testing.T) {
	t.Parallel()
	in := models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{sampledPrograms([]string{"a", "b", "c"}, []float64{1})}}}
	one, other := runClassifier(t, in), runClassifier(t, in)
	a, errA := json.Marshal(one)
	b, errB := json.Marshal(other)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("another report:\n%s", diff)
	}
	for _, key := range []string{`"k":`, `"recognised":`, `"precision":`, `"unknown_auc":`, `"unknown_auc_min":`, `"unknown_called_known":`} {
		if !strings.Contains(string(a), key) {
			t.Errorf("the JSON lacks %s", key)
		}
	}
}

func TestAWiderLimitRecognisesMoreAndOneIsTheLimitOfTheClasses(t *testing.T) {
	t.Parallel()
	s := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{sampledPrograms([]string{"a", "b", "c"}, []float64{1})}}}).Summary
	if len(s.Lines("thresholds")) < 5 {
		t.Fatalf("%d thresholds", len(s.Lines("thresholds")))
	}
	for i, at := range s.Lines("thresholds") {
		if at.Figure("limit") == 1 && at.Figure("recognised") < s.Figure("recognised") { // ambiguous ones get the nearest here
			t.Errorf("%v recognised at the classes' own limit, %v in all", at.Figure("recognised"), s.Figure("recognised"))
		}
		if i == 0 {
			continue
		}
		if before := s.Lines("thresholds")[i-1]; at.Figure("limit") <= before.Figure("limit") || at.Figure("recognised") < before.Figure("recognised") || at.Figure("unknown_called_known") < before.Figure("unknown_called_known") {
			t.Errorf("%+v after %+v", at, before)
		}
	}
	if last := s.Lines("thresholds")[len(s.Lines("thresholds"))-1]; last.Figure("recognised") < 0.9 || last.Figure("precision") < 0.9 {
		t.Errorf("recognised %v, precision %v at three times the radius", last.Figure("recognised"), last.Figure("precision"))
	}
}

// An event that only one suite was recorded with would identify the suite.
func TestWhatIsMissingIdentifiesNoProgram(t *testing.T) {
	t.Parallel()
	table := sampledPrograms([]string{"a", "b"}, []float64{1})
	for i := range table.Rows {
		r := &table.Rows[i]
		for _, event := range []string{"cycles", "branches", "cache-misses", "dTLB-load-misses"} {
			r.Set(event, 1e8)
		}
		if r.Text("workload") == "a" {
			r.Set("bus-cycles", 1e7)
		}
	}
	table.Columns = append(table.Columns, "bus-cycles")
	if s := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{table}}}).Summary; s.Figure("k") != 1 {
		t.Errorf("%v classes of programs that differ only in what is missing", s.Figure("k"))
	}
}

func TestDataThatCannotAnswerAreRefused(t *testing.T) {
	t.Parallel()
	once := sampledPrograms([]string{"a", "b"}, []float64{1})
	once.Rows = slicesOf(once.Rows, func(r evaluate.Row) bool { return strings.HasSuffix(r.Run, "-0") })
	changing := sampledPrograms([]string{"a", "b"}, []float64{1})
	changing.Rows[3].Knobs = changing.Rows[3].Knobs.With("cores", tuning.Number(7))
	fine := sampledPrograms([]string{"a", "b"}, []float64{1})
	for name, in := range map[string]models.ClassifierInput{
		"one program":           {Set: evaluate.Set{Samples: []evaluate.Table{sampledPrograms([]string{"a"}, []float64{1})}}},
		"one execution of each": {Set: evaluate.Set{Samples: []evaluate.Table{once}}},
		"a run that changes":    {Set: evaluate.Set{Samples: []evaluate.Table{changing}}},
		"an unknown objective":  {Set: evaluate.Set{Samples: []evaluate.Table{fine}}, Objective: "luck"},
		"trials without costs":  {Set: evaluate.Set{Samples: []evaluate.Table{fine}, Trials: []evaluate.Table{{}}}},
	} {
		in.Resamples = 1
		if _, err := models.Classifier(t.Context(), in, evaluatetest.Quiet); !errors.Is(err, evaluate.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Runs are numbered alike under all settings, on both machines and in both files.
func TestRunsOfOneNameAreKeptApart(t *testing.T) {
	t.Parallel()
	plain := sampledPrograms([]string{"a", "b"}, []float64{1})
	want := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{plain}}}).Summary
	named := func(file, machine string) evaluate.Table {
		out := sampledPrograms([]string{"a", "b"}, []float64{1})
		out.File = file
		for i := range out.Rows {
			r := &out.Rows[i]
			r.Run, r.Machine = r.Run[strings.LastIndex(r.Run, "-")+1:], machine
		}
		return out
	}
	one, other := named("one.csv", "m"), named("other.csv", "m")
	one.Rows = append(one.Rows, named("one.csv", "n").Rows...)
	got := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{one, other}}}).Summary
	if got.Figure("runs") != 3*want.Figure("runs") || got.Figure("k") != want.Figure("k") || got.Figure("k") != 2 || got.Figure("precision") < 0.95 || len(got.Lines("strata")) != 2 || got.Figure("strata_over") != 0 {
		t.Errorf("%v runs, %v classes, precision %v, strata %+v; want %v runs", got.Figure("runs"), got.Figure("k"), got.Figure("precision"), got.Lines("strata"), 3*want.Figure("runs"))
	}
}

// A gauge summed over a run says how long it was sampled, and would make a class of it.
func TestGaugesAreNotCounted(t *testing.T) {
	t.Parallel()
	plain, gauged := sampledPrograms([]string{"a", "b", "c"}, []float64{1}), sampledPrograms([]string{"a", "b", "c"}, []float64{1})
	for i := range gauged.Rows {
		r := &gauged.Rows[i]
		for _, c := range []string{"gpu_temp", "cpu_frequency_mhz", "package_power_watts", "mem_util_percent", "rss_bytes", "cpu%", "fan_rpm", "seed"} {
			r.Set(c, 1e9*float64(len(r.Run)+i%13))
		}
	}
	gauged.Columns = append(gauged.Columns, "gpu_temp", "cpu_frequency_mhz", "package_power_watts", "mem_util_percent", "rss_bytes", "cpu%", "fan_rpm", "seed")
	a, b := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{plain}}}), runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{gauged}}})
	if diff := cmp.Diff(asJSON(t, a), asJSON(t, b)); diff != "" {
		t.Errorf("gauges change the classes (-without +with):\n%s", diff)
	}
}

func slicesOf(rows []evaluate.Row, keep func(evaluate.Row) bool) []evaluate.Row {
	var out []evaluate.Row
	for _, r := range rows {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// Two kinds want different cores. An input that was left out is recognised by its
// other input, and gets what that one wanted.
func TestTheClassesSettingSuitsAnInputThatWasLeftOut(t *testing.T) {
	t.Parallel()
	table := sampledPrograms([]string{"barrier", "scales"}, []float64{1, 2})
	trials := evaluate.Table{File: "trials.csv", Format: evaluate.Trials}
	for i := range table.Rows {
		r := &table.Rows[i]
		delete(r.Knobs, "frequency_mhz")
		var nth int
		if _, err := fmt.Sscanf(r.Run[strings.LastIndex(r.Run, "-")+1:], "%d", &nth); err != nil {
			t.Fatal(err)
		}
		r.Set("input", float64(1+nth%2))
	}
	seconds := map[string]map[float64]float64{"barrier": {1: 10, 2: 12}, "scales": {1: 10, 2: 5}}
	for _, program := range []string{"barrier", "scales"} {
		for _, n := range []float64{1, 2} {
			for input := range 2 {
				r := evaluate.Row{Workload: program, Machine: "m", Knobs: tuning.Settings{"cores": tuning.Number(n)}}
				r.Set("input", float64(input+1))
				r.Set("seconds", seconds[program][n]*float64(input+1))
				trials.Rows = append(trials.Rows, r)
			}
		}
	}
	failed := trials.Rows[0]
	failed.Knobs = tuning.Settings{"cores": tuning.Number(2)}
	broken := evaluate.Row{Workload: failed.Workload, Machine: "m", Knobs: failed.Knobs}
	broken.Set("input", 1)
	broken.Set("failed", 1)
	broken.Set("seconds", 0.001)
	trials.Rows = append(trials.Rows, broken)

	r := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{table}, Trials: []evaluate.Table{trials}}})
	if want := []string{trials.File, table.File}; !slices.Equal(r.Data, want) {
		t.Errorf("data %v, want %v", r.Data, want)
	}
	got := r.Summary.Line("regret")
	if got.Figure("inputs") != 4 || got.Figure("settings") != 2 || got.Figure("recognised") < 0.8 {
		t.Fatalf("regret %+v", got)
	}
	if got.Figure("class_cost") > 1+1e-9 || got.Figure("single_cost") < 1.15 {
		t.Errorf("class %v, single %v: the class knows what its other input wanted", got.Figure("class_cost"), got.Figure("single_cost"))
	}
	if got.Lines("kinds")[0].Text("best") != "cores=1" || got.Lines("kinds")[1].Text("best") != "cores=2" {
		t.Errorf("kinds %+v", got.Lines("kinds"))
	}
}

func TestRecordedProgramsReachTheAims(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it learns classes some seventy times")
	}
	table, err := evaluate.Read(evaluatetest.Path(t, "armpm", "samples.csv.gz"), evaluate.Samples)
	if err != nil {
		t.Fatal(err)
	}
	r := runClassifier(t, models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{table}}})
	s := r.Summary
	t.Logf("\n%s", r.Text())
	for name, ok := range map[string]bool{
		"0.90 of the executions are recognised":            s.Figure("recognised") >= 0.90,
		"a precision of 0.97":                              s.Figure("precision") >= 0.97,
		"an area of 0.97 in the mean":                      s.Figure("unknown_auc") >= 0.97,
		"an area of 0.93 for the worst":                    s.Figure("unknown_auc_min") >= 0.93,
		"at most 0.05 of the unknown called known":         s.Figure("unknown_called_known") <= 0.05,
		"no more classes than twice the programs":          s.Figure("k_max") <= 2*s.Figure("programs") && s.Figure("strata_over") == 0,
		"another set of counters is refused":               variation(t, r, "another set of counters").Figure("refused") == 1,
		"other cores are refused":                          variation(t, r, "other cores or threads").Figure("refused") == 1,
		"a missing counter makes nothing something else":   variation(t, r, "one feature missing").Figure("precision") >= 0.97,
		"a neighbour's counts make nothing something else": variation(t, r, "a tenth of the counts from a neighbour").Figure("precision") >= 0.97,
	} {
		if !ok {
			t.Errorf("missed: %s", name)
		}
	}
}
