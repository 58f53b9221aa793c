package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

func runTuner(t *testing.T, in replay.TunerInput) evaluate.Report {
	t.Helper()
	if in.Seeds == 0 {
		in.Seeds = 10
	}
	r, err := replay.Tuner(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trained is a job whose best batch size is 64 and whose best power limit is 150: an
// epoch takes 10 s at 200 W, 11 s at 150 W, and 16 s at the lowest limit, where it draws
// 120 W.
func trained(epochs map[int]string) string {
	var b strings.Builder
	b.WriteString("workload,machine,knob_batch_size,knob_power_limit_watts,epochs,epoch_seconds,watts,repeat\n")
	for _, batch := range []int{32, 64, 128, 256} {
		for _, limit := range []struct{ cap, seconds, watts int }{{100, 16, 120}, {150, 11, 150}, {200, 10, 200}} {
			for r, n := range strings.Fields(epochs[batch]) {
				if n == "X" {
					n = ""
				}
				fmt.Fprintf(&b, "a,m,%d,%d,%s,%d,%d,%d\n", batch, limit.cap, n, limit.seconds, limit.watts, r)
			}
		}
	}
	return b.String()
}

func TestTheBestSettingsKnownByHandAreFoundAndPaidFor(t *testing.T) {
	t.Parallel()
	file := write(t, "trials.csv", trained(map[int]string{32: "12 12", 64: "5 5", 128: "8 8", 256: "10 10"}))
	r := runTuner(t, replay.TunerInput{Set: trialsIn(t, file), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, Recurrences: 40}).Rows[0]
	// The owner's: 256 at 200 W, 10 epochs of 2000 J. The best: 5 epochs of 1650 J.
	if want := 5 * 1650.0 / 20000; !equal(r.Figure("oracle_ratio"), evaluate.Figure(want)) || !equal(r.Figure("final_ratio"), evaluate.Figure(want)) || r.Text("final") != "batch_size=64 power_limit_watts=150" {
		t.Errorf("oracle %g, final %g with %s; want %g", r.Figure("oracle_ratio"), r.Figure("final_ratio"), r.Text("final"), want)
	}
	if r.Figure("cumulative_ratio") <= r.Figure("oracle_ratio") || r.Figure("cumulative_ratio") > .5 || !equal(r.Figure("cumulative_energy_ratio"), r.Figure("cumulative_ratio")) {
		t.Errorf("all returns cost %g, their joules %g", r.Figure("cumulative_ratio"), r.Figure("cumulative_energy_ratio"))
	}
	if want := .825; !equal(r.Figure("system_knob_oracle_ratio"), evaluate.Figure(want)) {
		t.Errorf("the best power limit costs %g, want %g", r.Figure("system_knob_oracle_ratio"), want)
	}
	if r.Figure("random_cumulative_ratio") < r.Figure("cumulative_ratio") || r.Figure("grid_cumulative_ratio") < r.Figure("cumulative_ratio") || r.Figure("single_knob_cumulative_ratio") < r.Figure("cumulative_ratio") {
		t.Errorf("simpler policies pay less: %+v", r)
	}
}

func TestALimitOfTimeIsKept(t *testing.T) {
	t.Parallel()
	file := write(t, "trials.csv", trained(map[int]string{32: "20", 64: "20", 128: "9", 256: "10"}))
	r := runTuner(t, replay.TunerInput{Set: trialsIn(t, file), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.05}, Recurrences: 30}).Rows[0]
	if r.Text("final") != "batch_size=128 power_limit_watts=150" || r.Figure("limits_broken") != 0 || r.Figure("final_time_ratio") > 1.05 {
		t.Errorf("final %s takes %g of the time, limits broken in %g", r.Text("final"), r.Figure("final_time_ratio"), r.Figure("limits_broken"))
	}
}

func TestARunThatNeverEndsIsStoppedAndPaid(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "trials.csv")
	text := trained(map[int]string{32: "X X", 64: "X X", 128: "8 8", 256: "10 10"})
	targets := "workload,machine,max_epochs,default_knob_batch_size,default_knob_power_limit_watts\na,m,1000,128,200\n"
	reference := "machine,workload,recurrences,oracle_energy_config,x_last5_eta_ratio,x_last5_tta_ratio,x_cumulative_energy_ratio\nm,a,25,64/150,0.8,0.9,0.85\n"
	for name, text := range map[string]string{"trials.csv": text, "targets.csv": targets, "reference.csv": reference} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := runTuner(t, replay.TunerInput{Set: trialsIn(t, file), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}}).Rows[0]
	if r.Text("default") != "batch_size=128 power_limit_watts=200" || r.Figure("recurrences") != 25 || r.Figure("reference_cumulative_energy_ratio") != .85 || r.Figure("reference_final_time_ratio") != .9 {
		t.Errorf("what stands beside the data is not used: %+v", r)
	}
	// A run of batch 64 to its 1000 epochs would cost as much as 100 others.
	if !equal(r.Figure("final_ratio"), .825) || r.Figure("cumulative_ratio") < .825 || r.Figure("cumulative_ratio") > 1.1 {
		t.Errorf("final %g, all runs %g", r.Figure("final_ratio"), r.Figure("cumulative_ratio"))
	}
}

