package sim_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/driver"
	"pitchpipe/exporter/api"
	"pitchpipe/test/sim"
)

func TestARecordedEpochTakesAndSaysWhatWasMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loss := 0.25
		c, err := sim.New(sim.Config{EnergySource: "replayed", Recorded: func(w sim.Work) (sim.Measured, bool) {
			if w.Job != "known" || w.Attempt != 1 || w.Cores != 2 || w.Env["BATCH"] != "64" {
				return sim.Measured{}, false
			}
			return sim.Measured{Length: time.Duration(w.Epoch) * time.Minute, Joules: 600, Loss: &loss}, w.Epoch < 3
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		start := func(name string) driver.JobID {
			job, err := c.Start(t.Context(), driver.RequestID(name), driver.Spec{
				Owner: "alice", Filename: "job.sbatch", Progress: driver.Progress{Pattern: `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`},
				Source: []byte("#!/bin/sh\n#SBATCH --job-name=" + name + "\n#SBATCH --cpus-per-task=2\n#SIM epochs=3 seconds=20 watts_idle=0 watts_core=1\nexec ./job\n"),
				Env:    map[string]string{"BATCH": "64"},
			})
			if err != nil {
				t.Fatal(err)
			}
			return job.ID
		}
		known, unknown := start("known"), start("unknown")
		time.Sleep(10 * time.Minute)
		for id, want := range map[driver.JobID][]time.Duration{
			known: {time.Minute, 2 * time.Minute, 20 * time.Second}, unknown: {20 * time.Second, 20 * time.Second, 20 * time.Second},
		} {
			w, err := c.Window(t.Context(), string(id), 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			at, joules, n := w.Job.Started, 0.0, 0
			for _, s := range w.Samples {
				if s.Mark == nil {
					continue
				}
				if got := s.Time.Sub(at); got != want[n] {
					t.Errorf("job %s: epoch %d took %s, want %s", id, n+1, got, want[n])
				}
				recorded := id == known && n < 2
				if spent := s.Values[api.ColJoules] - joules; (spent > 599.9) != recorded {
					t.Errorf("job %s: epoch %d took %g J", id, n+1, spent)
				}
				if (*s.Mark.Loss == loss) != recorded || *s.Mark.Quality == 0 {
					t.Errorf("job %s: epoch %d reports %g and %g", id, n+1, *s.Mark.Loss, *s.Mark.Quality)
				}
				at, joules, n = s.Time, s.Values[api.ColJoules], n+1
			}
			if n != len(want) || !strings.HasPrefix(w.Source, "replayed") {
				t.Errorf("job %s: %d epochs from %s", id, n, w.Source)
			}
		}
	})
}
