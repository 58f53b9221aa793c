package broker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
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

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uidOf(t, name), Gid: uint32(gid)}
}

// aDriver moves a user's job with a driver whose commands have no rights over it, by
// the hand of a broker, and back.
func aDriver(t *testing.T, s *site) {
	b := s.broker(t, "driver", nil)
	output := filepath.Join(s.Home(slurmcluster.Alpha), "moved.out")
	id := s.submit(t, slurmcluster.Alpha, true, "-c", "2", "--mem=200", "-t", "60", "-o", output,
		s.script(t, "#!/bin/bash\n#TUNE mode=apply\ntrap 'echo saved' USR1\necho here\nwhile true; do sleep 0.2; done\n"))
	d, err := slurm.New(t.Context(), slurm.Config{
		Dir: filepath.Join(t.TempDir(), "state"), User: slurmcluster.Controller, Everyone: true, Marked: true, Parse: detect.For("slurm"),
		Commands: command.Exec{Conf: s.Conf(), Credential: credential(t, slurmcluster.Controller)}, Actor: broker.NewClient(b.role.Socket),
		Saves: func(context.Context, string, driver.JobID, int) (api.Saves, error) { // what the listener inside the job would tell
			text, err := os.ReadFile(output)
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
		s.run(t, slurmcluster.Alpha, "scancel", id)
	}()
	begun := 0
	// advance makes the driver follow one intent to its end.
	advance := func(name string, cores int, discard bool) error {
		begun++
		s.said(t, output, begun)
		job, err := d.Get(t.Context(), driver.JobID(id))
		if err != nil || job.Owner != slurmcluster.Alpha || job.State != driver.Running {
			t.Fatalf("the job is %+v, %v", job, err)
		}
		in := driver.Intent{
			ID: name, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: driver.Change{Cores: cores},
			Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Done: "saved"}, Discard: discard,
		}
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			step, err := d.Advance(t.Context(), in)
			switch {
			case err != nil && !errors.Is(err, driver.ErrTransient):
				return err
			case step.Kind == driver.StepStarted:
				return nil
			case step.Kind == driver.StepAbandoned, step.Kind == driver.StepSuperseded, time.Now().After(deadline):
				t.Fatalf("to %d cores: %+v, %v", cores, step, err)
			}
		}
	}
	for i, cores := range []int{1, 2, 1, 2} {
		if err := advance(strconv.Itoa(i), cores, i == 2); err != nil {
			t.Fatal(err)
		}
		s.until(t, id, "JobState", "RUNNING")
		if got, restarts := s.field(t, id, "CPUs/Task"), s.field(t, id, "Restarts"); got != strconv.Itoa(cores) || restarts != strconv.Itoa(i+1) {
			t.Errorf("the job has %s cores a task after %s restarts, want %d after %d", got, restarts, cores, i+1)
		}
	}
	// More than its user asked for is nothing that the broker does, and the job runs on.
	refused(t, "four cores of two", advance("more", 4, false), driver.ErrDenied, "more than the 2 that its owner asked for")
	s.until(t, id, "JobState", "RUNNING")
	if got := s.field(t, id, "CPUs/Task"); got != "2" {
		t.Errorf("the job has %s cores a task, want 2", got)
	}
	text, err := os.ReadFile(output)
	if err != nil || bytes.Count(text, []byte("saved")) != 3 {
		t.Errorf("the job says %q, %v; want that it saved thrice and was discarded once", text, err)
	}
}