func TestPlaceholdersAreFailedRunsAndTheFairShareIsTheDefault(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("workload,machine,knob_gpus,knob_cores,knob_memory_gib,samples_per_second,relative_speed\n")
	for cores := 1; cores <= 6; cores++ {
		for _, memory := range []int{20, 60, 120} {
			speed := float64(min(cores, 5)) / 3
			if memory == 20 {
				speed = .1
			}
			fmt.Fprintf(&b, "a,m,1,%d,%d,%g,%g\nb,m,1,%d,%d,7,1\n", cores, memory, 100*speed, speed, cores, memory)
		}
	}
	rep := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", b.String())), Goal: recurring.Goal{Cores: true, Attain: .98}, Probes: 8})
	if len(rep.Rows) != 1 || rep.Summary.Figure("skipped") != 1 {
		t.Fatalf("%v rows, %v skipped; want one, since b is constant", len(rep.Rows), rep.Summary.Figure("skipped"))
	}
	r := rep.Rows[0]
	if r.Text("default") != "cores=3 memory_gib=60" || r.Text("final") != "cores=5 memory_gib=60" || r.Figure("steps_above") != 0 || r.Figure("cumulative_energy_ratio").Known() {
		t.Errorf("%+v", r)
	}
}

func TestTheSameChoicesGiveTheSameText(t *testing.T) {
	t.Parallel()
	file := write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules\n"+
		"sp,xeon,1,40,400\nsp,xeon,2,22,260\nsp,xeon,3,20,250\nsp,xeon,4,20,300\n")
	in := replay.TunerInput{Set: trialsIn(t, file), Goal: recurring.Goal{Cores: true, MaxSlowdown: 1.05, MaxJoules: 1.02}, Recurrences: 5}
	fixtures.Golden(t, *update, "testdata/tuner.txt", runTuner(t, in).Text())
	if diff := cmp.Diff(asJSON(t, runTuner(t, in)), asJSON(t, runTuner(t, in))); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsThatLackWhatTheGoalNeedsAreAbsentAndCounted(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,knob_cores,seconds,joules,failed\n" +
		"a,m,1,8,80,\na,m,2,5,,\na,m,3,,40,\na,m,4,3,70,\na,m,5,4,,1\na,m,6,2,90,False\n"
	for _, goal := range []recurring.Goal{
		{Measure: tuning.Measure{Objective: tuning.Energy}},
		{Measure: tuning.Measure{Objective: tuning.EDP}},
		{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}},
		{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 2},
		{Measure: tuning.Measure{Objective: tuning.Time}},
		{Cores: true, MaxSlowdown: 1.5, MaxJoules: 2},
	} {
		rep := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", text)), Goal: goal, Seeds: 2})
		all, err := json.Marshal(rep)
		if err != nil || len(rep.Rows) != 1 {
			t.Fatalf("%+v: %v, %d rows", goal, err, len(rep.Rows))
		}
		for _, key := range []string{"oracle_ratio", "final_ratio", "cumulative_ratio", "random_cumulative_ratio", "grid_cumulative_ratio", "single_knob_cumulative_ratio"} {
			if strings.Contains(string(all), `"`+key+`":null`) {
				t.Errorf("%+v: %s is not finite: %s", goal, key, all)
			}
		}
		r, absent := rep.Rows[0], 1
		if goal.Objective == tuning.Time {
			absent = 0
		}
		if r["absent"] != absent || r.Text("default") != "cores=6" || r["settings"] != 5-absent || r.Figure("cumulative_ratio") <= 0 || !r.Figure("cumulative_ratio").Known() {
			t.Errorf("%+v: %+v", goal, r)
		}
		lost := 0
		for _, l := range rep.Summary.Lines("left_out") {
			lost += int(l.Figure("rows"))
		}
		if lost != 1+absent || !strings.Contains(rep.Text(), "it has no time") {
			t.Errorf("%+v: left out %+v", goal, rep.Summary.Lines("left_out"))
		}
	}
}

func TestARepeatThatFailedIsARiskAndNotTheWholeSetting(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,knob_cores,seconds,joules,failed,repeat\n" +
		"a,m,1,10,100,0,0\na,m,1,10,100,0,1\na,m,2,5,50,0,0\na,m,2,1,1,1,1\na,m,4,8,90,0,0\na,m,4,12,110,0,1\n"
	rep := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", text)), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, Seeds: 4, Recurrences: 12})
	r := rep.Rows[0]
	if r.Figure("settings") != 3 || r.Text("default") != "cores=4" || r.Text("oracle") == "cores=2" || len(rep.Summary.Lines("left_out")) != 0 {
		t.Errorf("%+v, left out %+v", r, rep.Summary.Lines("left_out"))
	}
}

