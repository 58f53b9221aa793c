package slurm_test

import (
	"context"
	"errors"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// ledger is a Slurm with an accounting, which may be away.
type ledger struct {
	*fake
	away bool
	says string
}

func (l *ledger) Run(ctx context.Context, c command.Call) (command.Output, error) {
	if c.Name != "sacct" {
		return l.fake.Run(ctx, c)
	}
	if l.away {
		const stderr = "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection"
		return command.Output{}, &command.Failed{Call: c, Status: 1, Stderr: stderr, Cause: command.Cause(stderr, false)}
	}
	return command.Output{Stdout: []byte(l.says)}, nil
}

func TestTheEndOfAForgottenJobIsNotGuessedWhileTheAccountingIsAway(t *testing.T) {
	t.Parallel()
	var l *ledger
	r := newRig(t, func(c *slurm.Config) {
		l = &ledger{fake: c.Commands.(*fake), away: true}
		c.Commands = l
	})
	r.f.conf += "AccountingStorageType = accounting_storage/slurmdbd\n"
	job := r.start(t)
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.forgetAll()
	if got, err := r.d.Get(t.Context(), job.ID); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("%+v (%v), want %v", got, err, driver.ErrTransient)
	}
	l.away = false
	if got := r.job(t, job.ID); got.State != driver.Cancelled {
		t.Errorf("the job is %s, want %s where the accounting knows nothing of it either", got.State, driver.Cancelled)
	}
}
