package sim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// Each behaviour as one story: what is submitted, and how and when it ends.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		options   string
		behaviour string
		env       map[string]string
		want      driver.State
		code      int
		took      time.Duration
		epochs    int
	}{
		{"serial work takes its seconds", "", "epochs=10 seconds=2", nil, driver.Succeeded, 0, 20 * time.Second, 10},
		{"serial work gains nothing from cores", "cpus-per-task=8", "epochs=10 seconds=2", nil, driver.Succeeded, 0, 20 * time.Second, 10},
		{"parallel work follows Amdahl", "cpus-per-task=4", "epochs=4 seconds=10 parallel=0.8", nil, driver.Succeeded, 0, 16 * time.Second, 4},
		{"threads limit what cores bring", "cpus-per-task=4", "epochs=4 seconds=10 parallel=1", map[string]string{"OMP_NUM_THREADS": "2"}, driver.Succeeded, 0, 20 * time.Second, 4},
		{"the variable of the threads can be named", "cpus-per-task=4", "epochs=4 seconds=10 parallel=1 threads=T", map[string]string{"T": "1", "OMP_NUM_THREADS": "4"}, driver.Succeeded, 0, 40 * time.Second, 4},
		{"more threads than cores cost time", "cpus-per-task=2", "epochs=2 seconds=10 parallel=1 oversubscribe=0.5", map[string]string{"OMP_NUM_THREADS": "6"}, driver.Succeeded, 0, 20 * time.Second, 2},
		{"a larger batch needs less work", "", "epochs=3 seconds=8 batch=BATCH_SIZE base=32 exponent=0.5", map[string]string{"BATCH_SIZE": "128"}, driver.Succeeded, 0, 12 * time.Second, 3},
		{"a batch that is no number counts as the base", "", "epochs=3 seconds=8 batch=BATCH_SIZE exponent=0.5", map[string]string{"BATCH_SIZE": "big"}, driver.Succeeded, 0, 24 * time.Second, 3},
		{"cores beyond the saturation bring nothing", "cpus-per-task=8", "epochs=4 seconds=10 parallel=0.8 saturate=4", nil, driver.Succeeded, 0, 16 * time.Second, 4},
		{"coherence makes each further core cost time", "cpus-per-task=5", "epochs=2 seconds=10 parallel=1 coherence=0.05", nil, driver.Succeeded, 0, 8 * time.Second, 2},
		{"drift makes the last epoch longer than the first", "", "epochs=5 seconds=4 drift=0.5", nil, driver.Succeeded, 0, 25 * time.Second, 5},
		{"drift below zero makes it shorter", "", "epochs=5 seconds=4 drift=-0.5", nil, driver.Succeeded, 0, 15 * time.Second, 5},
		{"starting up costs time once", "", "epochs=3 seconds=1 start=5s", nil, driver.Succeeded, 0, 8 * time.Second, 3},
		{"contended epochs take a quarter longer", "", "epochs=5 seconds=4 contended=2-3,5", nil, driver.Succeeded, 0, 23 * time.Second, 5},
		{"an exit status at the end", "", "epochs=3 seconds=1 exit=7", nil, driver.Failed, 7, 3 * time.Second, 3},
		{"a failure in an epoch leaves that epoch undone", "", "epochs=9 seconds=1 exit=1 at=7", nil, driver.Failed, 1, 7 * time.Second, 6},
		{"a good end before all epochs", "", "epochs=9 seconds=1 at=7", nil, driver.Succeeded, 0, 7 * time.Second, 6},
		{"a job that hangs ends at its time limit", "time=00:01:00", "epochs=9 seconds=1 hang_at=4", nil, driver.TimeExceeded, 143, time.Minute, 3},
		{"a job over its own memory limit is killed in its first epoch", "mem=100M", "epochs=9 seconds=2 memory=200MiB", nil, driver.MemoryExceeded, 137, time.Second, 0},
		{"a job at its memory limit runs", "mem=200M", "epochs=2 seconds=2 memory=200MiB", nil, driver.Succeeded, 0, 4 * time.Second, 2},
		{"a job without a memory limit runs", "", "epochs=2 seconds=2 memory=200GiB", nil, driver.Succeeded, 0, 4 * time.Second, 2},
		{"a job whose supervisor dies is lost", "", "epochs=9 seconds=2 dies_at=5s", nil, driver.Lost, -1, 5 * time.Second, 2},
		{"a job whose command is missing was not started", "", "epochs=9 seconds=2 missing=true", nil, driver.NotStarted, 127, 0, 0},
		{"an owner's edit alone changes nothing for a running job", "", "epochs=3 seconds=2 owner_changes_at=3s", nil, driver.Succeeded, 0, 6 * time.Second, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, sim.Config{}, func(b *bench) {
				s := spec(tt.options, tt.behaviour)
				s.Env = tt.env
				job := b.ended(b.submitSpec(s).ID)
				if job.State != tt.want || job.ExitCode != tt.code {
					b.Errorf("%s with exit code %d (%s), want %s with %d", job.State, job.ExitCode, job.Detail, tt.want, tt.code)
				}
				if took := job.Ended.Sub(job.Started); (took - tt.took).Abs() > time.Microsecond {
					b.Errorf("took %v, want %v", took, tt.took)
				}
				b.wantEpochs(job.ID, tt.epochs)
			})
		})
	}
}

