package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/tuning"
)

// smallPlan is what most tests change a little.
func smallPlan(t interface{ Fatal(...any) }, files ...string) replay.PlanInput {
	return replay.PlanInput{Set: trialsIn(t, files...), Measure: tuning.Measure{Objective: tuning.Energy, Weight: .5}, Probes: 4, Restart: 10 * time.Second, Seeds: 1}
}

func runPlan(t testing.TB, in replay.PlanInput) evaluate.Report {
	t.Helper()
	r, err := replay.Plan(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// byCores is the same for the cost of the cores: fewer are sure to be cheaper.
func byCores(t testing.TB, files ...string) replay.PlanInput {
	in := smallPlan(t, files...)
	in.Objective = tuning.Cost
	return in
}

// halves is a job that takes as long on two cores as on four, for fewer joules.
const halves = "workload,machine,knob_cores,seconds,joules,cpu_seconds\na,m,4,100,1000,105\na,m,2,100,600,105\n"

func TestTheCostOfAMovedJobIsTheOneKnownByHand(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", halves))
	in.Epochs = []int{200}
	r := runPlan(t, in).Rows[0]
	// One epoch warms up and two are measured; while the third of these ends the controller
	// asks the job to save, which it does after the fourth: on four cores, the other 196 on two,
	// and a move of 10 s on four.
	if want := (4*4*100.0 + 196*2*100 + 4*10) / 80000; !equal(r.Figure("ratio"), evaluate.Figure(want)) || !equal(r.Figure("paid_ratio"), evaluate.Figure(want)) || r.Figure("hurt_ratio").Known() {
		t.Errorf("the job cost %g, want %g: %+v", r.Figure("ratio"), want, r)
	}
	if r.Figure("moved") != 1 || r.Figure("paid") != 1 || r.Figure("hurt") != 0 || r.Figure("restarts") != 1 || r.Text("final") != "cores=2" {
		t.Errorf("%+v", r)
	}
	if !equal(r.Figure("never_ratio"), 1) || !equal(r.Figure("oracle_ratio"), .5) || r.Text("oracle") != "cores=2" || !equal(r.Figure("regret"), r.Figure("ratio")/.5-1) {
		t.Errorf("never %g, oracle %g at %s, regret %g", r.Figure("never_ratio"), r.Figure("oracle_ratio"), r.Text("oracle"), r.Figure("regret"))
	}
	if !equal(r.Figure("always_ratio"), r.Figure("ratio")) || r.Figure("always_hurt") != 0 {
		t.Errorf("always %g, hurt %g", r.Figure("always_ratio"), r.Figure("always_hurt"))
	}
}

func TestCostsAreThoseOfTheSitesPrices(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", halves))
	in.Epochs, in.MaxSlowdown = []int{200}, tuning.DefaultMaxSlowdown
	// A kilowatt-hour for a millionth of what a core-hour costs changes nothing; one for
	// nothing else is the objective energy.
	for kwh, core := range map[float64]float64{1e-6: 1, 1: 0} {
		site := tuning.DefaultSite()
		site.Tariff = tuning.Tariff{CoreHour: core, KWh: kwh, Unit: "EUR"}
		in.Site = &site
		want := .5
		if core == 0 {
			want = .6
		}
		if got := runPlan(t, in).Rows[0].Figure("oracle_ratio"); math.Abs(float64(got)-want) > 1e-4 {
			t.Errorf("%g for a kWh and %g for a core-hour: oracle %g, want %g", kwh, core, got, want)
		}
	}
	in.Site, in.Set = nil, trialsIn(t, write(t, "trials.csv", strings.ReplaceAll(halves, "knob_cores", "knob_workers")))
	if s := runPlan(t, in).Summary; s.Figure("skipped") != 1 || s.Figure("rows") != 0 {
		t.Errorf("a table that names no cores: %+v", s)
	}
}

func TestTheQueueIsPaidForInTime(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds\na,m,2,100\na,m,4,50\n"))
	in.Objective, in.Epochs, in.Wait = tuning.Time, []int{500}, 40*time.Second
	in.Default, in.Above = tuning.Settings{"cores": tuning.Number(2)}, true
	r := runPlan(t, in).Rows[0]
	if want := (4*100.0 + 496*50 + 50) / 50000; !equal(r.Figure("ratio"), evaluate.Figure(want)) || r.Figure("restarts") != 1 {
		t.Errorf("the job cost %g after %g restarts, want %g", r.Figure("ratio"), r.Figure("restarts"), want)
	}
}

func TestWhatCannotPayIsNotMoved(t *testing.T) {
	t.Parallel()
	file := write(t, "trials.csv", halves)
	for name, in := range map[string]replay.PlanInput{
		"a short job":                          {Epochs: []int{4}},
		"a restart longer than the job":        {Epochs: []int{40}, Restart: 2 * time.Hour},
		"a queue longer than the job":          {Epochs: []int{40}, Wait: 2 * time.Hour},
		"a job that is over before it is seen": {Epochs: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := smallPlan(t, file)
			full.Epochs, full.Wait = in.Epochs, in.Wait
			full.Restart = max(full.Restart, in.Restart)
			if r := runPlan(t, full).Rows[0]; r.Figure("moved") != 0 || !equal(r.Figure("ratio"), 1) || r.Text("final") != "cores=4" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestALongerJobIsMovedWhereAShortOneIsNot(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", halves))
	in.Epochs = []int{4, 200}
	rows := runPlan(t, in).Rows
	if len(rows) != 2 || rows[0].Figure("epochs") != 4 || rows[0].Figure("moved") != 0 || rows[1].Figure("epochs") != 200 || rows[1].Figure("moved") != 1 {
		t.Errorf("%+v", rows)
	}
}

func TestAlwaysGoingToTheBestSeenHurtsAShortJob(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules\na,m,4,100,1000\na,m,2,100,3000\na,m,1,100,5000\n"))
	in.Epochs = []int{12}
	rep := runPlan(t, in)
	if r := rep.Rows[0]; r.Figure("always_hurt") != 1 || r.Figure("always_worst_ratio") < 1.2 || rep.Summary.Figure("always_hurt") != 1 || r.Figure("oracle_ratio") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestTheOwnersSettingsAreFound(t *testing.T) {
	t.Parallel()
	trials := "workload,machine,knob_cores,knob_batch_size,seconds,joules\n" +
		"a,m,1,32,9,9\na,m,2,32,8,8\na,m,4,32,7,7\na,m,1,64,6,6\na,m,2,64,5,5\na,m,4,64,4,4\n"
	targets := "workload,machine,max_epochs,default_knob_cores,default_knob_batch_size\na,m,9,2,32\n"
	for name, c := range map[string]struct {
		targets string
		own     tuning.Settings
		want    float64 // seconds of an epoch
	}{
		"the most of everything":                  {"", nil, 4},
		"those of targets.csv next to the data":   {targets, nil, 8},
		"those that were given":                   {"", tuning.Settings{"batch_size": tuning.Number(32)}, 7},
		"those that were given, over targets":     {targets, tuning.Settings{"cores": tuning.Number(4)}, 7},
		"the nearest to those that are not there": {"", tuning.Settings{"cores": tuning.Number(1.4), "batch_size": tuning.Number(33)}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for file, text := range map[string]string{"trials.csv": trials, "targets.csv": c.targets} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			in := smallPlan(t, filepath.Join(folder, "trials.csv"))
			in.Default, in.Above, in.Epochs = c.own, true, []int{3}
			if r := runPlan(t, in).Rows[0]; !equal(r.Figure("epoch_seconds"), evaluate.Figure(c.want)) || r.Figure("settings") != 3 {
				t.Errorf("an epoch takes %g s, and there are %v settings; want %g s and 3", r.Figure("epoch_seconds"), r.Figure("settings"), c.want)
			}
		})
	}
}

func TestAJobIsSentOnlyWhereSomethingWasRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trials   string
		settings []int // of each row
		skipped  int
	}{
		"a combination is missing":           {"workload,machine,knob_cores,knob_nodes,seconds,joules\na,m,1,1,9,9\na,m,2,1,8,8\na,m,4,1,7,7\na,m,2,2,5,5\na,m,4,2,4,4\n", []int{4}, 0},
		"a knob follows from another":        {"workload,machine,knob_nodes,knob_replicas,seconds,joules\na,m,1,1,9,9\na,m,1,2,8,8\na,m,2,3,7,7\n", []int{3}, 0},
		"a run failed":                       {"workload,machine,knob_cores,seconds,joules,failed\na,m,1,,,1\na,m,2,8,8,0\na,m,4,7,7,0\n", []int{2}, 0},
		"a placeholder":                      {"workload,machine,knob_cores,samples_per_second,joules,relative_speed\na,m,1,1,1,0.1\na,m,2,8,8,0.8\na,m,4,10,7,1\n", []int{2}, 0},
		"parts are jobs of their own":        {"workload,machine,knob_gpus,knob_cores,seconds,joules\na,m,1,1,9,9\na,m,1,2,8,8\na,m,2,1,7,7\na,m,2,2,6,6\n", []int{2, 2}, 0},
		"nothing may move":                   {"workload,machine,knob_batch_size,seconds,joules\na,m,32,9,9\na,m,64,8,8\n", nil, 1},
		"there is one setting":               {"workload,machine,knob_cores,seconds,joules\na,m,1,9,9\n", nil, 1},
		"joules are missing under one":       {"workload,machine,knob_cores,seconds,joules\na,m,1,9,9\na,m,2,8,\n", nil, 1},
		"the owner's own was never recorded": {"workload,machine,knob_cores,seconds,joules\na,m,1,9,9\na,m,2,8,8\na,m,4,,\n", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := smallPlan(t, write(t, "trials.csv", c.trials))
			in.Epochs = []int{3}
			rep := runPlan(t, in)
			got := tuning.Each(rep.Rows, func(r evaluate.Line) int { return int(r.Figure("settings")) })
			if !cmp.Equal(got, c.settings) || rep.Summary["skipped"] != c.skipped {
				t.Errorf("settings %v, skipped %v; want %v and %v", got, rep.Summary.Figure("skipped"), c.settings, c.skipped)
			}
		})
	}
}

func TestALimitOfTimeBindsTheOracleToo(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules\na,m,4,100,1000\na,m,2,109,800\na,m,1,200,200\n"))
	in.MaxSlowdown, in.Epochs = 1.1, []int{100}
	r := runPlan(t, in).Rows[0]
	if r.Text("oracle") != "cores=2" || !equal(r.Figure("oracle_ratio"), .8) {
		t.Errorf("%+v", r)
	}
}

func TestAnEpochOfRatesIsAMinuteOfTheOwners(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,samples_per_second\na,m,2,10\na,m,4,20\n"))
	in.Objective = tuning.Time
	jobs, _, err := in.Jobs()
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%v: %+v", err, jobs)
	}
	if jobs[0] = jobs[0].Drawn(0); jobs[0].Epochs != replay.Recorded {
		t.Fatalf("%d epochs", jobs[0].Epochs)
	}
	c, ok := jobs[0].Expected(tuning.Settings{"cores": tuning.Number(2)})
	if own, _ := jobs[0].Expected(jobs[0].Own); !ok || own.Seconds != 60 || c.Seconds != 120 || !math.IsNaN(c.Joules) {
		t.Errorf("the owner's %+v, the others %+v", own, c)
	}
}

func TestAJobHasTheLengthAndTheLuckOfARecordedRun(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,epochs,epoch_seconds,watts,repeat\n"+
		"a,m,2,7,10,1,0\na,m,2,9,12,1,1\na,m,1,8,30,1,0\n"))
	in.Seeds = 20
	jobs, _, err := in.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	lengths, seconds := map[int]int{}, map[float64]int{}
	for seed := range in.Seeds {
		j := jobs[0].Drawn(seed)
		lengths[j.Epochs]++
		e, ok := j.Epoch(1, 1, j.Own)
		again, _ := j.Epoch(1, 2, j.Own)
		if !ok || e.End != again.End || e.Loss != nil {
			t.Errorf("epochs %+v and %+v", e, again)
		}
		seconds[e.Seconds()]++
	}
	if lengths[7] != 10 || lengths[9] != 10 || len(seconds) != 2 || seconds[10] == 0 || seconds[12] == 0 {
		t.Errorf("lengths %v, seconds %v", lengths, seconds)
	}
	if e, ok := jobs[0].Epoch(1, 1, tuning.Settings{"cores": tuning.Number(3)}); ok {
		t.Errorf("what was never recorded takes %+v", e)
	}
	if mean, _ := jobs[0].Expected(jobs[0].Own); mean.Seconds != 11 || mean.Joules != 11 {
		t.Errorf("in the mean %+v", mean)
	}
}

