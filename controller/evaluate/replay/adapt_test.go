package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
)

func adaptReport(t *testing.T, tables ...evaluate.Table) evaluate.Report {
	t.Helper()
	r, err := replay.Adapt(t.Context(), replay.AdaptInput{Tables: tables}, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.MarshalJSON(); err != nil {
		t.Error(err)
	}
	return r
}

// network is a table of a workload that is asked twice in each of three scenarios, with epochs of
// ten seconds. Its quality is level, and ends by what was done.
func network(t *testing.T, workload string, level float64, gain func(action string, left int) float64) evaluate.Table {
	t.Helper()
	const epochs, budget = 40, 400
	var b strings.Builder
	b.WriteString("run,workload,scenario,epoch,seconds,action,quality,budget_seconds\n")
	row := func(run, scenario string, epoch int, action string, quality float64) {
		fmt.Fprintf(&b, "%s,%s,%s,%d,%d,%s,%g,%d\n", run, workload, scenario, epoch, 10*(epoch+1), action, quality, budget)
	}
	actions := []string{"none", "grow", "split"}
	for start, scenario := range map[int]string{10: "early", 20: "middle", 30: "late"} {
		for e := range start {
			row("before", "before_"+scenario, e, "", level)
		}
		for i := range 9 {
			of := []string{actions[i/3], actions[i%3]}
			quality := level
			for p, a := range of {
				quality *= 1 + gain(a, epochs-start-p)
			}
			for e := start; e < epochs; e++ {
				action := "none"
				if e-start < 2 {
					action = of[e-start]
				}
				row(strings.Join(of, "-"), scenario, e, action, quality*(1+0.001*math.Sin(float64(7*i+start))))
			}
		}
	}
	return evaluatetest.Table(t, workload+".csv", b.String(), evaluate.Adaptations)
}

func grows(action string, left int) float64 {
	switch action {
	case "grow":
		return 0.15 - 1.2/float64(left)
	case "split":
		return -0.05
	}
	return -0.01
}

func TestTheHeldOutScenarioAndWorkloadAreDecidedWithoutThem(t *testing.T) {
	t.Parallel()
	one, other := network(t, "one", 0.6, grows), network(t, "other", 0.3, func(a string, left int) float64 { return grows(a, left) / 2 })
	harm := func(string, int) float64 { return -0.04 }
	for _, tt := range []struct {
		name   string
		tables []evaluate.Table
		rows   int
		share  float64 // at least
	}{
		{"scenarios of one workload", []evaluate.Table{one}, 3, 0.95},
		{"scenarios and workloads", []evaluate.Table{one, other}, 12, 0.85},
		{"where all actions do harm it does nothing", []evaluate.Table{network(t, "one", 0.6, harm)}, 3, math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := adaptReport(t, tt.tables...)
			if len(r.Rows) != tt.rows {
				t.Errorf("%d rows, want %d", len(r.Rows), tt.rows)
			}
			for _, s := range r.Summary.Lines("shares") {
				if share := s.Figure("gain_share"); s.Figure("worst") < -0.001 || float64(share) < tt.share || share.Known() == math.IsNaN(tt.share) {
					t.Errorf("%v held out: share %v, worst %v\n%s", s["held_out"], share, s["worst"], r.Text())
				}
			}
		})
	}
}

func TestAdaptationsThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	const head = "run,workload,scenario,epoch,seconds,action,quality,budget_seconds\n"
	for _, tt := range []struct{ name, text, want string }{
		{"without a run that goes on undisturbed", "a,w,early,0,10,grow,0.5,100\n", "0 scenarios with runs"},
		{"whose undisturbed run has no quality", "b,w,before_early,0,10,,,100\n", "0 scenarios with runs"},
		{
			"of a single scenario", "b,w,before_early,0,10,,1,100\nb,w,before_early,1,20,,1,100\nb,w,before_early,2,30,,1,100\n" +
				"a,w,early,3,40,grow,1,100\na,w,early,4,50,,1,100\na,w,early,5,60,,1,100\n", "1 scenarios with runs",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := replay.AdaptInput{Tables: []evaluate.Table{evaluatetest.Table(t, "a.csv", head+tt.text, evaluate.Adaptations)}}
			_, err := replay.Adapt(t.Context(), in, evaluatetest.Quiet)
			if !errors.Is(err, evaluate.ErrInput) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
	t.Run("without undisturbed runs, which are compared with those without an action", func(t *testing.T) {
		t.Parallel()
		table := network(t, "one", 0.6, grows)
		table.Rows = slices.DeleteFunc(table.Rows, func(r evaluate.Row) bool { return r.Run == "before" })
		r := adaptReport(t, table)
		if never := float64(r.Rows[0].Figure("never")); len(r.Rows) != 3 || math.Abs(never-0.588) > 0.002 {
			t.Errorf("never is %g, want 0.588 of doing nothing twice\n%s", never, r.Text())
		}
	})
	t.Run("without the run that the policy chose, whose scenario is not summed up", func(t *testing.T) {
		t.Parallel()
		table := network(t, "one", 0.6, grows)
		table.Rows = slices.DeleteFunc(table.Rows, func(r evaluate.Row) bool { return r.Run == "grow-grow" && r.Text("scenario") == "early" })
		r := adaptReport(t, table)
		s := r.Summary.Lines("shares")[0]
		if s["rows"] != 2 || !s.Figure("gain_share").Known() || !s.Figure("worst").Known() {
			t.Errorf("%v\n%s", s, r.Text())
		}
	})
	t.Run("until it is cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := replay.Adapt(ctx, replay.AdaptInput{Tables: []evaluate.Table{network(t, "one", 0.6, grows)}}, evaluatetest.Quiet); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// TestRecordedAdaptationsReachMostOfTheOraclesGain is the aim: 0.80 of the oracle's gain, more than
// the best fixed actions, and never below never by more than the noise.
func TestRecordedAdaptationsReachMostOfTheOraclesGain(t *testing.T) {
	t.Parallel()
	r := adaptReport(t, evaluatetest.Recorded(t, evaluate.Adaptations, "rl-net2net/adaptations.csv")...)
	s := r.Summary.Lines("shares")[0]
	if s.Figure("gain_share") < 0.80 || s.Figure("gain_share") < s.Figure("fixed_share") || s.Figure("worst") < -0.016 {
		t.Errorf("%s", r.Text())
	}
	if never := r.Rows[0].Figure("never"); math.Abs(float64(never)-0.6251) > 0.0001 || len(r.Rows) != 5 || len(r.Summary.Lines("left_out")) > 0 {
		t.Errorf("never %v in %d rows, left out %v", never, len(r.Rows), r.Summary["left_out"])
	}
}
