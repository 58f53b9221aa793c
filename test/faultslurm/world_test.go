package faultslurm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/fault"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// policy has no caps, which hundreds of moves and harm done by faults would reach; jobs are given more cores.
const policy = `default:
  max_mode: apply
  above_request: true
  user_restarts: 0
  total_restarts: 0
  pause_after: 0
`

// What a user's controller has, below his home.
const (
	stateFolder    = "ctl"
	settingsFolder = stateFolder + "/env"
)

// Partitions: one of jobs that their owner's controller tunes, one of the site's.
const (
	ownPartition  = "own"
	sitePartition = "site"
)

const (
	clusterCPUs     = 96 // of each node: jobs mostly wait, but not for one another
	clusterMemoryMB = 65536

	// After this, and ten seconds, slurmctld believes a node that it has no process of a job.
	batchStart = 2 * time.Second
)

// world is one cluster with everything that works in it.
type world struct {
	t        *testing.T
	tuned    bool // else owners move their jobs by hand
	story    *fault.Story
	c        *slurmcluster.Cluster
	dir      string // of the programs, orders and logs; all users can reach it
	exporter string // socket
	owners   []*owner
	fates    fates
	early    atomic.Int64 // sbatch --wait that took leaving for the end
	// Jobs of whose cancel accounting has nothing (leftRequeued).
	unwritten atomic.Int64
	ctld      sync.Mutex // of who ends and starts slurmctld
	bookmark  string     // id of a job that waits for ever

	mu        sync.Mutex
	jobs      map[string]*job // of all rounds, by id
	over      map[string]bool // those that Slurm has done with
	reminders []time.Time     // when the nodes are to tell what they run
	kills     []kill          // of a slurmctld with work not saved
}

// newWorld brings everything up, with controllers or without; nothing is left of it after
// the test.
func newWorld(t *testing.T, tuned bool) *world {
	t.Helper()
	options := slurmcluster.Options{Nodes: 2, CPUs: clusterCPUs, MemoryMB: clusterMemoryMB, Accounting: true}
	if err := slurmcluster.Available(options); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	dir, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tuned: tuned, story: fault.NewStory(t), dir: dir, exporter: filepath.Join(dir, "exporter.sock")}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	w.programs()
	options.JobSubmitLua, options.Files = w.plugin()
	options.TaskProlog = w.prolog()
	options.Lines = []string{
		// The exporter sees the jobs of every cluster on this machine, by their numbers.
		fmt.Sprintf("FirstJobId=%d", 1_000_000+os.Getpid()%50_000*1000+500*btoi(!tuned)),
		// A job whose end a node could not tell is asked for again after KillWait and twice
		// MessageTimeout, at the next full minute.
		"RequeueExitHold=85", "MinJobAge=600", "KillWait=3", "MessageTimeout=10", fmt.Sprintf("BatchStartTimeout=%d", int(batchStart.Seconds())),
		"PartitionName=" + ownPartition + " Nodes=ALL Default=YES MaxTime=INFINITE State=UP", "PartitionName=" + sitePartition + " Nodes=ALL MaxTime=INFINITE State=UP",
		"SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0",
	}
	c, err := slurmcluster.Start(t.Context(), options)
	w.c = slurmcluster.Need(t, c, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if tuned {
		w.startExporter()
	}
	if err := w.newBookmark(); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{slurmcluster.Alpha, slurmcluster.Beta} {
		w.owners = append(w.owners, newOwner(w, name, i == 1))
	}
	return w
}

// newBookmark submits the job that waits for ever.
func (w *world) newBookmark() (err error) {
	w.bookmark, err = w.run(slurmcluster.Alpha, "sbatch", "--parsable", "--hold", "--job-name=bookmark", "--partition="+ownPartition, "--wrap=true")
	return err
}

// programs builds what jobs and controllers run.
func (w *world) programs() {
	w.t.Helper()
	if err := sandbox.Build(w.t.Context(), w.dir, sandbox.Pitchpipe, sandbox.Exporter, sandbox.FaultJob); err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := copyFile(self, w.program("controller"), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) program(name string) string { return filepath.Join(w.dir, name) }

func copyFile(from, to string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, mode)
}

