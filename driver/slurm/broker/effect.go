package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// effect is one request that changes something: what is known of it so far.
type effect struct {
	s    *Server
	peer uint32
	verb string
	req  request

	job    sighting
	stanza Stanza
	record Record
	after  *Size // that the job is given
	detail string
	do     func(ctx context.Context) error
}

// plans judge the verbs. Each writes into the record what is about to be done, and into do what
// does it where that is more than the verb of its name. Script has no effect.
func plans() map[string]func(ctx context.Context, e *effect) error {
	return map[string]func(ctx context.Context, e *effect) error{
		verbSignal: planSignal, verbRequeue: planRequeue, verbDiscard: planDiscard, verbUpdate: planUpdate, verbRelease: planRelease, verbRerun: planRerun,
		verbMay: planNothing, verbScript: nil, verbAdvise: planAdvise, verbOverrun: planOverrun,
	}
}

// effect judges a request, makes durable what it is about to change, and does it.
func (s *Server) effect(ctx context.Context, peer uint32, verb string, req request) error {
	defer s.jobs.Hold(req.Job)()
	e := &effect{s: s, peer: peer, verb: verb, req: req}
	if u := req.Update; verb == verbAdvise || verb == verbUpdate && u != nil && (u.Cores != nil || u.Memory != nil || u.TimeLimit != nil) {
		if err := s.sizing.Acquire(ctx, 1); err != nil {
			return e.refused(fmt.Errorf("other jobs are being changed: %w: %w", driver.ErrTransient, err))
		}
		defer s.sizing.Release(1)
	}
	err := e.judge(ctx)
	switch {
	case verb == verbMay && err != nil:
		return fmt.Errorf("job %s: %w", req.Job, err)
	case verb == verbMay:
		return nil
	case err != nil:
		return e.refused(err)
	}
	if err := s.ledger.Write(e.record); err != nil {
		return e.refused(err)
	}
	if err := s.ledger.Audit(e.entry(nil)); err != nil {
		return fmt.Errorf("job %s: nothing was done, since the audit failed: %w", req.Job, err)
	}
	s.cfg.AfterStep(verb + "-recorded")
	s.cfg.Logger.Info("acting", "verb", verb, "job", req.Job, "user", e.job.User, "detail", e.detail)
	if err := e.do(ctx); err != nil {
		return fmt.Errorf("job %s: %w", req.Job, err)
	}
	s.cfg.AfterStep(verb + "-done")
	return nil
}

func (e *effect) judge(ctx context.Context) (err error) {
	if e.job, err = e.s.look(ctx, e.req.Job); err != nil {
		return err
	}
	advice := e.verb == verbAdvise || e.verb == verbOverrun
	if err := movable(e.job, advice); err != nil {
		return err
	}
	if parse.Ended(e.job.State) && e.verb != verbRerun && e.verb != verbOverrun {
		return fmt.Errorf("it has ended (%s): %w", strings.ToLower(e.job.State), driver.ErrConflict)
	}
	if !advice { // which needs the site's word alone
		if e.stanza, err = e.s.stanza(ctx, e.job); err != nil {
			return err
		}
		if !e.stanza.Apply {
			return fmt.Errorf("its stanza does not say mode=apply: %w", driver.ErrDenied)
		}
	}
	id := Identity{Job: e.job.name, UID: e.job.uid, Restarts: e.job.Restarts, Submitted: e.job.Submitted}
	if e.record, err = e.s.ledger.Read(id, e.job.size, time.Now()); err != nil {
		return err
	}
	e.do = func(ctx context.Context) error { return e.s.cfg.Actor.Do(ctx, slurmctl.Verb(e.verb), e.job.name) }
	return plans()[e.verb](ctx, e)
}

// refused writes a refusal down, which may fail without harm.
func (e *effect) refused(why error) error {
	if err := e.s.ledger.Audit(e.entry(why)); err != nil {
		e.s.cfg.Logger.Warn("a refusal is not in the audit file", "error", err)
	}
	e.s.cfg.Logger.Warn("refused", "verb", e.verb, "job", e.req.Job, "peer", e.peer, "reason", why)
	return fmt.Errorf("job %s: %w", e.req.Job, why)
}

func (e *effect) entry(refused error) Entry {
	out := Entry{Time: time.Now().UTC(), Peer: e.peer, Verb: e.verb, Job: e.req.Job, User: e.job.User, After: e.after, Detail: e.detail, Allowed: refused == nil}
	if e.job.name != "" {
		out.Before = &e.job.size
	}
	if refused != nil {
		out.Refused = refused.Error()
	}
	return out
}