func TestCurvesTellHowEpochsVaryAndWhatTheyReport(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", halves))
	curves, err := evaluate.Read(write(t, "curves.csv", "run,workload,machine,knob_cores,epoch,seconds,loss,quality\n"+
		"1,a,m,4,1,100,2,0.1\n1,a,m,4,2,190,1,0.2\n1,a,m,4,3,300,0.5,0.3\n2,b,m,4,1,1,9,9\n2,b,m,4,2,9,9,9\n"), evaluate.Curves)
	if err != nil {
		t.Fatal(err)
	}
	in.Curves = []evaluate.Table{curves}
	jobs, _, err := in.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	jobs[0] = jobs[0].Drawn(0)
	lengths := map[time.Duration]bool{}
	for n := 1; n <= 40; n++ {
		e, _ := jobs[0].Epoch(1, n, jobs[0].Own)
		lengths[e.End.Sub(e.Start).Round(time.Millisecond)] = true
		if reports := e.Loss != nil && e.Quality != nil; reports != (n <= 3) {
			t.Errorf("epoch %d reports %+v", n, e)
		}
	}
	if e, _ := jobs[0].Epoch(1, 2, jobs[0].Own); *e.Loss != 1 || *e.Quality != .2 {
		t.Errorf("epoch 2 reports %g and %g", *e.Loss, *e.Quality)
	}
	if len(lengths) != 2 || !lengths[90*time.Second] || !lengths[110*time.Second] {
		t.Errorf("epochs last %v, want 90 and 110 s", lengths)
	}
}

