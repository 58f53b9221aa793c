package attrib_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/slurmcluster"
)

// Where Slurm makes no cgroups, scontrol listpids asks the step daemons for the
// processes of a job. The scanner asks no one and starts nothing: it has to find the
// same ones.
func TestWithoutCgroupsTheProcessesOfAJobAreThoseThatSlurmLists(t *testing.T) {
	t.Parallel()
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{Track: slurmcluster.TrackLinux})
	slurmcluster.Need(t, c, err)
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	script := "#!/bin/sh\nsleep 600 &\n(sleep 600; true) &\nsrun --overlap sh -c 'sleep 600 & wait' &\nwait\n"
	cmd, err := c.Command(t.Context(), slurmcluster.Alpha, "sbatch", "--parsable", "--output=/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sbatch: %v: %s", err, out)
	}
	id := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := c.Run(context.WithoutCancel(t.Context()), "root", "scancel", id); err != nil {
			t.Errorf("scancel: %v: %s", err, out)
		}
	})

	scanner := attrib.NewScanner(hostfs.Root{}, attrib.TrustNone)
	var listed, found []int
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		listed, found = listPids(t, c, id), nil
		for _, f := range scanner.Scan(t.Context()) {
			if f.Key.Manager == "slurm" && f.Key.ID == id {
				found = slices.DeleteFunc(f.Pids, isDaemon)
			}
		}
		slices.Sort(found)
		// The shell, its two sleeps, the subshell, srun (two of it), and the step's two.
		if len(listed) >= 8 && slices.Equal(listed, found) {
			return
		}
	}
	t.Errorf("Slurm lists %v, the scanner found %v:\n%s", listed, found, titles(append(listed, found...)))
}

// listPids reads scontrol listpids: PID JOBID STEPID LOCALID GLOBALID, and a line
// for each step daemon itself, which is none of the job's.
func listPids(t *testing.T, c *slurmcluster.Cluster, id string) []int {
	t.Helper()
	out, err := c.Run(t.Context(), "root", "scontrol", "listpids", id, c.Nodes()[0])
	if err != nil {
		return nil // the job has not begun
	}
	var pids []int
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		pid, err := strconv.Atoi(f[0])
		if err != nil || pid <= 0 || isDaemon(pid) {
			continue
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func isDaemon(pid int) bool { return strings.HasPrefix(titles([]int{pid}), "slurmstepd: ") }

func titles(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil {
			fmt.Fprintf(&b, "%s (%d)\n", strings.TrimSpace(strings.ReplaceAll(string(title), "\x00", " ")), pid)
		}
	}
	return b.String()
}
