package slurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/slurmcluster"
)

// What Slurm says about a job is what its owner asks for, whatever his script says.
func saidToSlurm(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	script := filepath.Join(b.dir, "train.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH -c 8\n#TUNE mode=apply\nexec sleep 600\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	submit := func(args ...string) driver.JobID {
		t.Helper()
		args = append(append([]string{"--parsable", "-p", b.partition, "--mem=10", "-o", "/dev/null", "-H"}, args...), script)
		return driver.JobID(mustRun(t, b.c, slurmcluster.Alpha, "sbatch", args...))
	}
	id := submit("-c", "4", "-t", "50")
	asks := func(when string, cores int, limit time.Duration) driver.Job {
		t.Helper()
		job := b.get(t, id)
		if job.Resources.Cores != cores || job.Resources.TimeLimit != limit || !strings.Contains(string(job.Source), "-c 8") {
			t.Errorf("%s: %d cores for %v, want %d for %v", when, job.Resources.Cores, job.Resources.TimeLimit, cores, limit)
		}
		return job
	}
	asks("as it was submitted", 4, 50*time.Minute)
	mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "update", "JobId="+string(id), "NumCPUs=3", "CpusPerTask=3", "TimeLimit=40")
	asks("as its owner changed it", 3, 40*time.Minute)
	mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "release", string(id))
	await(t, "it runs", func() bool { return b.get(t, id).State == driver.Running })
	asks("as it runs", 3, 40*time.Minute)
	if out, err := b.d.Outlook(t.Context(), id); err != nil || out.Wait == nil || out.Crowded != "" {
		t.Errorf("outlook %+v, %v; want to know how long a restart would wait", out, err)
	}
	mustRun(t, b.c, "root", "scontrol", "suspend", string(id))
	await(t, "two seconds of it", func() bool {
		since := strings.TrimSpace(mustRun(t, b.c, "root", "squeue", "-h", "-j", string(id), "-t", "SUSPENDED", "-o", "%M %S"))
		ran, started, ok := strings.Cut(since, " ")
		at, err := time.ParseInLocation("2006-01-02T15:04:05", started, time.Local)
		run, err2 := time.Parse("4:05", ran)
		return ok && errors.Join(err, err2) == nil && time.Since(at)-run.Sub(run.Truncate(time.Hour)) > 2*time.Second
	})
	mustRun(t, b.c, "root", "scontrol", "resume", string(id))
	job := asks("as it runs again", 3, 40*time.Minute)
	if a := job.Attempts[0]; a.CPUs != 3 || a.Suspended < time.Second || a.Suspended > time.Since(a.Started) {
		t.Errorf("the attempt had %d CPUs and was suspended for %v, want 3 and more than a second", a.CPUs, a.Suspended)
	}
	mustRun(t, b.c, slurmcluster.Alpha, "scancel", string(id))

	plain := driver.JobID(mustRun(t, b.c, slurmcluster.Alpha, "sbatch", "--parsable", "-p", b.partition, "--mem=10", "-o", "/dev/null", "-H", "--wrap", "exec sleep 600"))
	mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "update", "JobId="+string(plain), "NumCPUs=3")
	if got := b.get(t, plain).Resources.Cores; got != 3 {
		t.Errorf("of a job without an option its owner asks for %d cores, want 3", got)
	}
	mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "release", string(plain))
	await(t, "it runs", func() bool { return b.get(t, plain).State == driver.Running })
	if got := b.get(t, plain); got.Resources.Cores != 3 || got.Attempts[0].CPUs != 3 {
		t.Errorf("as it runs its owner asks for %d cores, and it has %d CPUs; want 3", got.Resources.Cores, got.Attempts[0].CPUs)
	}
	mustRun(t, b.c, slurmcluster.Alpha, "scancel", string(plain))

	late := submit("--deadline=now+2hours", "-t", "5")
	if err := b.d.Check(t.Context(), b.intent(b.get(t, late), driver.Change{Cores: 1})); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "--deadline") {
		t.Errorf("Check of a job with a deadline: %v, want %v", err, driver.ErrUnsupported)
	}
}
