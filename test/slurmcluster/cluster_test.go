package slurmcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	sandbox.Await(t, 90*time.Second, what, ask)
}

func run(t *testing.T, c *slurmcluster.Cluster, user, program string, args ...string) string {
	t.Helper()
	out, err := c.Run(t.Context(), user, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// submit submits a script as the user and returns the job's id.
func submit(t *testing.T, c *slurmcluster.Cluster, user, script string, args ...string) string {
	t.Helper()
	f, err := os.CreateTemp(c.Home(user), "*.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("#!/bin/sh\n" + script); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Chmod(0o755), f.Close()); err != nil {
		t.Fatal(err)
	}
	out := run(t, c, user, "sbatch", append(append([]string{"--parsable"}, args...), f.Name())...)
	id, _, _ := strings.Cut(out, ";")
	return id
}

func field(t *testing.T, c *slurmcluster.Cluster, id, name string) string {
	t.Helper()
	for word := range strings.FieldsSeq(run(t, c, "slurm", "scontrol", "show", "job", id)) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	t.Fatalf("job %s has no %s", id, name)
	return ""
}

func awaitField(t *testing.T, c *slurmcluster.Cluster, id, name, want string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			out, err := c.Run(context.WithoutCancel(t.Context()), "slurm", "scontrol", "show", "job", id)
			t.Logf("job %s: %s %v%s", id, out, err, c.Logs())
		}
	})
	await(t, "job "+id, func() error {
		if got := field(t, c, id, name); got != want {
			return fmt.Errorf("%s is %s, want %s", name, got, want)
		}
		return nil
	})
}

func TestTwoUsersSubmitAndSacctKnowsBoth(t *testing.T) {
	t.Parallel()
	c := shared.Get(t)
	for user, account := range map[string]string{slurmcluster.Alpha: slurmcluster.AlphaAccount, slurmcluster.Beta: slurmcluster.BetaAccount} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			id := submit(t, c, user, "id -un; id -G; pwd; echo $SLURMD_NODENAME\nexit 3\n", "--output=said")
			awaitField(t, c, id, "JobState", "FAILED")
			said, err := os.ReadFile(filepath.Join(c.Home(user), "said"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(said)), "\n")
			if len(lines) != 4 || lines[0] != user || strings.Contains(" "+lines[1]+" ", " 0 ") || lines[2] != c.Home(user) || !slices.Contains(c.Nodes(), lines[3]) {
				t.Errorf("the job said %q", lines)
			}
			await(t, "accounting", func() error {
				got := run(t, c, user, "sacct", "-n", "-P", "-X", "-j", id, "-o", "user,account,state,exitcode")
				if want := user + "|" + account + "|FAILED|3:0"; got != want {
					return fmt.Errorf("sacct says %q, want %q", got, want)
				}
				return nil
			})
		})
	}
}

func TestTheAccountOfASitesControllerHasNoRightOverJobs(t *testing.T) {
	t.Parallel()
	c := shared.Get(t)
	for user, want := range map[string]string{slurmcluster.Controller: "None", slurmcluster.Operator: "Operator", slurmcluster.Alpha: "None"} {
		if got := run(t, c, "slurm", "sacctmgr", "-n", "-P", "show", "user", user, "format=adminlevel"); got != want {
			t.Errorf("admin level of %s: %q, want %q", user, got, want)
		}
	}
	id := submit(t, c, slurmcluster.Alpha, "true\n", "--hold")
	for _, args := range [][]string{{"update", "JobId=" + id, "TimeLimit=1"}, {"release", id}} {
		if out, err := c.Run(t.Context(), slurmcluster.Controller, "scontrol", args...); err == nil {
			t.Errorf("scontrol %s was done: %q", strings.Join(args, " "), out)
		}
	}
	// scontrol ends well where it may not read a script.
	if out, err := c.Run(t.Context(), slurmcluster.Controller, "scontrol", "write", "batch_script", id, "-"); out != "" {
		t.Errorf("the script was read: %q, %v", out, err)
	}
	run(t, c, slurmcluster.Alpha, "scancel", id)
}

