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
	r := rep.Rows[0].Line("returned")
	if r == nil || r.Figure("jobs") != 6 || r.Figure("changed") != 1 || r.Figure("moved") != 0 || r.Figure("paid") != 1 || r.Figure("hurt") != 0 || r.Text("final") != "cores=2" {
		t.Fatalf("%+v", r)
	}
	if !equal(r.Figure("ratio"), .5) || !equal(r.Figure("last_ratio"), .5) || !equal(r.Figure("oracle_ratio"), .5) || !equal(r.Figure("paid_ratio"), .5) || r.Figure("hurt_ratio").Known() {
		t.Errorf("%+v", r)
	}
	if s := rep.Summary.Line("returned"); s == nil || s.Figure("jobs") != 6 || !equal(s.Figure("ratio"), .5) || s.Text("worst_at") != "a m of 60 epochs" {
		t.Errorf("%+v", s)
	}
	if first := rep.Rows[0]; !(first.Figure("ratio") > .5) || first.Figure("jobs") != 3 {
		t.Errorf("the first runs are counted among those that returned: %+v", first)
	}
}

func TestWhatAFirstRunLostIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	in := byCores(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules,cpu_seconds\na,m,4,100,1000,105\na,m,2,210,1300,105\n"))
	in.Epochs, in.Returns = []int{100}, 3
	r := runPlan(t, in).Rows[0]
	if r.Figure("hurt") != 1 || r.Figure("restarts") != 2 {
		t.Fatalf("the first run is not hurt: %+v", r)
	}
	if a := r.Line("returned"); a.Figure("moved") != 0 || a.Figure("hurt") != 0 || !equal(a.Figure("worst_ratio"), 1) {
		t.Errorf("it is tried again: %+v", a)
	}
}

func TestAShortJobIsTunedOverItsReturnsWhereItsOwnerLetsItTry(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", halves))
	in.Epochs, in.Returns = []int{4}, 6
	if r := runPlan(t, in).Rows[0]; r.Line("returned").Figure("changed") != 0 || !equal(r.Line("returned").Figure("ratio"), 1) {
		t.Errorf("without leave: %+v", r.Line("returned"))
	}
	in.Tries = 2
	if r := runPlan(t, in).Rows[0]; r.Figure("ratio") != 1 || r.Line("returned").Figure("moved") != 0 || !equal(r.Line("returned").Figure("last_ratio"), .6) {
		t.Errorf("with leave: %+v", r.Line("returned"))
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
