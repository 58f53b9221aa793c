package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/local"
)

func TestHowAJobEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		spec driver.Spec
		want driver.State
		code int
	}{
		{"a script that exits with 127 by itself has failed", script("exit 127"), driver.Failed, 127},
		{"a script whose command is missing has failed, since the script ran", script("no-such-command"), driver.Failed, 127},
		{"a script that kills itself has failed with 128 and the signal", script("kill -KILL $$"), driver.Failed, 137},
		{"a missing interpreter was not started", driver.Spec{Filename: "job.sh", Source: []byte("#!/no/such/interpreter -x\n")}, driver.NotStarted, 127},
		{"an interpreter that may not run was not started", driver.Spec{Filename: "job.sh", Source: []byte("#!/etc/passwd\n")}, driver.NotStarted, 126},
		{"a missing working directory was not started", script("#SBATCH --chdir=/no/such/directory", "exit 0"), driver.NotStarted, 127},
		{"an output that cannot be opened was not started", script("#SBATCH --output=/no/such/directory/x", "exit 0"), driver.NotStarted, 127},
		{"an interpreter with an argument gets it", driver.Spec{Filename: "job.sh", Source: []byte("#!/bin/sh -e\nfalse\nexit 0\n")}, driver.Failed, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			job := b.ended(t, b.start(t, "request", tt.spec).ID, tt.want)
			if job.ExitCode != tt.code || job.Detail == "" {
				t.Errorf("exit code %d (%s), want %d and a reason", job.ExitCode, job.Detail, tt.code)
			}
		})
	}
}

func TestASupervisorThatDoesNotStartIsTriedAgainAndThenTheJobIsNotStarted(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{"/bin/false"}, {"/no/such/pitchpipe"}} {
		t.Run(argv[0], func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *local.Config) { c.Supervisor = argv })
			b.ended(t, b.start(t, "request", script("exit 0")).ID, driver.NotStarted)
		})
	}
}

func TestManyStartsOfOneRequestMakeOneJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var all sync.WaitGroup
	ids := make([]driver.JobID, 8)
	for i := range ids {
		all.Go(func() {
			job, err := b.d.Start(t.Context(), "request", script("echo once"))
			if err != nil {
				t.Error(err)
			}
			ids[i] = job.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("jobs %v, want one", ids)
		}
	}
	b.ended(t, ids[0], driver.Succeeded)
	if got := output(t, b.d, ids[0]); got != "once\n" {
		t.Errorf("output %q, want once", got)
	}
}

func TestARequestIsOfOneJobFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	job := b.start(t, "request", script("exit 0"))
	_, err := b.d.Start(t.Context(), "request", script("exit 1"))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), string(job.ID)) {
		t.Errorf("%v, want one that names %s", err, job.ID)
	}
}

func TestOneDirectoryIsOpenedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	if d, err := local.New(b.cfg); err == nil {
		t.Error("a second driver opened the same directory")
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoSchedulersOfOneNameDoNotShareACgroup(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	if caps := len(b.cgroups(t)); caps != 0 {
		t.Fatalf("%d cgroups before anything ran", caps)
	}
	first := b.start(t, "request", script("echo up; sleep 1000"))
	b.until(t, "it runs", first.ID, func(j driver.Job) bool { return output(t, b.d, j.ID) != "" })
	if len(b.cgroups(t)) == 0 {
		t.Skip("no cgroups here")
	}
	other := *b
	other.cfg.Dir = filepath.Join(t.TempDir(), "state")
	other.open(t)
	defer other.shut(t)
	second, err := other.d.Start(t.Context(), "request", script("exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	if second.ID != first.ID {
		t.Fatalf("job ids %s and %s, want the same", first.ID, second.ID)
	}
	got := other.ended(t, second.ID, driver.NotStarted)
	if !strings.Contains(got.Detail, "in use by another job of this id") {
		t.Errorf("detail %q, want that the cgroup is in use", got.Detail)
	}
	other.shut(t)
	if j := b.until(t, "it is there", first.ID, func(driver.Job) bool { return true }); j.State != driver.Running {
		t.Errorf("the first job is %s, want that it runs on", j.State)
	}
}

func TestWhatAJobFinds(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	work := t.TempDir()
	spec := script(
		"#SBATCH --job-name=finder", "#SBATCH --output=%x-%j.txt", "#SBATCH --chdir="+work, "#SBATCH --mem=256M",
		`echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK $SLURM_RESTART_COUNT $SLURM_MEM_PER_NODE"`,
		`echo "$PITCHPIPE_JOB_ID $PITCHPIPE_ATTEMPT $OWN"`, "pwd",
		"grep Cpus_allowed_list /proc/self/status | cut -f2",
	)
	spec.Env = map[string]string{"OWN": "value", "PITCHPIPE_JOB_ID": "forged"}
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	want := fmt.Sprintf("%s finder 1 0 256\n%s 1 value\n%s\n", job.ID, job.ID, work)
	got := output(t, b.d, job.ID)
	if !strings.HasPrefix(got, want) {
		t.Errorf("output:\n%swant it to begin with:\n%s", got, want)
	}
	if cpus := strings.TrimPrefix(got, want); strings.ContainsAny(cpus, ",-") {
		t.Errorf("a job of one core may use the CPUs %s", cpus)
	}
	if _, err := os.Stat(filepath.Join(work, "finder-"+string(job.ID)+".txt")); err != nil {
		t.Errorf("the output is not where the script says: %v", err)
	}
}

func TestTheFirstAttemptEmptiesItsOutputUnlessTheScriptAppends(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"": "new\n", "--open-mode=truncate": "new\n", "--open-mode=append": "old\nnew\n"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			path := filepath.Join(t.TempDir(), "train.log")
			if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			job := b.ended(t, b.start(t, "request", script("#SBATCH --output="+path+" "+mode, "echo new")).ID, driver.Succeeded)
			if got := output(t, b.d, job.ID); got != want {
				t.Errorf("output %q, want %q", got, want)
			}
		})
	}
}

func TestANomadJobGetsItsArgumentsAndEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	work := t.TempDir()
	spec := driver.Spec{Filename: "job.nomad", Dir: work, Source: []byte(`
job "trainer" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo $0 $*; echo $FROM_FILE $NOMAD_JOB_NAME $NOMAD_MEMORY_LIMIT; pwd", "run", "--lr", "1", "--batch=2"]
      }
      env {
        FROM_FILE = "file"
      }
      resources {
        cores  = 1
        memory = 128
      }
    }
  }
}
`)}
	spec.NotBefore = time.Now().Add(time.Hour)
	job := b.start(t, "request", spec)
	in := driver.Intent{
		ID: "intent", Job: job.ID, Fingerprint: job.Fingerprint, Note: "two\nlines",
		Change: driver.Change{
			Args: map[string]string{"--lr": "5", "--batch": "6", "--new": "7"},
			Env:  map[string]string{"FROM_FILE": "tuned"},
		},
	}
	for _, want := range []driver.StepKind{driver.StepChanged, driver.StepStarted, driver.StepStarted} {
		if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != want {
			t.Fatalf("step %+v, error %v, want %s", step, err, want)
		}
	}
	job = b.ended(t, job.ID, driver.Succeeded)
	want := "run --lr 5 --batch=6 --new 7\ntuned trainer 128\n" + work + "\n"
	if got := output(t, b.d, job.ID); got != want {
		t.Errorf("output:\n%swant:\n%s", got, want)
	}
	all, err := os.ReadFile(filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "output.log"))
	if err != nil || !strings.HasPrefix(string(all), "pitchpipe: two lines\n") {
		t.Errorf("output %q (%v), want the note in its first line", all, err)
	}
}

func TestChangesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	held := b.job(t, drivertest.Behaviour{Epochs: 1})
	held.NotBefore = time.Now().Add(time.Hour)
	pending := b.start(t, "pending", held)
	running := b.start(t, "running", b.job(t, drivertest.Behaviour{Epochs: 10_000, Epoch: 100 * time.Millisecond, Saves: true}))
	fixed := b.start(t, "fixed", script("#SBATCH --no-requeue", "sleep 100"))
	isRunning := func(j driver.Job) bool { return j.State == driver.Running }
	running = b.until(t, "it runs", running.ID, isRunning)
	fixed = b.until(t, "it runs", fixed.ID, isRunning)
	literal := script("export BATCH=1", "exit 0")
	literal.NotBefore = held.NotBefore
	exports := b.start(t, "exports", literal)
	cp := &driver.Checkpoint{Signal: "USR1", Grace: time.Second, Exit: savedExit}
	for _, tt := range []struct {
		name   string
		job    driver.Job
		change driver.Change
		cp     *driver.Checkpoint
		want   error
	}{
		{"arguments of a script", pending, driver.Change{Args: map[string]string{"--lr": "1"}}, nil, driver.ErrUnsupported},
		{"fewer than no cores", pending, driver.Change{Cores: -1}, nil, driver.ErrInvalid},
		{"more memory than the machine has", pending, driver.Change{MemoryBytes: 1 << 60}, nil, driver.ErrInvalid},
		{"a variable with an equals sign", pending, driver.Change{Env: map[string]string{"A=B": "1"}}, nil, driver.ErrInvalid},
		{"a variable that the script sets itself", exports, driver.Change{Env: map[string]string{"BATCH": "2"}}, nil, driver.ErrUnsupported},
		{"a signal that does not exist", running, driver.Change{}, &driver.Checkpoint{Signal: "NOPE", Exit: 1}, driver.ErrInvalid},
		{"a checkpoint that cannot be recognised", running, driver.Change{}, &driver.Checkpoint{Signal: "USR1"}, driver.ErrInvalid},
		{"a pattern that is none", running, driver.Change{}, &driver.Checkpoint{Signal: "USR1", Done: "("}, driver.ErrInvalid},
		{"no checkpoint", running, driver.Change{}, nil, driver.ErrUnsupported},
		{"a job file that forbids restarts", fixed, driver.Change{}, cp, driver.ErrDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := driver.Intent{
				ID: tt.name, Job: tt.job.ID, Attempt: tt.job.Attempt, Fingerprint: tt.job.Fingerprint,
				Change: tt.change, Checkpoint: tt.cp,
			}
			if err := b.d.Check(t.Context(), in); !errors.Is(err, tt.want) {
				t.Errorf("Check: %v, want %v", err, tt.want)
			}
			if step, err := b.d.Advance(t.Context(), in); !errors.Is(err, tt.want) {
				t.Errorf("Advance: %+v, %v, want %v", step, err, tt.want)
			}
		})
	}
}

func TestAJobThatSavedIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	for _, advances := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d steps after it was asked", advances-1), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *local.Config) { c.Hold = 4 * time.Second })
			job := b.start(t, "request", b.job(t, drivertest.Behaviour{Epochs: 12, Epoch: 400 * time.Millisecond, Saves: true}))
			job = b.until(t, "it runs", job.ID, func(j driver.Job) bool { return strings.Contains(output(t, b.d, j.ID), "epoch 2/") })
			in := driver.Intent{
				ID: "intent", Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
				Change:     driver.Change{TimeLimit: time.Hour},
				Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: patience, Exit: savedExit},
			}
			for i := range advances {
				step, err := b.d.Advance(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				want := []driver.StepKind{driver.StepCheckpointing, driver.StepStopped, driver.StepChanged}[i]
				if step.Kind != want {
					t.Fatalf("step %d is %s, want %s", i, step.Kind, want)
				}
				if i == 0 {
					b.until(t, "it saved", job.ID, func(j driver.Job) bool { return j.State == driver.Stopped })
				}
			}
			// The controller does not come back.
			job = b.ended(t, job.ID, driver.Succeeded)
			last := job.Attempts[len(job.Attempts)-1]
			if len(job.Attempts) != 2 || last.Cause != driver.CauseLate || last.Change.TimeLimit != 0 {
				t.Errorf("attempts %+v, want a second one under the old settings", job.Attempts)
			}
			if got := strings.Count(output(t, b.d, job.ID), "epoch "); got != 12 {
				t.Errorf("%d epochs, want 12", got)
			}
			if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepFinished {
				t.Errorf("the intent afterwards: %+v, %v, want %s", step, err, driver.StepFinished)
			}
		})
	}
}
