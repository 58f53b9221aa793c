package slurm_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// asSite is the driver of a site, with a user's rights for what only users do: they
// submit their jobs and cancel them. What it sees and changes it sees and changes as
// the driver of a site, through a broker.
type asSite struct {
	*slurm.Driver
	owner *slurm.Driver
	word  func(id driver.JobID) error // that the owner may put into a job's comment
}

// Capabilities are those of the site, where someone submits.
func (s asSite) Capabilities() driver.Capabilities {
	c := s.Driver.Capabilities()
	c.UsersSubmit = false
	return c
}

// Start submits as the user, who says that a wait may be ended.
func (s asSite) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	job, err := s.owner.Start(ctx, id, spec)
	if err != nil {
		return job, err
	}
	if !spec.NotBefore.IsZero() {
		if err := s.word(job.ID); err != nil {
			return job, err
		}
	}
	return s.Driver.Get(ctx, job.ID)
}

// Stop is scancel by the user.
func (s asSite) Stop(ctx context.Context, id driver.JobID) error { return s.owner.Stop(ctx, id) }

// Logs are the user's to read.
func (s asSite) Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	return s.owner.Logs(ctx, id, offset)
}

// site is a harness whose driver sees everybody's jobs and acts through a broker with
// the rights of an Operator.
func (b *bench) site(t *testing.T) drivertest.Harness {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	operator := command.Exec{Conf: b.c.Conf(), Credential: credential(t, slurmcluster.Operator)}
	accepted := func(name string, _ []byte) (broker.Stanza, error) {
		all := broker.Knob{Min: 1, Max: 1 << 50}
		return broker.Stanza{Apply: name != drivertest.Untuned, Signal: "SIGUSR1", Exit: savedExit, Done: true, Cores: all, Memory: all}, nil
	}
	server, err := broker.New(broker.Config{
		Socket: socket, Dir: filepath.Join(dir, "broker"), Actor: slurmctl.Commands{Runner: operator}, Runner: operator,
		Above: []string{b.partition}, Advice: []string{b.partition}, Logger: b.cfg.Logger, Script: accepted,
	})
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Beside(t, "the broker", server.Run)

	cfg := b.cfg
	cfg.User, cfg.Everyone, cfg.Marked = "", true, true
	cfg.Dir = filepath.Join(dir, "state")
	cfg.Commands = command.Exec{Conf: b.c.Conf(), Credential: credential(t, slurmcluster.Beta)} // any ordinary account
	cfg.Actor = broker.NewClient(socket)
	cfg.Saves = func(_ context.Context, _ string, job driver.JobID, _ int) (api.Saves, error) {
		name := job
		if task, err := b.c.Run(t.Context(), "root", "squeue", "-h", "-a", "-r", "-t", "all", "-o", "%A|%i"); err == nil {
			for line := range strings.Lines(task) { // that of an array's task has its name
				if number, id, _ := strings.Cut(strings.TrimSpace(line), "|"); number == string(job) {
					name = driver.JobID(id)
				}
			}
		}
		said, err := os.ReadFile(filepath.Join(b.dir, "slurm-"+string(name)+".out"))
		return api.Saves{Count: bytes.Count(said, []byte("saved\n"))}, err
	}
	// Its own driver sees to what the user does; the settings are the site's alone.
	b.shut(t)
	b.cfg.TaskProlog = false
	b.open(t)
	word := func(id driver.JobID) error {
		_, err := b.c.Run(context.WithoutCancel(t.Context()), slurmcluster.Alpha, "scontrol", "update", "JobId="+string(id), "Comment="+slurmctl.HeadStart)
		return err
	}
	var d *slurm.Driver
	open := func() driver.Driver {
		var err error
		if d, err = slurm.New(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		return asSite{Driver: d, owner: b.d, word: word}
	}
	shut := func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	h := b.harness(t)
	h.Driver, h.Blind, h.MemoryAlone = open(), true, true
	t.Cleanup(shut)
	h.Reopen = func(t *testing.T) driver.Driver {
		t.Helper()
		shut()
		return open()
	}
	return h
}
