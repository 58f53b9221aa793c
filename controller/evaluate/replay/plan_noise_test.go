package replay_test

import (
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/evaluate/replay"
)

// spreadOfLogs is the standard deviation of logarithms.
func spreadOfLogs(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += math.Log(v)
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (math.Log(v) - mean) * (math.Log(v) - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}

// What the controller sees varies by the noise asked for where what was recorded does not,
// and what a job cost does not.
func TestNoiseIsAddedWhereNothingRecordedVaries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		rows            string
		noise           replay.Noise
		attempts, epoch float64
	}{
		{"one run, and no noise", "a,m,4,100,1000,0\n", replay.Noise{}, 0, 0},
		{"one run", "a,m,4,100,1000,0\n", replay.Noise{Attempt: 0.03, Epoch: 0.05}, 0.03, 0.05},
		{"noise between attempts alone", "a,m,4,100,1000,0\n", replay.Noise{Attempt: 0.03}, 0.03, 0},
		{"repeats that are all alike", "a,m,4,100,1000,0\na,m,4,100,1000,1\n", replay.Noise{Attempt: 0.03, Epoch: 0.05}, 0.03, 0.05},
		{"repeats that differ tell it themselves", "a,m,4,99,1000,0\na,m,4,101,1000,1\n", replay.Noise{Attempt: 0.5}, 0.01, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := smallPlan(t, write(t, "trials.csv", "workload,machine,knob_cores,seconds,joules,repeat\n"+tc.rows+"a,m,2,100,600,0\n"))
			in.Noise = tc.noise
			jobs, _, err := in.Jobs()
			if err != nil {
				t.Fatal(err)
			}
			j := jobs[0].Drawn(0)
			var attempts, within []float64
			for attempt := range 400 {
				e, _ := j.Epoch(attempt, 1, j.Own)
				next, _ := j.Epoch(attempt, 2, j.Own)
				again, _ := j.Epoch(attempt, 1, j.Own)
				if e.End != again.End || math.Abs(float64(*e.Joules)/e.Seconds()-float64(*next.Joules)/next.Seconds()) > 1e-6 {
					t.Fatalf("epochs %+v, %+v and %+v", e, again, next)
				}
				attempts = append(attempts, math.Sqrt(e.Seconds()*next.Seconds()))
				within = append(within, e.Seconds()/next.Seconds())
			}
			epoch := spreadOfLogs(within) / math.Sqrt2
			between := math.Sqrt(max(0, math.Pow(spreadOfLogs(attempts), 2)-epoch*epoch/2))
			if math.Abs(epoch-tc.epoch) > 0.15*tc.epoch+1e-6 || math.Abs(between-tc.attempts) > 0.15*tc.attempts+1e-6 {
				t.Errorf("varies by %g between attempts and %g between epochs, want %g and %g", between, epoch, tc.attempts, tc.epoch)
			}
			if c, _ := j.Expected(j.Own); c.Seconds != 100 {
				t.Errorf("in expectation %g s, want 100", c.Seconds)
			}
		})
	}
}

func TestTheReportHasTheNoise(t *testing.T) {
	t.Parallel()
	in := smallPlan(t, write(t, "trials.csv", halves))
	in.Noise = replay.UsualNoise()
	rep := runPlan(t, in)
	if rep.Summary.Figure("noise_attempts") != 0.04 || rep.Summary.Figure("noise_epochs") != 0.05 || !strings.Contains(rep.Text(), "noise_epochs        0.050") {
		t.Errorf("%+v\n%s", rep.Summary, rep.Text())
	}
}
