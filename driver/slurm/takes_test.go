package slurm_test

import (
	"errors"
	"strings"
	"testing"

	"pitchpipe/driver"
)

func TestFewerCoresWithMoreMemoryEachThanAPartitionGivesAreRefusedBeforehand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, partition, conf string }{
		{"by the partition", " MaxMemPerCPU=40", ""},
		{"by the cluster", "", "MaxMemPerCPU = 40\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.start(t)
			r.f.with(job.ID, func(j *fakeJob) { j.cores, j.mem = 4, 120 }) // of which each has 30 MiB
			r.f.gives, r.f.conf = c.partition, r.f.conf+c.conf
			in := intent(r.job(t, job.ID), nil)
			for cores, want := range map[int]error{3: nil, 2: driver.ErrDenied} {
				in.Change = driver.Change{Cores: cores}
				err := r.d.Check(t.Context(), in)
				if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "partition main has MaxMemPerCPU 40, and the job would have 60") {
					t.Errorf("%d cores: %v, want %v", cores, err, want)
				}
			}
		})
	}
}