func TestQualityFollowsTheBatchSize(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		s := spec("", "epochs=40 seconds=1 batch=B quality=0.95 quality_per_doubling=-0.02 tau=1")
		s.Env = map[string]string{"B": "128"}
		job := b.ended(b.submitSpec(s).ID)
		if want := "epoch 40/40 loss 0.1000 acc 0.9100\n"; !strings.HasSuffix(b.logs(job.ID), want) {
			b.Errorf("output ends in %q, want %q", b.logs(job.ID), want)
		}
	})
}

// The same name and attempt draw the same noise, others draw other noise, and
// its mean is 1.
func TestNoise(t *testing.T) {
	t.Parallel()
	took := func(options, behaviour string) (d time.Duration) {
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.ended(b.submit(options, behaviour).ID)
			d = job.Ended.Sub(job.Started)
		})
		return d
	}
	const noisy = "epochs=10000 seconds=1 noise=0.3"
	a := took("job-name=a", noisy)
	if again := took("job-name=a", noisy); again != a {
		t.Errorf("the same job took %v and then %v", a, again)
	}
	if other := took("job-name=b", noisy); other == a {
		t.Errorf("jobs of different names both took %v", a)
	}
	if other := took("job-name=a", noisy+" seed=1"); other == a {
		t.Errorf("jobs of different seeds both took %v", a)
	}
	if mean := a.Seconds() / 10000; math.Abs(mean-1) > 0.015 {
		t.Errorf("mean of 10000 epochs is %v s, want 1 within five standard errors", mean)
	}
	if run := took("job-name=a", "epochs=10 seconds=1 run_noise=0.3"); run == 10*time.Second {
		t.Error("run_noise has no effect")
	}
}

// An attempt goes on with the noise of the one before, so that a job that was moved can be
// compared with itself.
func TestPairedNoiseIsThatOfTheEpoch(t *testing.T) {
	t.Parallel()
	took := func(behaviour string, moves bool) (d time.Duration) {
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submit("", "epochs=20 seconds=10 noise=0.3 checkpoint=1s "+behaviour)
			if moves {
				b.until(35 * time.Second)
				b.drive(b.intent(job.ID, "in", driver.Change{Cores: 2}))
			}
			job = b.ended(job.ID)
			for i, a := range job.Attempts {
				d += a.Ended.Sub(a.Started)
				if i > 0 {
					d -= time.Second
				}
			}
		})
		return d
	}
	if moved, stayed := took("paired=true", true), took("paired=true", false); moved != stayed {
		t.Errorf("it took %v where it was moved, and %v where not", moved, stayed)
	}
	if took("", true) == took("", false) {
		t.Error("attempts draw the same noise without paired=")
	}
}

func TestStartRefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, want string }{
		{"a file without behaviour", "#!/bin/sh\n./train\n", "job.sh:1: every simulated job says"},
		{"a file with a wrong key", "#!/bin/sh\n#SIM epochs=1 second=2\n", `job.sh:2: unknown key "second"`},
		{"a file that the scheduler cannot read", "#!/bin/sh\n#SBATCH --wrong\n", `job.sh:2:9: unknown option "--wrong"`},
		{"a job that no node can hold", script("cpus-per-task=17", "epochs=1 seconds=1"), "no node has 17 cores"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, sim.Config{}, func(b *bench) {
				_, err := b.c.Start(b.Context(), "r", driver.Spec{Filename: "job.sh", Source: []byte(tt.source)})
				wantError(b.T, err, driver.ErrInvalid)
				if err != nil && !strings.Contains(err.Error(), tt.want) {
					b.Errorf("error %q, want it to say %q", err, tt.want)
				}
			})
		})
	}
}

// A late look sees what happened at its own instants all the same.
func TestLookingLateChangesNothing(t *testing.T) {
	t.Parallel()
	story := func(late bool) (out string) {
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submit("cpus-per-task=16", "epochs=5 seconds=2 noise=0.1")
			next := b.submit("cpus-per-task=16", "epochs=5 seconds=2 noise=0.1")
			if late {
				b.c.StopTimer()
			}
			b.until(time.Hour)
			out = b.json(b.get(job.ID), b.get(next.ID), b.window(next.ID, 1, 0))
		})
		return out
	}
	if diff := cmp.Diff(story(false), story(true)); diff != "" {
		t.Errorf("looking late shows (-in time +late):\n%s", diff)
	}
}

// A script that sets a variable to a literal does so whatever its environment
// says; a default in a script gives way.
func TestEnvironmentOfAnAttempt(t *testing.T) {
	t.Parallel()
	const src = "#!/bin/sh\n#SIM epochs=4 seconds=10 checkpoint=1s show_env=%s\nexport FIXED=file\nexport OPEN=${OPEN:-file}\n./train\n"
	for name, want := range map[string][]string{
		"FIXED": {"file", "file"}, "OPEN": {"submission", "change"}, "OTHER": {"", "change"},
	} {
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submitSpec(driver.Spec{
				Filename: "job.sh", Source: []byte(strings.Replace(src, "%s", name, 1)),
				Env: map[string]string{"OPEN": "submission", "FIXED": "submission"},
			})
			b.drive(b.intent(job.ID, "in", driver.Change{Env: map[string]string{name: "change"}}))
			b.ended(job.ID)
			var got []string
			for line := range strings.Lines(b.logs(job.ID)) {
				if value, ok := strings.CutPrefix(strings.TrimSpace(line), "env "+name+"="); ok {
					got = append(got, value)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				b.Errorf("%s in the two attempts (-want +got):\n%s", name, diff)
			}
		})
	}
}
