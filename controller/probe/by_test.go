package probe_test

import (
	"testing"
	"testing/synctest"

	"pitchpipe/controller/probe"
	"pitchpipe/driver"
	"pitchpipe/driver/sim"
)

// Any driver will do: a job is changed while it waits, and begins with that.
func TestAnyDriverStartsShortJobsWithAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := sim.New(sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		jobs := probe.By(cluster)
		spec := driver.Spec{Owner: "alice", Filename: "job.sbatch", Off: true, Source: []byte("#!/bin/sh\n#SBATCH --job-name=x\n#SBATCH --cpus-per-task=1\n#SIM epochs=4 seconds=5 noise=0 seed=3\nexec ./x\n")}
		for request, want := range map[driver.RequestID]int{"own": 0, "more": 2} {
			for range 2 { // repeated it is the same job
				job, err := jobs.Start(t.Context(), request, spec, driver.Change{Cores: want})
				if err != nil {
					t.Fatal(err)
				}
				got, err := jobs.Get(t.Context(), job.ID)
				if err != nil || got.Change.Cores != want {
					t.Errorf("%s: %+v (%v), want %d cores", request, got, err, want)
				}
			}
		}
		list, err := cluster.List(t.Context())
		if err != nil || len(list) != 2 {
			t.Errorf("%d jobs (%v), want two", len(list), err)
		}
	})
}