// errOff says that an owner's word forbids a change. What was begun before that
// can be ended: the owner's size is given back, the wait ends.
var errOff = fmt.Errorf("its owner says %s in its comment: %w", slurmctl.Off, driver.ErrDenied)

// planSignal: the signal that the owner named, to what runs.
func planSignal(_ context.Context, e *effect) error {
	name := driver.Checkpoint{Signal: e.req.Signal}.SignalName()
	e.detail = name
	switch {
	case e.stanza.Signal == "":
		return fmt.Errorf("its stanza names no signal by which it saves: %w", driver.ErrDenied)
	case name != e.stanza.Signal:
		return fmt.Errorf("its stanza names %s and not %.20q: %w", e.stanza.Signal, name, driver.ErrDenied)
	case e.job.State != "RUNNING":
		return fmt.Errorf("it does not run (%s): %w", e.job.State, driver.ErrConflict)
	case slurmctl.Says(e.job.Comment, slurmctl.Off):
		return errOff
	}
	e.do = func(ctx context.Context) error { return e.s.cfg.Actor.Signal(ctx, e.job.name, name) }
	return e.leaves()
}

// leaves counts the attempt among those that leave at the controller's word, and refuses
// one too many.
func (e *effect) leaves() error {
	e.record.Asking(e.job.Restarts)
	if most := e.s.cfg.Restarts; e.record.Moves > most {
		return fmt.Errorf("it was asked to save, or discarded, in %d attempts, the limit: %w", most, driver.ErrDenied)
	}
	return nil
}

// restartable refuses a restart of what does not run, cannot resume, or whose owner
// forbids it.
func (e *effect) restartable() error {
	switch {
	case e.job.State != "RUNNING":
		return fmt.Errorf("it does not run (%s): %w", e.job.State, driver.ErrConflict)
	case e.stanza.Signal == "":
		return fmt.Errorf("its stanza has no checkpoint, so that a restart would lose its work: %w", driver.ErrDenied)
	case !e.job.Requeue:
		return fmt.Errorf("its owner forbids restarts (--no-requeue): %w", driver.ErrDenied)
	}
	return nil
}

// planRequeue: a job that was asked to save, if its owner allows restarts.
func planRequeue(_ context.Context, e *effect) error {
	if err := e.restartable(); err != nil {
		return err
	}
	switch {
	case !e.stanza.Done:
		return fmt.Errorf("it exits by itself after it saved; a requeue would interrupt that: %w", driver.ErrDenied)
	case !e.record.WasAsked(e.job.Restarts):
		return fmt.Errorf("it was not asked to save in this attempt: %w", driver.ErrDenied)
	}
	return nil
}

// planDiscard: an attempt that the controller set up, without asking it to save.
func planDiscard(_ context.Context, e *effect) error {
	e.detail = "its work since its last checkpoint is lost"
	if err := e.restartable(); err != nil {
		return err
	}
	switch {
	case slurmctl.Says(e.job.Comment, slurmctl.Off):
		return errOff
	case e.record.Prepared != e.job.Restarts+1:
		return fmt.Errorf("the broker changed nothing of this attempt, so it does not discard its work: %w", driver.ErrDenied)
	}
	return e.leaves()
}

// planRelease: a job that the cluster holds because it left with the status that its
// stanza says, after our signal.
func planRelease(_ context.Context, e *effect) error {
	switch {
	case e.job.State != "SPECIAL_EXIT":
		return fmt.Errorf("the cluster does not hold it (%s), and a hold by its owner or the site stays: %w", e.job.State, driver.ErrDenied)
	case e.stanza.Exit == 0 || e.job.Exit.Exit != e.stanza.Exit || e.job.Exit.Signal != 0:
		return fmt.Errorf("it left with status %d, which is not that of its checkpoint: %w", e.job.Exit.Code(), driver.ErrDenied)
	case !e.record.Ours(e.job.Restarts):
		return fmt.Errorf("it was not asked to save before it left: %w", driver.ErrDenied)
	case e.job.Reason != "JobHeldUser" && e.job.Reason != "job_requeued_in_held_state" && e.job.Reason != "":
		return fmt.Errorf("it is held for another reason (%s): %w", e.job.Reason, driver.ErrDenied)
	}
	return nil
}

