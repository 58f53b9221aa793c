package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/exporter/api"
	"pitchpipe/test/slurmcluster"
)

// array submits one whose tasks say that they saved when they are asked to, into a file
// each.
func (s *site) array(t *testing.T, user, set string, args ...string) (tasks []string, output func(task string) string) {
	t.Helper()
	id := s.submit(t, user, true, append(args, "--array="+set, "-c", "2", "--mem=200", "-t", "60", "-o", filepath.Join(s.Home(user), "array-%a.out"),
		s.script(t, "#!/bin/bash\n#TUNE mode=apply\ntrap 'echo saved' USR1\necho here\nwhile true; do sleep 0.2; done\n"))...)
	for i := range 3 {
		tasks = append(tasks, fmt.Sprintf("%s_%d", id, i+1))
	}
	return tasks, func(task string) string {
		_, n, _ := strings.Cut(task, "_")
		return filepath.Join(s.Home(user), "array-"+n+".out")
	}
}

// anArray: a driver whose commands have no rights moves one task of a user's array while
// another runs and a third waits, by the hand of a broker, and leaves those and the
// other user's array alone.
func anArray(t *testing.T, s *site) {
	b := s.broker(t, "array", nil)
	tasks, output := s.array(t, slurmcluster.Alpha, "1-3%2")
	others, theirs := s.array(t, slurmcluster.Beta, "1-3%2")
	for _, i := range []int{0, 1} {
		s.said(t, output(tasks[i]), 1)
		s.said(t, theirs(others[i]), 1)
	}
	for _, name := range []string{strings.TrimSuffix(tasks[0], "_1"), s.field(t, tasks[1], "ArrayJobId") + "_9"} {
		if err := b.controller(t, role{Verb: "signal", Job: name, Signal: "SIGUSR1"}); !errors.Is(err, driver.ErrInvalid) && !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("a signal to %s: %v, want that there is no such job", name, err)
		}
	}
	d, err := slurm.New(t.Context(), slurm.Config{
		Dir: filepath.Join(t.TempDir(), "state"), User: slurmcluster.Controller, Everyone: true, Marked: true, Parse: detect.For("slurm"),
		Commands: command.Exec{Conf: s.Conf(), Credential: credential(t, slurmcluster.Controller)}, Actor: broker.NewClient(b.role.Socket),
		Saves: func(context.Context, string, driver.JobID, int) (api.Saves, error) { // what the listener inside the task would tell
			text, err := os.ReadFile(output(tasks[0]))
			return api.Saves{Count: bytes.Count(text, []byte("saved"))}, err
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		s.run(t, slurmcluster.Alpha, "scancel", strings.TrimSuffix(tasks[0], "_1"))
		s.run(t, slurmcluster.Beta, "scancel", strings.TrimSuffix(others[0], "_1"))
	}()
	jobs, err := d.List(t.Context())
	if err != nil || len(jobs) < 6 {
		t.Errorf("%d jobs (%v), want the tasks of two arrays at least", len(jobs), err)
	}
	const same = "ArrayJobID:|,ArrayTaskID:|,UserID:|,Account:|,WorkDir:|"
	identity := func(task string) string {
		return s.run(t, "root", "squeue", "-h", "-a", "-r", "-t", "all", "-j", task, "-O", same)
	}
	of := func(task string) string {
		return s.run(t, "root", "squeue", "-h", "-a", "-r", "-t", "all", "-j", task, "-O", same+",JobID:|,NumCPUs:|,RestartCnt:|,State:|")
	}
	before, second, waits, foreign := identity(tasks[0]), of(tasks[1]), identity(tasks[2]), of(others[0])
	number := s.run(t, "root", "squeue", "-h", "-r", "-j", tasks[0], "-O", "JobID:")

	advance := func(task string) {
		t.Helper()
		job, err := d.Get(t.Context(), driver.JobID(task))
		if err != nil || job.Owner != slurmcluster.Alpha || len(job.Source) == 0 {
			t.Fatalf("the task is %+v, %v", job, err)
		}
		in := driver.Intent{
			ID: "move " + task, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: driver.Change{Cores: 1},
			Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Done: "saved"},
		}
		if err := d.Check(t.Context(), in); err != nil {
			t.Fatalf("Check of %s: %v", task, err)
		}
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			step, err := d.Advance(t.Context(), in)
			switch {
			case err != nil && !errors.Is(err, driver.ErrTransient):
				t.Fatal(err)
			case step.Kind == driver.StepStarted:
				return
			case step.Kind == driver.StepAbandoned, step.Kind == driver.StepSuperseded, time.Now().After(deadline):
				t.Fatalf("%s: %+v, %v", task, step, err)
			}
		}
	}
	advance(tasks[2]) // it waits
	if got := s.field(t, tasks[2], "CPUs/Task"); got != "1" {
		t.Errorf("the task that waits has %s cores, want 1", got)
	}
	advance(tasks[0]) // it runs, and leaves its turn to the third
	s.until(t, tasks[2], "JobState", "RUNNING")
	if got := of(tasks[1]); got != second {
		t.Errorf("a task that was not moved was %q and is %q", second, got)
	}
	s.run(t, slurmcluster.Alpha, "scancel", tasks[1])
	s.until(t, tasks[0], "JobState", "RUNNING")
	if cores, restarts := s.field(t, tasks[0], "CPUs/Task"), s.field(t, tasks[0], "Restarts"); cores != "1" || restarts != "1" {
		t.Errorf("the task has %s cores after %s restarts, want 1 after 1", cores, restarts)
	}
	if after := s.run(t, "root", "squeue", "-h", "-r", "-j", tasks[0], "-O", "JobID:"); after != number || identity(tasks[0]) != before || identity(tasks[2]) != waits {
		t.Errorf("the task was %s %q and is %s %q", number, before, after, identity(tasks[0]))
	}
	if got := of(others[0]); got != foreign {
		t.Errorf("the other user's task was %q and is %q", foreign, got)
	}
	for _, path := range []string{output(tasks[1]), output(tasks[2]), theirs(others[0]), theirs(others[1])} {
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("saved")) {
			t.Errorf("%s: %q (%v): a task that was not moved was asked to save", filepath.Base(path), text, err)
		}
	}
}

// anArraysLimit: of tasks that wait with a size of the broker's each counts.
func anArraysLimit(t *testing.T, s *site) {
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=3")
	b := s.broker(t, "array-limit", nil)
	tasks, _ := s.array(t, slurmcluster.Beta, "1-3", "-H")
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if strings.Contains(s.run(t, "root", "scontrol", "-o", "show", "assoc_mgr", "flags=assoc"), "GrpTRES=cpu=3(0)") {
			break
		}
	}
	b.must(t, role{Verb: "update", Job: tasks[0], Update: size(1, 0, 0)})
	b.must(t, role{Verb: "update", Job: tasks[0], Update: size(2, 0, 0)})
	b.must(t, role{Verb: "update", Job: tasks[2], Update: size(1, 0, 0)})
	err = b.controller(t, role{Verb: "update", Job: tasks[1], Update: size(1, 0, 0)})
	refused(t, "one core beside three that wait", err, driver.ErrDenied, "GrpTRES=cpu 3, of which other jobs use 3, and the job would add 1")
	for task, want := range map[string]string{tasks[0]: "2", tasks[1]: "2", tasks[2]: "1"} {
		if got := s.field(t, task, "CPUs/Task"); got != want {
			t.Errorf("task %s has %s cores, want %s", task, got, want)
		}
	}
	s.run(t, slurmcluster.Beta, "scancel", strings.TrimSuffix(tasks[0], "_1"))
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=-1")
}