// noisy is a table of cores whose mean cost is given, with repeats that vary.
func noisy(t *rapid.T, cost func(cores int) float64) string {
	var b strings.Builder
	b.WriteString("workload,machine,knob_cores,seconds,joules,repeat\n")
	sd := rapid.Float64Range(0, .1).Draw(t, "sd")
	for _, cores := range []int{1, 2, 4} {
		var factors [4]float64
		sum := 0.0
		for i := range factors {
			factors[i] = math.Exp(sd * rapid.Float64Range(-2, 2).Draw(t, "luck"))
			sum += factors[i] / float64(len(factors))
		}
		for i, f := range factors {
			fmt.Fprintf(&b, "a,m,%d,%g,%g,%d\n", cores, cost(cores)*f/sum, 10*cost(cores)*f/sum, i)
		}
	}
	return b.String()
}

// draws replays one drawn table.
func draws(t *rapid.T, folder string, cost func(cores int) float64) (replay.PlanInput, evaluate.Report) {
	file := filepath.Join(folder, fmt.Sprintf("trials-%d.csv", rapid.Uint32().Draw(t, "file")))
	if err := os.WriteFile(file, []byte(noisy(t, cost)), 0o600); err != nil {
		t.Fatal(err)
	}
	in := smallPlan(t, file)
	in.Seeds, in.Epochs = 1, []int{rapid.IntRange(1, 40).Draw(t, "epochs")}
	in.Objective = rapid.SampledFrom([]tuning.Objective{tuning.Energy, tuning.Time, tuning.EDP, tuning.Blend}).Draw(t, "objective")
	in.Probes = rapid.IntRange(0, 4).Draw(t, "probes")
	in.Restart = time.Duration(rapid.IntRange(1, 600).Draw(t, "restart")) * time.Second
	in.Wait = time.Duration(rapid.IntRange(0, 100).Draw(t, "wait")) * time.Second
	r, err := replay.Plan(context.Background(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return in, r
}

// TestWithoutAnyEffectNoJobIsHurtByMoreThanTheMoves: all settings cost the same on average, so
// that a move can gain nothing, and costs no more than the restarts that the budgets allow; each
// of these is worth less than the work that it was weighed against.
func TestWithoutAnyEffectNoJobIsHurtByMoreThanTheMoves(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		in, rep := draws(t, folder, func(int) float64 { return 100 })
		r := rep.Rows[0]
		moves := float64(in.Probes + tuning.DefaultRestarts)
		price := (in.Restart + in.Wait).Seconds() / (float64(r.Figure("epochs")) * 100)
		most := math.Pow(1+moves*price, 2) // squared, as the product of joules and seconds is
		if r.Figure("never_ratio") != 1 || !equal(r.Figure("oracle_ratio"), 1) {
			t.Errorf("never %g, oracle %g", r.Figure("never_ratio"), r.Figure("oracle_ratio"))
		}
		if float64(r.Figure("worst_ratio")) > most+1e-9 || r.Figure("worst_ratio") > 1.6 || r.Figure("best_ratio") < 1-1e-9 || r.Figure("paid") != 0 {
			t.Errorf("jobs cost from %g to %g, want from 1 to %g: %+v", r.Figure("best_ratio"), r.Figure("worst_ratio"), most, r)
		}
	})
}

