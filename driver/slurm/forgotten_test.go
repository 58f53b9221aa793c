package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	_, delimiter := plain(c)
	return command.Output{Stdout: []byte(strings.ReplaceAll(l.says, "|", delimiter))}, nil
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

// `sacctmgr show runawayjobs` names it.
func TestAJobThatTheAccountingAloneHasForRunningHasEndedAfterAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *ledger
		r := newRig(t, func(c *slurm.Config) {
			l = &ledger{fake: c.Commands.(*fake)}
			c.Commands = l
		})
		r.f.conf += "AccountingStorageType = accounting_storage/slurmdbd\n"
		job := r.start(t)
		r.f.run(job.ID)
		r.job(t, job.ID)
		l.says = fmt.Sprintf("%s|%s|RUNNING|0:0|2026-11-22T15:12:29|2026-11-22T15:12:30|Unknown|1|100M|UNLIMITED|main|a|normal|1|sbatch|\n", job.ID, r.f.user)
		known := r.f.jobs
		for _, want := range []driver.State{driver.Running, driver.Running, driver.Cancelled} {
			r.f.jobs = map[int]*fakeJob{}
			if got := r.job(t, job.ID); got.State != want {
				t.Errorf("the job is %s, want %s", got.State, want)
			}
			time.Sleep(40 * time.Minute)
			r.reopen(t)
		}
		r.f.jobs = known
		if got := r.job(t, job.ID); got.State != driver.Running {
			t.Errorf("the job that slurmctld knows again is %s, want %s", got.State, driver.Running)
		}
		r.f.jobs = map[int]*fakeJob{}
		if got := r.job(t, job.ID); got.State != driver.Running {
			t.Errorf("the job is %s, want %s until another hour has passed", got.State, driver.Running)
		}
	})
}

// slurmctld judges at the moment of the requeue itself: no look before it could be newer.
func TestAJobThatEndsBetweenTheLookAndTheRequeueStaysEnded(t *testing.T) {
	t.Parallel()
	for _, discard := range []bool{false, true} {
		r := newRig(t, nil)
		r.f.stdout = filepath.Join(t.TempDir(), "out")
		job := r.start(t)
		r.f.run(job.ID)
		in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
		in.Discard = discard
		advance := func(want driver.StepKind, requeues int) {
			t.Helper()
			if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != want || r.f.count("scontrol requeue") != requeues {
				t.Fatalf("discard %t: %+v, %v, %d requeues; want %s and %d", discard, step, err, r.f.count("scontrol requeue"), want, requeues)
			}
		}
		if !discard {
			advance(driver.StepCheckpointing, 0)
		}
		if err := os.WriteFile(r.f.stdout, []byte("saved\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.f.cut = func(c command.Call, after bool) error {
			if !after && strings.HasPrefix(c.String(), "scontrol requeue Incomplete") {
				r.f.end(r.f.jobs[1], "COMPLETED", 0)
			}
			return nil
		}
		advance(driver.StepCheckpointing, 1)
		advance(driver.StepFinished, 1)
		if got := r.job(t, job.ID); got.State != driver.Succeeded || len(got.Attempts) != 1 {
			t.Errorf("discard %t: the job is %s after %d attempts, want %s after one", discard, got.State, len(got.Attempts), driver.Succeeded)
		}
	}
}

// Accounting has no row for the run that never began.
func TestAJobThatWasCancelledAsItWasPutBackDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	var l *ledger
	r := newRig(t, func(c *slurm.Config) {
		l = &ledger{fake: c.Commands.(*fake)}
		c.Commands = l
	})
	r.f.conf += "AccountingStorageType = accounting_storage/slurmdbd\n"
	job := r.start(t)
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.forgetAll()
	l.says = fmt.Sprintf("%s|%s|REQUEUED|0:0|2026-11-22T15:12:29|2026-11-22T15:12:30|2026-11-22T15:12:32|1|100M|UNLIMITED|main|a|normal|1|sbatch|\n", job.ID, r.f.user)
	if got := r.job(t, job.ID); got.State != driver.Cancelled || len(got.Attempts) != 1 {
		t.Errorf("the job is %s with %d attempts, want %s with the one that ran", got.State, len(got.Attempts), driver.Cancelled)
	}
}

func TestAJobThatIsCancelledAsItIsPutBackHasBegunNoOtherAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.conf = strings.Replace(r.f.conf, "RequeueExitHold = (null)", "RequeueExitHold = 85", 1)
	job := r.start(t)
	r.f.run(job.ID)
	started := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	r.f.with(job.ID, func(j *fakeJob) { j.started = started })
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Fatalf("%+v, %v; want %s", step, err, driver.StepCheckpointing)
	}
	// As scontrol shows it: while it will run again, once it was cancelled, and in the end.
	shows := []struct {
		state          string
		started, ended time.Time
		step           driver.StepKind
	}{
		{"COMPLETING", started.Add(time.Minute), time.Time{}, driver.StepCheckpointing},
		{"COMPLETING", started, started.Add(50 * time.Second), driver.StepCheckpointing},
		{"CANCELLED", started, started.Add(50 * time.Second), driver.StepFinished},
	}
	for _, s := range shows {
		r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.started, j.ended = s.state, 1, s.started, s.ended })
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != s.step {
			t.Errorf("%s: %+v, %v; want %s", s.state, step, err, s.step)
		}
		got := r.job(t, job.ID)
		if len(got.Attempts) != 1 || !got.Attempts[0].Started.Equal(started) {
			t.Errorf("%s: attempts %+v, want the one that ran, begun at %v", s.state, got.Attempts, started)
		}
	}
}
