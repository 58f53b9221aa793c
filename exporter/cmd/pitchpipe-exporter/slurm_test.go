package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/hostfs"
)

// With this variable the test binary is a step daemon that starts the job as the
// user whom the variable names, and waits for it.
const stepUser = "PITCHPIPE_TEST_STEP_USER"

func stepDaemon(user string) error {
	uid, err := strconv.ParseUint(user, 10, 32)
	if err != nil {
		return err
	}
	c := exec.Command("/proc/self/exe") //nolint:noctx // it ends with its work
	c.Stdin, c.Stderr = os.Stdin, os.Stderr
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, stepUser+"=") {
			c.Env = append(c.Env, entry)
		}
	}
	if uid != 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return c.Run()
}

// jobNumber is not used by a Slurm that may run on this machine.
func jobNumber(i int) string { return strconv.Itoa(3_900_000_000 + os.Getpid()*10 + i) }

// slurmLeaves makes the cgroups of a batch step as Slurm makes them under v1.
func slurmLeaves(t *testing.T, job string, uid int) (dirs []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	for _, h := range (hostfs.Root{}).Hierarchies() {
		if h.V2 || !h.Has("memory") && !h.Has("cpuacct") && !h.Has("freezer") {
			continue
		}
		parts := []string{"slurm_pptest-" + job, fmt.Sprintf("uid_%d", uid), "job_" + job, "step_batch", "task_0"}
		dir := h.Dir
		for _, part := range parts {
			dir = filepath.Join(dir, part)
			made := dir
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skipf("cannot make a cgroup: %v", err)
			}
			t.Cleanup(func() { _ = os.Remove(made) })
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) < 2 {
		t.Skip("no v1 hierarchies")
	}
	return dirs
}

func enter(t *testing.T, pid int, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASlurmJobInItsCgroupsIsSampledWithItsMarks(t *testing.T) {
	job := jobNumber(0)
	dirs := slurmLeaves(t, job, 1234)
	client, socket := exporter(t)
	pid, wait := start(t, socket, "SLURM_JOB_ID="+job, "SLURM_RESTART_COUNT=2")
	enter(t, pid, dirs)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs { // as Slurm does when the job is over
		for range 3 {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			dir = filepath.Dir(dir)
		}
	}
	w := ended(t, client, job, 3)
	if w.Job.Manager != "slurm" || w.Job.UID != 1234 || w.Schema != api.SchemaAccounting {
		t.Errorf("job %+v of schema %s, want Slurm's of user 1234 and schema %s", w.Job, w.Schema, api.SchemaAccounting)
	}
	if len(w.Job.Absent) != 1 || w.Job.Absent[0].Name != "perf" || w.Job.Absent[0].Reason == "" {
		t.Errorf("absent %+v, want perf with a reason", w.Job.Absent)
	}
	check(t, w, api.ColCPUSeconds, api.ColUserSeconds, api.ColPeak, api.ColJoules, api.ColReadChars)
}

func TestASlurmJobWithoutCgroupsIsFoundBelowItsStepDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being a step daemon needs root")
	}
	client, socket := exporter(t)
	job := jobNumber(5)
	// The job's user has to reach the program, and the exporter its socket.
	dir := t.TempDir()
	for _, at := range []string{dir, filepath.Dir(socket)} {
		for ; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
			if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // another user comes this way
				t.Fatal(err)
			}
		}
	}
	stepd := filepath.Join(dir, "slurmstepd")
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(stepd, program, 0o755) //nolint:gosec // it is a program
	}
	if err != nil {
		t.Fatal(err)
	}
	const uid = 65534
	c := exec.CommandContext(t.Context(), stepd)
	c.Args = []string{"slurmstepd: [" + job + ".batch]"}
	c.Env = append(os.Environ(), jobSocket+"="+socket, stepUser+"="+strconv.Itoa(uid), "SLURM_JOB_ID="+job)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	w := ended(t, client, job, 1)
	if w.Job.Manager != "slurm" || w.Job.UID != uid || w.Job.Cgroup != "" || w.Schema != api.SchemaAccounting {
		t.Errorf("job %+v of schema %s, want Slurm's of user %d without a cgroup", w.Job, w.Schema, uid)
	}
	check(t, w, api.ColCPUSeconds, api.ColVoluntary, api.ColReadChars, api.ColRSS)
}

func TestAProcessThatOnlyNamesASlurmJobIsInNone(t *testing.T) {
	client, socket := exporter(t)
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), reporter+"="+socket, "SLURM_JOB_ID=42", "SLURM_RESTART_COUNT=0")
	c.Args = []string{"slurmstepd: [42.batch]"}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), api.ErrDenied.Error()) {
		t.Errorf("got %v, %s; want it denied", err, out)
	}
	if _, err := client.Window(t.Context(), "42", 0, 0); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("job 42: got %v, want %v", err, api.ErrNotFound)
	}
}

// With this variable the test binary reports one epoch to the socket it names.
const reporter = "PITCHPIPE_TEST_REPORTER"

func reportOnce(socket string) error {
	client := api.NewClient(socket)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.Report(ctx, api.Report{Epoch: 1})
}