// The default costs 8 or 12 s a run: each return pays one of them.
func TestEachReturnPaysItsOwnRepeat(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,knob_cores,seconds,repeat\na,m,1,100,0\na,m,1,100,1\na,m,2,8,0\na,m,2,12,1\n"
	seen := map[string]bool{}
	for seeds := 1; seeds <= 6; seeds++ {
		r := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", text)), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, Recurrences: 1, Seeds: seeds}).Rows[0]
		seen[fmt.Sprintf("%.6f", r.Figure("cumulative_ratio"))] = true
		if r.Figure("cumulative_ratio") < .8-1e-9 || r.Figure("cumulative_ratio") > 1.2+1e-9 {
			t.Errorf("one return costs %g", r.Figure("cumulative_ratio"))
		}
	}
	if len(seen) < 2 {
		t.Errorf("every return cost the mean: %v", seen)
	}
}

func TestInputsAreNotRepeatsOfEachOther(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,input,knob_cores,seconds\na,m,1,1,4\na,m,1,2,2\na,m,2,1,40\na,m,2,2,50\n"
	rep := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", text)), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, Recurrences: 8, Seeds: 2})
	if len(rep.Rows) != 2 || rep.Rows[0].Text("input") != "1" || rep.Rows[0].Text("oracle") != "cores=2" || rep.Rows[1].Text("oracle") != "cores=1" {
		t.Errorf("%+v", rep.Rows)
	}
	if !strings.Contains(rep.Text(), "INPUT") {
		t.Error("the text does not tell inputs apart")
	}
}

func TestADefaultThatNeverReachesItsEndIsReplacedByTheNearest(t *testing.T) {
	t.Parallel()
	file := write(t, "trials.csv", trained(map[int]string{32: "12 12", 64: "5 5", 128: "8 8", 256: "X X"}))
	r := runTuner(t, replay.TunerInput{Set: trialsIn(t, file), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, Recurrences: 30, Seeds: 2}).Rows[0]
	if r["default_replaced"] != true || r.Text("default") != "batch_size=128 power_limit_watts=200" || r.Figure("cumulative_ratio") > 1.1 || r.Figure("final_ratio") > 1 {
		t.Errorf("%+v", r)
	}
}

func TestThreadsCountAsCoresWhereNothingElseDoes(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,%s,seconds,joules\na,m,1,40,400\na,m,2,22,260\na,m,3,20,250\na,m,4,20,300\n"
	in := replay.TunerInput{Goal: recurring.Goal{Cores: true, MaxSlowdown: 1.05}, Recurrences: 5, Seeds: 2}
	in.Set = trialsIn(t, write(t, "trials.csv", fmt.Sprintf(text, "knob_threads")))
	if r := runTuner(t, in).Rows[0]; !equal(r.Figure("oracle_ratio"), .75) || r.Text("final") != "threads=3" {
		t.Errorf("%+v", r)
	}
	in.Set = trialsIn(t, write(t, "trials.csv", fmt.Sprintf(text, "knob_batch")))
	if _, err := replay.Tuner(t.Context(), in, evaluatetest.Quiet); !errors.Is(err, evaluate.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "no knob of cores or threads") {
		t.Errorf("neither cores nor threads: %v", err)
	}
}

func TestAReferenceThatLacksAColumnIsNotZero(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"trials.csv":    trained(map[int]string{64: "5", 128: "8"}),
		"reference.csv": "machine,workload,recurrences,x_last5_eta_ratio\nm,a,6,0.8\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rep := runTuner(t, replay.TunerInput{Set: trialsIn(t, filepath.Join(folder, "trials.csv")), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, Seeds: 1})
	if r := rep.Rows[0]; r.Figure("reference_cumulative_energy_ratio").Known() || r.Figure("reference_final_time_ratio").Known() || r.Figure("reference_final_energy_ratio") != .8 || rep.Summary.Figure("tables_with_reference") != 0 {
		t.Errorf("%+v, %v tables with a reference", r, rep.Summary.Figure("tables_with_reference"))
	}
}

func TestKnobsMayBeWords(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,knob_solver,knob_cores,seconds,node\na,m,direct,1,9,n1\na,m,direct,2,8,n2\na,m,iterative,1,4,n1\na,m,iterative,2,3,n1\n"
	r := runTuner(t, replay.TunerInput{Set: trialsIn(t, write(t, "trials.csv", text)), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, Recurrences: 10, Seeds: 2}).Rows[0]
	if r.Figure("settings") != 4 || r.Text("oracle") != "cores=2 solver=iterative" || r.Text("final") != r.Text("oracle") {
		t.Errorf("%+v", r)
	}
}
