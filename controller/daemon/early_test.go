package daemon

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
	"pitchpipe/test/sim"
)

// What is learned of a job is the profile of the epochs that it was classified
// by, whenever it is looked at: one that was watched from the beginning and one
// that was found at its end teach the same.
func TestTheProfileIsThatOfTheEarlyEpochsWheneverItIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := sim.New(sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		const pattern = `^epoch (?P<epoch>\d+)/(?P<total>\d+)`
		job, err := cluster.Start(t.Context(), "r", driver.Spec{
			Owner: "alice", Filename: "job.sbatch", Progress: driver.Progress{Pattern: pattern},
			Source: []byte("#!/bin/sh\n#SBATCH --job-name=x\n#SBATCH --cpus-per-task=2\n#SIM epochs=20 seconds=5 noise=0.2 seed=3\nexec ./x\n"),
		})
		if err != nil {
			t.Fatal(err)
		}
		policy := tuning.DefaultPolicy()
		policy.Progress = tuning.Progress{Pattern: pattern}
		policy.Profile = tuning.ProfileSpec{WarmupEpochs: 1, Epochs: 2}
		q := reconcile.MeasureRequest{
			Job: job.ID, Attempt: 1, Policy: policy, Settings: tuning.Settings{tuning.Cores: tuning.Number(2)},
		}
		watching := &services{driver: cluster, nodes: nodes.One(cluster, nil), log: slog.New(slog.DiscardHandler)}
		ask := func(r *services) reconcile.Measurement {
			t.Helper()
			m, err := r.measure(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		var first *tuning.Profile
		for range 200 {
			time.Sleep(time.Second)
			if now, err := cluster.Get(t.Context(), job.ID); err != nil || now.State.Ended() {
				break
			}
			m := ask(watching)
			if m.Reason == tuning.ReasonNone && first == nil {
				first = &m.Profile
			}
		}
		if first == nil || first.Epochs != 2 {
			t.Fatalf("the first profile is %+v, want one of two epochs", first)
		}
		for name, r := range map[string]*services{"watched from the beginning": watching, "found at its end": {driver: cluster, nodes: nodes.One(cluster, nil), log: watching.log}} {
			m := ask(r)
			if len(m.Epochs) != 20 || m.Reason != tuning.ReasonNone {
				t.Errorf("%s: %d epochs, %q; want 20 and a profile", name, len(m.Epochs), m.Reason)
			}
			if m.Peak < m.Profile.PeakRSS || m.Peak == 0 {
				t.Errorf("%s: a peak of %d in all, %d early", name, m.Peak, m.Profile.PeakRSS)
			}
			m.Profile.PeakRSS = first.PeakRSS
			if diff := cmp.Diff(*first, m.Profile, cmp.Comparer(func(a, b tuning.Value) bool { return a == b })); diff != "" {
				t.Errorf("%s, the profile is another (-early +now):\n%s", name, diff)
			}
		}
	})
}

func TestAnObservationIsClassifiedOncePerModel(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r := &services{store: store, log: slog.New(slog.DiscardHandler)}
	put := func(i int) knowledge.Observation {
		t.Helper()
		id := fmt.Sprintf("job-%d", i)
		o := knowledge.Observation{
			ID: id, Job: id, Kind: tuning.JobKind{Owner: "alice", Name: fmt.Sprintf("kind%d", i%2), Fingerprint: "f"},
			At: time.Date(2024, 5, 1, 12, i, 0, 0, time.UTC),
			Profiles: []tuning.Profile{{
				Schema: "sw/1", Machine: "m", Epochs: 2, Samples: 9, Seconds: 9, Settings: tuning.Settings{"cores": tuning.Number(1)},
				Features: map[string]float64{"a": float64(i%2)*10 + float64(i)*0.01, "b": float64(i%2)*-7 + float64(i)*0.01},
			}},
		}
		if err := store.Update(func(tx *knowledge.Tx) error { _, err := tx.Put(o); return err }); err != nil {
			t.Fatal(err)
		}
		return o
	}
	for i := range 10 {
		put(i)
	}
	if err := r.refit(); err != nil {
		t.Fatal(err)
	}
	o := put(3)
	id := r.classOf(o)
	if id == "" {
		t.Fatal("its class is unknown")
	}
	bare := o
	bare.Profiles = nil // what is stored never changes: this shows who is asked
	if got := r.classOf(bare); got != id {
		t.Errorf("asked again the class is %q, want %q without another look", got, id)
	}
	put(10)
	if err := r.refit(); err != nil {
		t.Fatal(err)
	}
	if got := r.classOf(bare); got != "" {
		t.Errorf("under another model the class is still %q", got)
	}
	if got := r.classOf(knowledge.Observation{ID: "of nothing"}); got != "" {
		t.Errorf("an observation without profiles is of class %q", got)
	}
}

func TestTheJoulesOfAnAttemptAreWhatItsExporterCountedSinceItBegan(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	sample := func(joules float64, mark *api.Report) api.Sample {
		return api.Sample{Mark: mark, Values: map[string]float64{api.ColJoules: joules}}
	}
	job := api.Job{Started: noon, First: noon}
	for _, c := range []struct {
		name string
		w    api.Window
		from time.Time
		want float64 // below 0: unknown
	}{
		{"the newest sample has them", api.Window{Job: job, Samples: []api.Sample{sample(5, nil), sample(90, nil)}}, noon, 90},
		{"those of a mark are not final", api.Window{Job: job, Samples: []api.Sample{sample(5, nil), sample(90, &api.Report{Epoch: 1})}}, noon, 5},
		{"the newest sample lacks them", api.Window{Job: job, Samples: []api.Sample{sample(5, nil), {}}}, noon, -1},
		{"there are no samples", api.Window{Job: job}, noon, -1},
		{"another job had the id before", api.Window{Job: job, Samples: []api.Sample{sample(90, nil)}}, noon.Add(time.Second), -1},
		{"its exporter was restarted", api.Window{Job: api.Job{Started: noon.Add(time.Hour), First: noon}, Samples: []api.Sample{sample(90, nil)}}, noon, 90},
		{"it was restarted in another attempt of its unit", api.Window{Job: api.Job{Started: noon.Add(time.Hour), First: noon}, Samples: []api.Sample{sample(90, nil)}}, noon.Add(time.Minute), -1},
		{"an older exporter does not say when it began to count", api.Window{Job: api.Job{Started: noon}, Samples: []api.Sample{sample(90, nil)}}, noon, 90},
	} {
		c.w.Source = "rapl"
		got, source := joules(c.w, c.from)
		if (got == nil) != (c.want < 0) || got != nil && (float64(*got) != c.want || source != "rapl") {
			t.Errorf("%s: %v from %q, want %g", c.name, got, source, c.want)
		}
	}
}