// TestWhateverTheEffectTheSharesAndRatiosFitTogether is about any table.
func TestWhateverTheEffectTheSharesAndRatiosFitTogether(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		costs := map[int]float64{}
		for _, cores := range []int{1, 2, 4} {
			costs[cores] = rapid.Float64Range(20, 200).Draw(t, "cost")
		}
		in, rep := draws(t, folder, func(cores int) float64 { return costs[cores] })
		r := rep.Rows[0]
		switch {
		case r.Figure("never_ratio") != 1:
			t.Errorf("never moving costs %g", r.Figure("never_ratio"))
		case r.Figure("paid")+r.Figure("hurt") > r.Figure("moved")+1e-9:
			t.Errorf("paid %g and hurt %g of %g that moved", r.Figure("paid"), r.Figure("hurt"), r.Figure("moved"))
		case r.Figure("paid_ratio").Known() == (r.Figure("paid") == 0) || r.Figure("hurt_ratio").Known() == (r.Figure("hurt") == 0):
			t.Errorf("%+v", r)
		case r.Figure("best_ratio") < r.Figure("oracle_ratio")-1e-9 || r.Figure("worst_ratio") < r.Figure("ratio")-1e-9 || r.Figure("ratio") < r.Figure("best_ratio")-1e-9 || r.Figure("always_ratio") < r.Figure("oracle_ratio")-1e-9:
			t.Errorf("out of order: %+v", r)
		case int(r.Figure("probes")) > in.Probes || int(r.Figure("restarts")) > in.Probes+tuning.DefaultRestarts:
			t.Errorf("%g probes and %g restarts", r.Figure("probes"), r.Figure("restarts"))
		}
		again, err := replay.Plan(context.Background(), in, evaluatetest.Quiet)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, rep), asJSON(t, again)); diff != "" {
			t.Errorf("the same seed gives another report:\n%s", diff)
		}
	})
}

