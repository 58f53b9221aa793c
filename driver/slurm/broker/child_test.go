package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// childEnv makes this test program a broker, or one that asks it, under the account
// that runs it.
const childEnv = "PITCHPIPE_TEST_BROKER"

// role is what a child does.
type role struct {
	Socket      string
	Dir         string // of the broker; empty: the child asks
	Controllers []uint32
	Above       []string
	Advice      []string
	Raise       time.Duration
	DieAt       string // the step at which the broker kills itself

	Verb, Job, Signal string
	Update            slurmctl.Update
	Limit             time.Duration // of advice
}

func child() int {
	var r role
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if r.Dir == "" {
		word, text := "", ""
		if err := r.ask(); err != nil {
			word, text = errorWord(err), err.Error()
		}
		if _, err := fmt.Fprintf(os.Stdout, "%s|%s", word, text); err != nil {
			return 1
		}
		return 0
	}
	if err := r.serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (r role) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run := command.Exec{}
	s, err := broker.New(broker.Config{
		Socket: r.Socket, Dir: r.Dir, Actor: slurmctl.Commands{Runner: run}, Runner: run, Controllers: r.Controllers, Above: r.Above, Advice: r.Advice, Raise: r.Raise,
		Script: func(name string, script []byte) (broker.Stanza, error) {
			if _, err := detect.For("slurm")(name, script, nil); err != nil {
				return broker.Stanza{}, err
			}
			return judged(script)
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		AfterStep: func(step string) {
			if step == r.DieAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func (r role) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := broker.NewClient(r.Socket)
	switch r.Verb {
	case "script":
		_, err := c.Script(ctx, r.Job)
		return err
	case "signal":
		return c.Signal(ctx, r.Job, r.Signal)
	case "requeue":
		return c.Do(ctx, slurmctl.Requeue, r.Job)
	case "discard":
		return c.Do(ctx, slurmctl.Discard, r.Job)
	case "release":
		return c.Do(ctx, slurmctl.Release, r.Job)
	case "advise":
		return c.Advise(ctx, driver.Advice{Job: driver.JobID(r.Job), TimeLimit: r.Limit})
	case "rerun":
		return c.Do(ctx, slurmctl.Rerun, r.Job)
	}
	return c.Update(ctx, r.Job, r.Update)
}

// words are package driver's errors, as a child tells of them.
func words() map[string]error {
	return map[string]error{
		"not found": driver.ErrNotFound, "conflict": driver.ErrConflict, "invalid": driver.ErrInvalid, "unsupported": driver.ErrUnsupported,
		"denied": driver.ErrDenied, "transient": driver.ErrTransient, "unknown": driver.ErrUnknown,
	}
}

func errorWord(err error) string {
	for word, is := range words() {
		if errors.Is(err, is) {
			return word
		}
	}
	return "other"
}
