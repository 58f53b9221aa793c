package slurm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
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
			r.f.with(job.ID, func(j *fakeJob) { j.cores, j.mem = 4, 120 }) // each has 30 MiB
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

// small has a partition short of small nodes besides main.
type small struct{ command.Runner }

func (s small) Run(ctx context.Context, c command.Call) (command.Output, error) {
	i := slices.Index(c.Args, "-p")
	if c.Name != "sinfo" || i < 0 || c.Args[i+1] != "short" {
		return s.Runner.Run(ctx, c)
	}
	return command.Output{Stdout: []byte("n2|short|up|idle|0/1/0/1|1|10|10|\n")}, nil
}

func TestAJobOfSeveralPartitionsMayHaveWhatANodeOfOneOfThemHas(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Commands = small{c.Commands} })
	job := r.start(t)
	for partitions, want := range map[string]error{"short,main": nil, "short": driver.ErrInvalid} {
		r.f.with(job.ID, func(j *fakeJob) { j.partition = partitions })
		in := intent(r.job(t, job.ID), nil)
		if err := r.d.Check(t.Context(), in); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", partitions, err, want)
		}
	}
}

func TestSlurmSaysWhatItBills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, partition, conf string
		want                  driver.Billing
		err                   error
	}{
		{"without weights it bills CPUs", "", "", driver.Billing{Core: 1}, nil},
		{"by the partition's weights", " TRESBillingWeights=CPU=2,Mem=0.5G,GRES/gpu=8", "", driver.Billing{Core: 2, GiB: .5, GPU: 8}, nil},
		{"by the dearest of them", " TRESBillingWeights=CPU=2", "PriorityFlags = CALCULATE_RUNNING,MAX_TRES\n", driver.Billing{Core: 2, Dearest: true}, nil},
		{"for whole nodes", " OverSubscribe=EXCLUSIVE", "", driver.Billing{Core: 1, Whole: true}, nil},
		{"by weights that no one can read", " TRESBillingWeights=CPU=x", "", driver.Billing{}, driver.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.gives, r.f.conf = c.partition, r.f.conf+c.conf
			got, err := r.d.Billing(t.Context(), "main,other")
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%+v (%v), want %+v (%v)", got, err, c.want, c.err)
			}
		})
	}
	r := newRig(t, nil)
	if _, err := r.d.Billing(t.Context(), "none"); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("of no partition: %v, want %v", err, driver.ErrNotFound)
	}
}