func TestTheReportHasBothForms(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", halves+"b,m,4,,,\nb,m,2,,,\n"))
	in.Epochs = []int{4, 200}
	rep := runPlan(t, in)
	raw, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"command":"evaluate plan"`, `"moved":1`, `"hurt_ratio":null`, `"never_ratio":1`, `"skipped":1`, `"worst_at":"a m of 4 epochs"`} {
		if !strings.Contains(string(raw), key) {
			t.Errorf("no %s in %s", key, raw)
		}
	}
	text := rep.Text()
	for _, want := range []string{"WORKLOAD", "a         m        200     100 %  100 %  0 %", "skipped             1 ", "moved               50 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestTheRecordedJobsOfTheDevelopmentDataComeToTheirEnd is what the replay is for.
func TestTheRecordedJobsOfTheDevelopmentDataComeToTheirEnd(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, evaluatetest.Path(t, "zeus", "trials.csv"), evaluatetest.Path(t, "multicores", "trials.csv"))
	in.Restart, in.Epochs, in.Seeds = 30*time.Second, []int{20}, 1
	rep := runPlan(t, in)
	t.Logf("\n%s", rep.Text())
	if s := rep.Summary; s.Figure("rows") < 50 || s.Figure("worst_ratio") > 1.6 || s.Figure("worst_ratio") > s.Figure("always_worst_ratio") || s.Figure("ratio") > s.Figure("always_ratio") {
		t.Errorf("%+v", s)
	}
	for _, r := range rep.Rows {
		if r.Figure("never_ratio") != 1 || r.Figure("best_ratio") < r.Figure("oracle_ratio")-1e-9 {
			t.Errorf("%+v", r)
		}
	}
}
