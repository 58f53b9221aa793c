package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/test/slurmcluster"
)

const savedExit = 85

// cluster is one Slurm for all tests of the package, with more CPUs than the
// machine has, so that tests do not wait for each other.
type cluster struct {
	shared   slurmcluster.Shared
	settings string   // what its TaskProlog reads
	nodes    chan int // that no test uses: who waits for a node keeps others from growing there
	alone    bool     // one test has it, and its lasting partition
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	// Below /tmp and open to all: the jobs' users read it.
	dir, err := os.MkdirTemp("", "pitchpipe-settings-") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	settings := filepath.Join(dir, "env")
	prolog, err := os.ReadFile("../../scripts/slurm/task_prolog")
	if err != nil {
		t.Fatal(err)
	}
	const conf = "conf=/etc/pitchpipe/task_prolog.conf"
	if !strings.Contains(string(prolog), conf) {
		t.Fatalf("the shipped TaskProlog has no line %s", conf)
	}
	self, err := user.Current()
	err = errors.Join(err,
		os.Chmod(dir, 0o755), os.Mkdir(settings, 0o755),
		os.WriteFile(filepath.Join(dir, "job_submit.lua"), []byte(markAll), 0o644),
		os.WriteFile(filepath.Join(dir, "conf"), []byte("site_dir="+settings+"\nsite_user="+self.Username+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "prolog"), []byte(strings.Replace(string(prolog), conf, "conf="+dir+"/conf", 1)), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{settings: settings, nodes: make(chan int, 8)}
	for n := range cap(c.nodes) {
		c.nodes <- n
	}
	c.shared.Options = slurmcluster.Options{
		CPUs: clusterCPUs, Nodes: cap(c.nodes), Accounting: true, TaskProlog: filepath.Join(dir, "prolog"), JobSubmitLua: filepath.Join(dir, "job_submit.lua"),
		Lines: []string{
			"RequeueExitHold=85", "MinJobAge=300",
			"SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0",
		},
	}
	return c
}

// markAll marks every job as the submission plugin marks those that have a stanza.
const markAll = `function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.admin_comment = "pitchpipe:1:{}"
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
`

const (
	clusterCPUs     = 16
	clusterMemoryMB = 16384
)

// bench is one driver of a test, which sees the jobs of one partition, made for
// the test.
type bench struct {
	c         *slurmcluster.Cluster
	cfg       slurm.Config
	d         *slurm.Driver
	dir       string // where the jobs run
	partition string
}

func newBench(t *testing.T, c *cluster, change func(*slurm.Config)) *bench {
	t.Helper()
	cl := c.shared.Get(t)
	node := <-c.nodes
	t.Cleanup(func() { c.nodes <- node })
	h := fnv.New32a()
	if _, err := h.Write([]byte(t.Name())); err != nil {
		t.Fatal(err)
	}
	b := &bench{c: cl, partition: fmt.Sprintf("t%x", h.Sum32())}
	if c.alone {
		b.partition = "main"
	} else {
		mustRun(t, cl, "root", "scontrol", "create", "PartitionName="+b.partition, "Nodes="+cl.Nodes()[node], "MaxTime=INFINITE", "State=UP")
	}
	b.dir = filepath.Join(cl.Home(slurmcluster.Alpha), b.partition)
	who := credential(t, slurmcluster.Alpha)
	if err := errors.Join(os.Mkdir(b.dir, 0o755), os.Chown(b.dir, int(who.Uid), int(who.Gid))); err != nil {
		t.Fatal(err)
	}
	b.cfg = slurm.Config{
		Dir: filepath.Join(t.TempDir(), "state"), User: slurmcluster.Alpha, Partitions: []string{b.partition},
		Commands: command.Exec{Conf: cl.Conf(), Credential: who}, Parse: detect.Parse, Interval: 200 * time.Millisecond,
		TaskProlog: true, SettingsDir: c.settings, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&b.cfg)
	}
	b.open(t)
	t.Cleanup(func() { b.cleanUp(t) })
	return b
}

func mustRun(t *testing.T, c *slurmcluster.Cluster, name, program string, args ...string) string {
	t.Helper()
	out, err := c.Run(context.WithoutCancel(t.Context()), name, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return out
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (b *bench) open(t *testing.T) {
	t.Helper()
	d, err := slurm.New(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.d = d
}

func (b *bench) shut(t *testing.T) {
	t.Helper()
	if err := b.d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// cleanUp ends every job of the partition and removes it.
func (b *bench) cleanUp(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("at the end:\n%s", mustRun(t, b.c, "root", "squeue", "-h", "-a", "-t", "all", "-p", b.partition, "-o", "%i %T %r %V %S %e"))
	}
	b.dump(t)
	if t.Failed() {
		t.Log(b.c.Logs())
	}
	mustRun(t, b.c, "root", "scancel", "-p", b.partition)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if mustRun(t, b.c, "root", "squeue", "-h", "-a", "-p", b.partition) == "" {
			break
		}
	}
	b.shut(t)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Error(err)
	}
}

// dump shows the output of the jobs of a test that failed.
func (b *bench) dump(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "slurm-*.out"))
	if err != nil || !t.Failed() {
		return
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			t.Logf("%s:\n%s", filepath.Base(f), data)
		}
	}
}

// slow is how many real seconds are one second of the suite's patience: Slurm
// enforces time limits by the minute, and looks at its queue every few seconds.
const slow = 6

func (b *bench) harness(t *testing.T) drivertest.Harness {
	t.Helper()
	begin := time.Now()
	return drivertest.Harness{
		Driver: b.d, Job: b.job, Cores: clusterCPUs, MemoryBytes: clusterMemoryMB << 20,
		Checkpoint: driver.Checkpoint{Signal: "SIGUSR1", Exit: savedExit},
		Now:        func() time.Time { return begin.Add(time.Since(begin) / slow) },
		Sleep:      func(ctx context.Context, d time.Duration) { pause(ctx, d*slow) },
		Reopen: func(t *testing.T) driver.Driver {
			t.Helper()
			b.shut(t)
			b.open(t)
			return b.d
		},
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func TestOnACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	t.Cleanup(func() {
		if err := c.shared.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Run("conformance", func(t *testing.T) {
		if testing.Short() {
			t.Skip("fifty sentences on a real Slurm: make check runs them")
		}
		t.Parallel()
		drivertest.Run(t, func(t *testing.T) drivertest.Harness {
			t.Helper()
			crash := &drivertest.Crash{}
			h := newBench(t, c, func(cfg *slurm.Config) { cfg.AfterStep = crash.At }).harness(t)
			h.Crash = crash
			return h
		})
	})
	t.Run("conformance of a site", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the suite once more, through a broker: make check runs it")
		}
		t.Parallel()
		drivertest.Run(t, func(t *testing.T) drivertest.Harness {
			t.Helper()
			return newBench(t, c, nil).site(t)
		})
	})
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.check(t, c)
		})
	}
}

// story is one thing that a real cluster must show.
type story struct {
	name  string
	check func(t *testing.T, c *cluster)
}