const scripts = "../../scripts/slurm"

// plugin is the shipped submission plugin as a site installs it.
func (w *world) plugin() (submit string, modules []string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, "lua")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // slurmctld reads it
		w.t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(scripts, "pitchpipe*.lua"))
	if err != nil || len(found) == 0 {
		w.t.Fatalf("modules of the plugin: %v, %v", found, err)
	}
	for _, f := range found {
		if err := copyFile(f, filepath.Join(dir, filepath.Base(f)), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	submit = filepath.Join(dir, "job_submit.lua")
	w.edit(filepath.Join(scripts, "job_submit.lua"), submit, "/etc/slurm/pitchpipe", dir)
	return submit, nil
}

// siteDir is the folder of the site's controller.
func (w *world) siteDir() string { return filepath.Join(w.dir, "state-site") }

// prolog is the shipped TaskProlog, once for each partition: the site's starts the
// listeners, too, and a user's own controller does that itself.
func (w *world) prolog() string {
	w.t.Helper()
	for partition, conf := range map[string]string{
		ownPartition: "owner_dir=" + settingsFolder + "\n",
		sitePartition: "site_dir=" + filepath.Join(w.siteDir(), filepath.Base(settingsFolder)) + "\nsite_user=" + slurmcluster.Controller +
			"\nexporter=" + w.exporter + "\nlistener=" + w.program("pitchpipe") + "\n",
	} {
		name := filepath.Join(w.dir, "prolog-"+partition)
		if err := os.WriteFile(name+".conf", []byte(conf), 0o644); err != nil { //nolint:gosec // all jobs read it
			w.t.Fatal(err)
		}
		w.edit(filepath.Join(scripts, "task_prolog"), name, "\nconf=/etc/pitchpipe/task_prolog.conf", "\nconf="+name+".conf")
		if err := os.Chmod(name, 0o755); err != nil { //nolint:gosec // it is a program
			w.t.Fatal(err)
		}
	}
	prolog := filepath.Join(w.dir, "task_prolog")
	text := "#!/bin/sh\nexec " + filepath.Join(w.dir, "prolog-") + "$SLURM_JOB_PARTITION\n"
	if err := os.WriteFile(prolog, []byte(text), 0o755); err != nil { //nolint:gosec // it is a program
		w.t.Fatal(err)
	}
	return prolog
}

// edit copies a text with one place of it changed.
func (w *world) edit(from, to, before, after string) {
	w.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(string(text), before) {
		w.t.Fatalf("%s does not hold %q", from, before)
	}
	if err := os.WriteFile(to, []byte(strings.Replace(string(text), before, after, 1)), 0o644); err != nil { //nolint:gosec // daemons read it
		w.t.Fatal(err)
	}
}

func (w *world) startExporter() {
	w.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.program("pitchpipe-exporter"), "--socket", w.exporter,
		"--web.listen-address=", "--sampling.interval=1s", "--sampling.discover=250ms", "--log.level=error", "--api.readers="+slurmcluster.Controller)
	sandbox.Start(w.t, "the exporter", filepath.Join(w.dir, "exporter.log"), cmd)
	meter := exporterapi.NewClient(w.exporter)
	defer meter.Close()
	await(w.t, "the exporter", func() error { _, err := meter.Node(w.t.Context()); return err })
}

// await waits for what must come, however loaded the machine is.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	sandbox.Await(t, time.Minute, what, ask)
}

// run runs a command in the cluster as a user, and once more where slurmctld did not
// answer.
func (w *world) run(user, program string, args ...string) (string, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		out, err := w.c.Run(w.t.Context(), user, program, args...)
		if err == nil || time.Now().After(end) || !unreached(err) {
			return out, err
		}
	}
}

// unreached tells of a command that slurmctld did not answer.
func unreached(err error) bool {
	for _, text := range []string{"connect failure", "Connection refused", "Socket timed out", "Zero Bytes", "Unable to contact", "Connection reset", "timed out"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