func TestARequeuedJobKeepsItsIDAndItsDependantRunsOnceAfterIt(t *testing.T) {
	t.Parallel()
	c := shared.Get(t)
	// The first attempt waits to be taken back, the second ends.
	id := submit(t, c, slurmcluster.Alpha, "echo attempt ${SLURM_RESTART_COUNT:-0}\n[ -n \"$SLURM_RESTART_COUNT\" ] || exec sleep 600\n", "--output=requeued", "--open-mode=append")
	after := submit(t, c, slurmcluster.Alpha, "echo after\n", "--output=after", "--open-mode=append", "--dependency=afterok:"+id)
	said := func(name string) string {
		text, err := os.ReadFile(filepath.Join(c.Home(slurmcluster.Alpha), name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	await(t, "the first attempt", func() error {
		if said("requeued") != "attempt 0\n" {
			return fmt.Errorf("said %q", said("requeued"))
		}
		return nil
	})
	run(t, c, slurmcluster.Alpha, "scontrol", "requeuehold", "Incomplete", id)
	awaitField(t, c, id, "JobState", "PENDING")
	if _, err := c.Run(t.Context(), slurmcluster.Beta, "scontrol", "release", id); err == nil {
		t.Error("another user released the job")
	}
	// Slurm counts in seconds when it tells the new attempt from the one that was
	// ended: one that starts in the same second is killed, and the job has failed.
	run(t, c, slurmcluster.Alpha, "scontrol", "update", "JobId="+id, "StartTime=now+3")
	run(t, c, slurmcluster.Alpha, "scontrol", "release", id)
	awaitField(t, c, id, "JobState", "COMPLETED")
	awaitField(t, c, after, "JobState", "COMPLETED")
	if got := field(t, c, id, "Restarts"); got != "1" {
		t.Errorf("restarts %s", got)
	}
	if got := said("requeued"); !strings.HasPrefix(got, "attempt 0\n") || !strings.HasSuffix(got, "attempt 1\n") {
		t.Errorf("the job said %q", got)
	}
	if got := said("after"); got != "after\n" {
		t.Errorf("the dependant said %q", got)
	}
}

func TestNothingListensBeyondLoopback(t *testing.T) {
	t.Parallel()
	c := shared.Get(t)
	for name, pid := range c.Daemons() {
		// The table is the same for all; which sockets are the daemon's, its fds say.
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
		if err != nil {
			t.Fatal(err)
		}
		own := sockets(t, pid)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && slices.Contains(own, f[9]) && !strings.HasPrefix(f[1], "0100007F:") {
				t.Errorf("%s listens on %s", name, f[1])
			}
		}
	}
}

// sockets are the inodes of a process's sockets.
func sockets(t *testing.T, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			out = append(out, strings.TrimSuffix(inode, "]"))
		}
	}
	return out
}

// gone fails the test where something of the cluster is still there.
func gone(t *testing.T, dir string, nodes []string) {
	t.Helper()
	if rest := slurmcluster.Leftovers(dir, nodes); len(rest) > 0 {
		t.Errorf("left behind: %q", rest)
	}
}

