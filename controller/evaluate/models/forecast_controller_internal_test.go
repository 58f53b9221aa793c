package models

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
)

// forecasts are those of the ends of a family's runs: by run and share.
type forecasts map[int]map[float64]tuning.Estimate

func (t forecasts) hear(run int, seen float64, e tuning.Estimate) {
	if t[run] == nil {
		t[run] = map[float64]tuning.Estimate{}
	}
	t[run][seen] = e
}

// controlled lets the controller meet the runs of a family, each a job that returns: what
// it forecasts of each at the shares, and what it keeps of it when it has ended.
func controlled(t *testing.T, f family, shares []float64, keep func(knowledge.Observation), recall func(tuning.JobKind) []tuning.CurveLesson) forecasts {
	t.Helper()
	out := forecasts{}
	policy := tuning.DefaultPolicy()
	if f.measured == Quality {
		policy.Quality = &tuning.Quality{Direction: "max"}
	}
	kind := tuning.JobKind{Owner: "ada", Name: f.Workload}
	for i, r := range f.runs {
		var epochs []tuning.Epoch
		for j, v := range r.Values {
			e := tuning.Epoch{Number: int(r.Epochs[j])}
			if f.measured == Quality {
				e.Quality = &v
			} else {
				e.Loss = &v
			}
			epochs = append(epochs, e)
		}
		q := forecast.Work{Learns: policy.Learns, Total: int(r.end()), Curve: true, Lessons: recall(kind)}
		if policy.Quality != nil {
			q.Direction = forecast.Direction(policy.Quality.Direction)
		}
		for _, share := range shares {
			cut, ok := r.Seen(share)
			if !ok {
				continue
			}
			q.Epochs, q.Done = epochs[:len(cut.Values)], len(cut.Values)
			if e := forecast.Left(q).Final; e != nil {
				out.hear(i, share, *e)
			}
		}
		q.Epochs, q.Done = epochs, len(epochs)
		keep(knowledge.Observation{
			ID: fmt.Sprint(i), Job: fmt.Sprint(i), Kind: kind, At: time.Unix(int64(i), 0), Submitted: time.Unix(int64(i), 0), Curve: q.Teach(),
		})
	}
	return out
}

func evaluated(t *testing.T, f family, shares []float64) forecasts {
	t.Helper()
	out := forecasts{}
	if _, err := f.measure(t.Context(), shares, out.hear); err != nil {
		t.Fatal(err)
	}
	return out
}

func familiesIn(t *testing.T, table evaluate.Table, runs int) []family {
	t.Helper()
	out, err := familiesOf(table, Both)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i].runs = out[i].runs[:min(runs, len(out[i].runs))]
	}
	return out
}

func TestTheControllerForecastsWhatTheEvaluationMeasures(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("run,workload,machine,epoch,loss,quality\n")
	for run := range 7 {
		size := 1 + 0.2*float64(run)
		for k := 1; k <= 20+5*run; k++ {
			loss := 0.2 + size/(float64(k)+1) + 0.01*math.Sin(float64(7*k+run))
			fmt.Fprintf(&b, "a%d,curve,box,%d,%.6f,%.6f\n", run, k, loss, 1-loss/3)
		}
	}
	shares := []float64{0.2, 0.25, 0.5, 0.7}
	for _, f := range familiesIn(t, evaluatetest.Table(t, "made.csv", b.String(), evaluate.Curves), 7) {
		t.Run(f.measured, func(t *testing.T) {
			t.Parallel()
			store, err := knowledge.Open(filepath.Join(t.TempDir(), "knowledge"), knowledge.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close() //nolint:errcheck // the test is over
			got := controlled(t, f, shares, func(o knowledge.Observation) {
				if err := store.Update(func(tx *knowledge.Tx) error { _, err := tx.Put(o); return err }); err != nil {
					t.Fatal(err)
				}
			}, func(kind tuning.JobKind) []tuning.CurveLesson {
				obs, err := store.Observations(kind)
				lessons := knowledge.CurveLessons(obs, kind, forecast.Remembered)
				if err != nil {
					t.Fatal(err)
				}
				return lessons
			})
			if want := evaluated(t, f, shares); !cmp.Equal(want, got) || len(got) != 7 || len(got[6]) != len(shares) {
				t.Errorf("the controller forecasts other ends than the evaluation:\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func TestTheControllerForecastsRecordedCurvesAsTheEvaluationDoes(t *testing.T) {
	t.Parallel()
	table := evaluatetest.Recorded(t, evaluate.Curves, "adaptdl/curves.csv")[0]
	for _, f := range familiesIn(t, table, 12) {
		t.Run(f.Workload+" "+f.measured, func(t *testing.T) {
			t.Parallel()
			var seen []knowledge.Observation
			got := controlled(t, f, []float64{0.3, 0.5}, func(o knowledge.Observation) { seen = append(seen, o) }, func(kind tuning.JobKind) []tuning.CurveLesson {
				return knowledge.CurveLessons(seen, kind, forecast.Remembered)
			})
			if want := evaluated(t, f, []float64{0.3, 0.5}); !cmp.Equal(want, got) || len(got) == 0 {
				t.Errorf("the controller forecasts other ends than the evaluation:\n%s", cmp.Diff(want, got))
			}
		})
	}
}
