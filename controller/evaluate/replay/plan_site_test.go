package replay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestAJobThatComesAgainBeginsUnderWhatItsFirstRunShowed(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", halves))
	in.Epochs, in.Returns, in.Seeds = []int{60}, 2, 3
	rep := runPlan(t, in)
	r := rep.Rows[0].Returned
	if r == nil || r.Jobs != 6 || r.Changed != 1 || r.Moved != 0 || r.Paid != 1 || r.Hurt != 0 || r.Final != "cores=2" {
		t.Fatalf("%+v", r)
	}
	if !equal(r.Ratio, .5) || !equal(r.Last, .5) || !equal(r.OracleRatio, .5) || !equal(r.PaidRatio, .5) || r.HurtRatio.Known() {
		t.Errorf("%+v", r)
	}
	if s := rep.Summary.Returned; s == nil || s.Jobs != 6 || !equal(s.Ratio, .5) || s.WorstAt != "a m of 60 epochs" {
		t.Errorf("%+v", s)
	}
	if first := rep.Rows[0]; !(first.Ratio > .5) || first.Jobs != 3 {
		t.Errorf("the first runs are counted among those that returned: %+v", first)
	}
}

func TestWhatAFirstRunLostIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules,cpu_seconds\na,m,4,100,1000,105\na,m,2,210,1300,105\n"))
	in.Epochs, in.Returns = []int{100}, 3
	r := runPlan(t, in).Rows[0]
	if r.Hurt != 1 || r.Restarts != 2 {
		t.Fatalf("the first run is not hurt: %+v", r)
	}
	if a := r.Returned; a.Moved != 0 || a.Hurt != 0 || !equal(a.Worst, 1) {
		t.Errorf("it is tried again: %+v", a)
	}
}

func TestAShortJobIsTunedOverItsReturnsWhereItsOwnerLetsItTry(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", halves))
	in.Epochs, in.Returns = []int{4}, 6
	if r := runPlan(t, in).Rows[0]; r.Returned.Changed != 0 || !equal(r.Returned.Ratio, 1) {
		t.Errorf("without leave: %+v", r.Returned)
	}
	in.Tries = 2
	if r := runPlan(t, in).Rows[0]; r.Ratio != 1 || r.Returned.Moved != 0 || !equal(r.Returned.Last, .6) {
		t.Errorf("with leave: %+v", r.Returned)
	}
}

func TestJobsThatDoNotReturnAreNull(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", halves))
	in.Epochs = []int{5}
	rep := runPlan(t, in)
	raw, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), `"returned":null`); n != 2 {
		t.Errorf("%d times null in %s", n, raw)
	}
	if text := rep.Text(); strings.Contains(text, "returned.jobs") {
		t.Error(text)
	}
	in.Returns, in.Restart = 1, time.Second
	if text := runPlan(t, in).Text(); !strings.Contains(text, "returned.changed       0.000") {
		t.Error(text)
	}
}
