package local_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/cgroup"
)

const savedExit = 85

// patience is how long these tests wait for what must come. Only a test that fails
// waits so long.
const patience = 2 * time.Minute

// bench is one driver of a test, with its directory.
type bench struct {
	dir  string
	cfg  local.Config
	d    *local.Driver
	done chan error // how Run ended; nil = it does not run
	end  context.CancelFunc
}

// cluster is a name of the test's own, so that no two tests share a cgroup.
func cluster(t *testing.T) string {
	t.Helper()
	h := fnv.New32a()
	if _, err := h.Write([]byte(t.Name())); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("t%dx%x", os.Getpid(), h.Sum32())
}

func newBench(t *testing.T, change func(*local.Config)) *bench {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &bench{dir: dir, cfg: local.Config{
		Dir: filepath.Join(dir, "state"), Cluster: cluster(t),
		Supervisor: []string{exe, "supervise"},
		CgroupRoot: local.DefaultCgroupRoot,
		Logger:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	if change != nil {
		change(&b.cfg)
	}
	b.open(t)
	t.Cleanup(func() { b.cleanUp(t) })
	return b
}

func (b *bench) open(t *testing.T) {
	t.Helper()
	if err := b.tryOpen(); err != nil {
		t.Fatalf("opening the driver: %v", err)
	}
}

func (b *bench) tryOpen() error {
	d, err := local.New(b.cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	b.d, b.done, b.end = d, done, cancel
	go func() { done <- d.Run(ctx) }()
	return nil
}

// shut ends the driver as a crash would, where it is open. Its jobs run on.
func (b *bench) shut(t *testing.T) {
	t.Helper()
	if b.done == nil {
		return
	}
	b.end()
	select {
	case err := <-b.done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		t.Errorf("Run does not return within %v of the end of its context", patience)
	}
	b.done = nil
}

// cleanUp ends every job and checks that nothing of them is left. A test that
// failed between two drivers left none open: another is opened to end its jobs.
func (b *bench) cleanUp(t *testing.T) {
	if b.done == nil {
		if err := b.tryOpen(); err != nil {
			t.Errorf("the jobs of this test are not ended, since the driver cannot be opened: %v", err)
			b.dump(t)
			return
		}
	}
	ctx := context.Background()
	jobs, err := b.d.List(ctx)
	if err != nil {
		t.Errorf("List: %v", err)
	}
	for _, j := range jobs {
		if err := b.d.Stop(ctx, j.ID); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	for _, j := range jobs {
		for end := time.Now().Add(patience); !j.State.Ended() && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if j, err = b.d.Get(ctx, j.ID); err != nil {
				t.Errorf("Get: %v", err)
				break
			}
		}
		if !j.State.Ended() {
			t.Errorf("job %s does not end: %s", j.ID, j.State)
		}
	}
	b.shut(t)
	if left := b.cgroups(t); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if t.Failed() {
		b.dump(t)
	}
}

func (b *bench) dump(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(b.cfg.Dir, "jobs/*/attempts/*/supervisor.log"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range logs {
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			t.Logf("%s:\n%s", path, data)
		}
	}
}

// cgroups lists the leaves of the bench that exist.
func (b *bench) cgroups(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*", ""} {
		found, err := filepath.Glob(filepath.Join(local.DefaultCgroupRoot, pattern, cgroup.Parent, b.cfg.Cluster+"-*"))
		if err != nil {
			t.Error(err)
		}
		out = append(out, found...)
	}
	return out
}

// job writes the script of a behaviour.
func (b *bench) job(t *testing.T, be drivertest.Behaviour) driver.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := be.Name
	if name == "" {
		name = "conformance"
	}
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	if be.MissingCommand {
		line("#!/no/such/interpreter")
	} else {
		line("#!/bin/sh")
	}
	line("#SBATCH --job-name=%s", name)
	line("#SBATCH --cpus-per-task=%d", max(be.Cores, 1))
	if be.MemoryBytes > 0 {
		line("#SBATCH --mem=%dK", be.MemoryBytes>>10)
	}
	if be.TimeLimit > 0 {
		line("#SBATCH --time=0:%02d", int(be.TimeLimit.Seconds()))
	}
	line("state=%q/$SLURM_JOB_ID.epoch", b.dir)
	line("want=")
	switch {
	case be.IgnoreSignal:
		line("trap '' USR1")
	case be.Saves:
		line("trap 'want=1' USR1")
	}
	if be.ShowEnv != "" {
		line(`echo "env %s=$%s"`, be.ShowEnv, be.ShowEnv)
	}
	if be.ShowSettings {
		line(`if [ -n "$PITCHPIPE_SETTINGS" ]; then echo "settings $(tr -d '\n' <"$PITCHPIPE_SETTINGS")"; else echo settings none; fi`)
	}
	line("hog=")
	if be.UseMemory > 0 {
		line(`rm -f "$state.hog"`)
		line(`%q hog %d "$state.hog" & hog=$!`, exe, be.UseMemory)
		line(`until [ -f "$state.hog" ]; do kill -0 $hog || exit 9; sleep 0.01; done`)
	}
	line("n=0")
	line(`[ -f "$state" ] && n=$(cat "$state")`)
	line("while [ $n -lt %d ]; do", be.Epochs)
	if be.Saves {
		// The signal goes to the whole group; what an epoch computes is not what
		// saves. One that comes before the trap ends the epoch early.
		line("  { (trap '' USR1; exec sleep %.3f) || :; } 2>/dev/null", be.Epoch.Seconds())
	} else {
		line("  sleep %.3f", be.Epoch.Seconds())
	}
	line("  n=$((n+1))")
	line("  echo epoch $n/%d", be.Epochs)
	line(`  if [ -n "$want" ]; then`)
	line(`    echo $n >"$state"`)
	exit := savedExit
	if be.LeavesWith != 0 {
		exit = be.LeavesWith
	}
	if be.SaysSaved {
		line("    echo saved; want=")
	} else {
		line("    exit %d", exit)
	}
	line("  fi")
	line("done")
	line(`[ -n "$hog" ] && kill $hog`)
	line("exit %d", be.ExitCode)
	return driver.Spec{Owner: be.Owner, Filename: name + ".sh", Source: []byte(s.String()), Dir: b.dir}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		crash := &drivertest.Crash{}
		h := newBench(t, func(c *local.Config) { c.AfterStep = crash.At }).harness(t)
		h.Crash = crash
		return h
	})
}

func TestConformanceWithoutCgroups(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite once more, without control groups: make check runs it")
	}
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return newBench(t, func(c *local.Config) { c.CgroupRoot = "" }).harness(t)
	})
}

func (b *bench) harness(t *testing.T) drivertest.Harness {
	t.Helper()
	cores, memory := machine(t)
	return drivertest.Harness{
		Driver: b.d, Job: b.job, Cores: cores, MemoryBytes: memory,
		Checkpoint: driver.Checkpoint{Signal: "SIGUSR1", Exit: savedExit},
		Reopen: func(t *testing.T) driver.Driver {
			t.Helper()
			b.shut(t)
			b.open(t)
			return b.d
		},
	}
}