func TestStopLeavesNothingWhileJobsRunAndAfterFaults(t *testing.T) {
	t.Parallel()
	for name, track := range map[string]slurmcluster.Track{"as the machine has it": slurmcluster.TrackAuto, "without cgroups": slurmcluster.TrackLinux} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, err := slurmcluster.Start(t.Context(), slurmcluster.Options{Track: track, Lines: []string{"KillWait=7"}})
			c := slurmcluster.Need(t, started, err)
			defer func() {
				if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			if conf := run(t, c, slurmcluster.Beta, "scontrol", "show", "config"); !strings.Contains(conf, "KillWait                = 7 sec") {
				t.Error("the line for slurm.conf is not in force")
			}
			// Its own session and group, so that only Slurm or the harness finds it.
			id := submit(t, c, slurmcluster.Alpha, "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >pid; while :; do sleep 1; done' &\nexec sleep 600\n")
			var pid int
			await(t, "the job", func() error {
				text, err := os.ReadFile(filepath.Join(c.Home(slurmcluster.Alpha), "pid"))
				if err != nil {
					return err
				}
				_, err = fmt.Sscan(string(text), &pid)
				return err
			})
			// A slurmctld that is killed before it has saved the job, which it does every five seconds,
			// forgets it, and makes it end.
			time.Sleep(7 * time.Second)
			c.KillCtld()
			if _, err := c.Run(t.Context(), slurmcluster.Alpha, "scontrol", "ping"); err == nil {
				t.Error("slurmctld answers although it was killed")
			}
			if err := c.StartCtld(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.StartCtld(t.Context()); err == nil {
				t.Error("slurmctld was started twice")
			}
			c.KillNode(0)
			if err := errors.Join(c.StartNode(t.Context(), 0), c.Ready(t.Context())); err != nil {
				t.Fatal(err)
			}
			if track == slurmcluster.TrackLinux {
				c.StopCtld()
			}
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("job %s, process %d: %v; slurmd or slurmctld took it along", id, pid, err)
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			gone(t, c.Dir(), c.Nodes())
			await(t, "the job's process", func() error {
				if err := syscall.Kill(pid, 0); err == nil && !sandbox.Dead(pid) {
					return fmt.Errorf("process %d lives", pid)
				}
				return nil
			})
		})
	}
}

func TestAClusterWhoseOwnerWasKilledIsClearedAwayByTheNext(t *testing.T) {
	t.Parallel()
	if err := slurmcluster.Available(slurmcluster.Options{}); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	programs := t.TempDir()
	if err := sandbox.Build(t.Context(), programs, "test/slurmcluster/cmd/slurmcluster"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "slurmcluster"), "-nodes", "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var conf string
	if _, err := fmt.Fscanf(out, "export SLURM_CONF=%s\n", &conf); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(filepath.Dir(conf))
	nodes := []string{"pp" + strings.TrimPrefix(filepath.Base(dir), "ppslurm") + "n1"}
	if rest := slurmcluster.Leftovers(dir, nodes); len(rest) < 4 {
		t.Fatalf("the cluster consists of %q", rest)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if rest := slurmcluster.Leftovers(dir, nodes); len(rest) < 4 {
		t.Fatalf("nothing to clear away: %q", rest)
	}
	started, err := slurmcluster.Start(t.Context(), slurmcluster.Options{})
	c := slurmcluster.Need(t, started, err)
	gone(t, dir, nodes)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Dir(), c.Nodes())
}

func TestOptionsThatContradictThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	if err := slurmcluster.Available(slurmcluster.Options{}); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	for name, o := range map[string]slurmcluster.Options{
		"no nodes":          {Nodes: -1},
		"a line of no key":  {Lines: []string{"KillWait"}},
		"a line of comment": {Lines: []string{"# KillWait=3"}},
	} {
		if c, err := slurmcluster.Start(t.Context(), o); !errors.Is(err, slurmcluster.ErrOptions) {
			t.Errorf("%s: %v", name, err)
			if c != nil {
				_ = c.Stop(t.Context())
			}
		}
	}
}

func TestABringUpThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	if err := slurmcluster.Available(slurmcluster.Options{}); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{Lines: []string{"SelectType=select/none_such"}})
	if err == nil {
		_ = c.Stop(t.Context())
		t.Fatal("Slurm started with a plugin that does not exist")
	}
	if !strings.Contains(err.Error(), "none_such") {
		t.Errorf("the error does not say why: %v", err)
	}
}
