package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pitchpipe/jobspecs"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// Partitions. Each mode has its own, so that the two controllers keep apart; a job
// that waits for another has its own partition, because Slurm adds the time limit of
// every waiting job of a partition to what it foretells for the next one. Plain is no
// one's.
const (
	ownerPartition = "own"
	sitePartition  = "site"
	laterPartition = "later"
	plainPartition = "plain"
)

// prefix begins the names of the folders below /tmp.
const prefix = "ppslurm-e2e-"

// repository is the top of the sources.
const repository = "../../.."

// world is what all tests share: the cluster and the programs.
type world struct {
	cluster slurmcluster.Shared

	once sync.Once
	dir  string // open to every user
	err  error

	table string // made by the last test

	clusterDir string
	nodes      []string
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// get makes the programs and starts the cluster, once.
func (w *world) get(t *testing.T) *slurmcluster.Cluster {
	t.Helper()
	if err := slurmcluster.Available(slurmcluster.Options{Accounting: true}); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	w.once.Do(func() { w.err = w.make() })
	if w.err != nil {
		t.Fatal(w.err)
	}
	c := w.cluster.Get(t)
	w.remember(c)
	return c
}

// stop takes the cluster down and removes what make made.
func (w *world) stop(ctx context.Context) error {
	err := w.cluster.Stop(ctx)
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

func (w *world) make() (err error) {
	if err := sweep(); err != nil {
		return fmt.Errorf("clear away a dead run: %w", err)
	}
	if w.dir, err = os.MkdirTemp("/tmp", prefix); err != nil {
		return err
	}
	if err := os.WriteFile(w.path("owner"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(w.dir, 0o755); err != nil { //nolint:gosec // other users run what is in it
		return err
	}
	if err := sandbox.Build(context.Background(), w.dir, sandbox.Pitchpipe, sandbox.Exporter, sandbox.Workload, sandbox.FaultJob); err != nil {
		return err
	}
	if err := errors.Join(copySelf(w.path("roles")), w.jobs(), w.plugin(), w.prolog(), w.hook()); err != nil {
		return err
	}
	// Each node says it has more CPUs than the machine, so that jobs, which mostly
	// wait, do not wait for each other.
	w.cluster.Options = slurmcluster.Options{
		Accounting: true, Nodes: 2, CPUs: 16,
		JobSubmitLua: w.path("job_submit.lua"), TaskProlog: w.path("task_prolog"),
		Lines: []string{
			"RequeueExitHold=85", "PrologSlurmctld=" + w.path("wake"), "EpilogSlurmctld=" + w.path("wake"), "PartitionName=" + plainPartition + " Nodes=ALL Default=YES State=UP",
			"PartitionName=" + ownerPartition + " Nodes=ALL State=UP", "PartitionName=" + sitePartition + " Nodes=ALL State=UP",
			"PartitionName=" + laterPartition + " Nodes=ALL State=UP",
		},
	}
	return nil
}

func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755) //nolint:gosec // it is a program
}

// jobs are the job files that ship, where every user can read them.
func (w *world) jobs() error { return os.CopyFS(w.path("jobspecs"), jobspecs.Files()) }

// plugin installs the shipped submission plugin as its README.md says, in a folder of
// this test.
func (w *world) plugin() error {
	modules, err := filepath.Glob(filepath.Join(repository, "scripts/slurm", "pitchpipe*.lua"))
	if err != nil || len(modules) == 0 {
		return fmt.Errorf("no modules of the plugin: %w", err)
	}
	if err := os.Mkdir(w.path("lua"), 0o755); err != nil { //nolint:gosec // slurmctld reads it
		return err
	}
	for _, from := range modules {
		if err := w.install(from, w.path("lua", filepath.Base(from)), 0o644); err != nil {
			return err
		}
	}
	return w.install(filepath.Join(repository, "scripts/slurm/job_submit.lua"), w.path("job_submit.lua"), 0o644, `"/etc/slurm/pitchpipe"`, strconv.Quote(w.path("lua")))
}

// prolog installs the shipped task prolog once for each mode: the site's own prolog
// calls the one of the job's partition, and notes when each attempt began.
func (w *world) prolog() error {
	settings := w.path("site-settings")
	if err := errors.Join(os.Mkdir(settings, 0o755), give(settings, slurmcluster.Controller)); err != nil { //nolint:gosec // jobs read it
		return err
	}
	for mode, conf := range map[string]string{
		ownerPartition: "owner_dir=" + ownerDir + "/settings\n",
		sitePartition: "site_dir=" + settings + "\nsite_user=" + slurmcluster.Controller + "\n" +
			"exporter=" + w.path("exporter.sock") + "\nlistener=" + w.path("pitchpipe") + "\n",
	} {
		if err := os.WriteFile(w.path(mode+".conf"), []byte(conf), 0o644); err != nil { //nolint:gosec // jobs read it
			return err
		}
		err := w.install(filepath.Join(repository, "scripts/slurm/task_prolog"), w.path("prolog-"+mode), 0o755,
			"\nconf=/etc/pitchpipe/task_prolog.conf\n", "\nconf="+w.path(mode+".conf")+"\n",
			"timeout -s KILL 1 ", "timeout -s KILL 60 ") // a machine that runs tests may be slow
		if err != nil {
			return err
		}
	}
	text := "#!/bin/sh\ndate +%s.%N >>\"$HOME/$SLURM_JOB_ID.began\"\nprolog=" + w.path("prolog-") + "$SLURM_JOB_PARTITION\n[ ! -x \"$prolog\" ] || exec \"$prolog\"\n"
	return os.WriteFile(w.path("task_prolog"), []byte(text), 0o755) //nolint:gosec // it is a program
}

// hook installs the shipped hook, which wakes both controllers when a job begins or ends.
func (w *world) hook() error {
	if err := errors.Join(os.Mkdir(w.path("hooks"), 0o755), give(w.path("hooks"), "slurm")); err != nil { //nolint:gosec // controllers watch it
		return err
	}
	return w.install(filepath.Join(repository, "scripts/slurm/wake"), w.path("wake"), 0o755, "/run/pitchpipe-wake/wake", w.path("hooks", "wake"))
}

// give makes a folder a user's.
func give(path, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// install copies a file with some of its text replaced, each exactly once.
func (w *world) install(from, to string, mode os.FileMode, replace ...string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if strings.Count(text, replace[i]) != 1 {
			return fmt.Errorf("%s holds %q %d times", from, replace[i], strings.Count(text, replace[i]))
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return os.WriteFile(to, []byte(text), mode)
}