// planUpdate: a job that waits, to no more than its owner asked for.
func planUpdate(ctx context.Context, e *effect) error {
	u := e.req.Update
	if u == nil || u.Empty() || u.Nice != nil {
		return fmt.Errorf("an update must set a size or a start, and nothing else: %w", driver.ErrInvalid)
	}
	if !parse.Waiting(e.job.State) {
		return fmt.Errorf("it does not wait (%s), and what runs is not changed: %w", e.job.State, driver.ErrConflict)
	}
	after, err := changed(e.job.size, *u)
	if err != nil {
		return err
	}
	e.after = &after
	if u.Start != nil {
		e.detail = "start in " + u.Start.String()
	}
	if u.Requeue != nil && *u.Requeue != e.job.Requeue {
		return fmt.Errorf("only its owner decides whether it may be restarted: %w", driver.ErrDenied)
	}
	if err := errors.Join(e.allowed(ctx, *u, after), e.wait(u.Start)); err != nil {
		return err
	}
	e.record.Prepared = e.job.Restarts + 1
	send := *u
	if after == e.job.size {
		// It has that size. To set it once more would free the job from its limits.
		send.Cores, send.Memory, send.TimeLimit = nil, nil, nil
	} else {
		if err := e.withinLimits(ctx, *u, after); err != nil {
			return err
		}
		e.record.Setting(after, time.Now())
	}
	e.update(send)
	return nil
}

// update changes the job, unless it is as wanted.
func (e *effect) update(u slurmctl.Update) {
	e.do = func(ctx context.Context) error {
		if u.Empty() {
			return nil
		}
		return e.s.cfg.Actor.Update(ctx, e.job.name, u)
	}
}

// planNothing asks of a job that runs or waits what planUpdate asks of a size.
func planNothing(ctx context.Context, e *effect) error {
	u := e.req.Update
	if u == nil || u.Start != nil || u.Requeue != nil || u.Nice != nil {
		return fmt.Errorf("want a size: %w", driver.ErrInvalid)
	}
	after, err := changed(e.job.size, *u)
	if err == nil {
		err = e.allowed(ctx, *u, after)
	}
	if err == nil {
		err = e.withinLimits(ctx, *u, after)
	}
	return err
}

func changed(s Size, u slurmctl.Update) (Size, error) {
	if u.Cores != nil {
		if s.Cores = *u.Cores; s.Cores < 1 {
			return s, fmt.Errorf("%d cores: %w", s.Cores, driver.ErrInvalid)
		}
	}
	if u.Memory != nil {
		if s.Memory = *u.Memory; s.Memory.Bytes < 0 || s.Memory.Bytes%(1<<20) != 0 {
			return s, fmt.Errorf("%d bytes of memory: want whole MiB: %w", s.Memory.Bytes, driver.ErrInvalid)
		}
	}
	if u.TimeLimit != nil {
		if s.TimeLimit = *u.TimeLimit; s.TimeLimit < 0 || s.TimeLimit%time.Minute != 0 {
			return s, fmt.Errorf("a time limit of %v: want whole minutes: %w", s.TimeLimit, driver.ErrInvalid)
		}
	}
	return s, nil
}

// planRerun: a job that was killed under less memory than its owner asked for, which was set
// here. It has his back before it can start, whatever is asked next.
func planRerun(_ context.Context, e *effect) error {
	after := e.record.Back(e.job.size)
	less := e.record.Lowered != 0 && e.record.Less(e.job.size)
	return e.rerun("OUT_OF_MEMORY", "memory", less, after, slurmctl.Update{Memory: &after.Memory})
}

// rerun puts a job back that ended in this state, where it had less than its owner asked for, and
// gives it his amount.
func (e *effect) rerun(state, amount string, less bool, after Size, u slurmctl.Update) error {
	switch {
	case e.job.State != state:
		return fmt.Errorf("it was not killed for %s (%s): %w", amount, e.job.State, driver.ErrConflict)
	case !e.job.Requeue:
		return fmt.Errorf("its owner forbids restarts (--no-requeue): %w", driver.ErrDenied)
	case !less:
		return fmt.Errorf("it had the %s that its owner asked for, so it is not rerun: %w", amount, driver.ErrDenied)
	}
	e.after, e.detail = &after, "it runs again with its owner's "+amount
	e.record.Rerun = e.job.Restarts + 1
	e.record.Setting(after, time.Now())
	e.do = func(ctx context.Context) error {
		if err := e.s.cfg.Actor.Do(ctx, slurmctl.Rerun, e.job.name); err != nil {
			return err
		}
		e.s.cfg.AfterStep(e.verb + "-queued")
		return e.s.cfg.Actor.Update(ctx, e.job.name, u)
	}
	return nil
}

// returned reports whether a size gives a job its owner's memory back that was killed for less
// and put back here: that is done whatever limits are used up.
func (e *effect) returned(after Size) bool {
	return e.record.Rerun > 0 && e.record.Rerun == e.job.Restarts && after == e.record.Back(e.job.size)
}
