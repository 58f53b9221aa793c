package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// forgetful is a slurmctld that knows no job.
type forgetful struct{ asked func() }

func (f forgetful) Run(context.Context, command.Call) (command.Output, error) {
	f.asked()
	return command.Output{}, fmt.Errorf("Invalid job id: %w", driver.ErrNotFound)
}

func TestARecordIsNotRemovedBelowARequestAboutItsJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written := make(chan error, 1)
	var s *Server
	runner := forgetful{asked: func() {
		// A new job of that number is asked about while the old one is looked for. Its
		// request has to wait, and its record to stay.
		go func() {
			defer s.jobs.Hold("7")()
			written <- s.ledger.Write(Record{Version: 1, Identity: Identity{Job: "7", UID: 9}})
		}()
	}}
	s, err := New(Config{
		Socket: filepath.Join(dir, "s"), Dir: dir, Actor: slurmctl.Commands{Runner: runner}, Runner: runner,
		Script: func(string, []byte) (Stanza, error) { return Stanza{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ledger.Write(Record{Version: 1, Identity: Identity{Job: "7", UID: 8}}); err != nil {
		t.Fatal(err)
	}
	if forgotten, err := s.forget(t.Context(), "7"); !forgotten || err != nil {
		t.Errorf("forgotten: %t, %v", forgotten, err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if jobs, err := s.ledger.List(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("the records are of %v (%v), want the new job's to be there", jobs, err)
	}
}
