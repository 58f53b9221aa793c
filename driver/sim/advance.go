package sim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// move is an intent that is being carried out.
type move struct {
	id    string
	to    driver.Room // what the next attempt will take
	stage stage
	done  *regexp.Regexp // the line that means "saved"; nil = none does
	asked time.Time      // for the last of its steps
}

// hold is how long a job that left waits for the next step of its intent. Then it goes on by
// itself under the settings before, as under every real scheduler.
const hold = 10 * time.Minute

func (c *Cluster) expire(j *job, m *move) {
	if j.move != m || j.view.State != driver.Stopped {
		return
	}
	if left := m.asked.Add(hold).Sub(c.now); left > 0 {
		c.after(left, func() { c.expire(j, m) })
		return
	}
	j.settle(driver.StepSuperseded)
	j.view.Change, j.note = j.view.Attempts[len(j.view.Attempts)-1].Change, ""
	c.enqueue(j, driver.CauseLate, "")
}

// stage is how far a move is.
type stage uint8

const (
	asked   stage = iota // the attempt was asked to save
	left                 // it saved and left, or was ended unsaved
	told                 // and a caller knows
	changed              // the next attempt has its settings
)

// settle notes how the present intent ended.
func (j *job) settle(how driver.StepKind) {
	j.over[j.move.id] = how
	j.move = nil
}

// Advance implements driver.Driver. It takes checkpoint, stop, change and start
// one call at a time, and answers Stopped once although the job has left by itself,
// or was ended by the call before (Intent.Discard), so that callers see every state of
// a real scheduler.
func (c *Cluster) Advance(ctx context.Context, intent driver.Intent) (driver.Step, error) {
	var step driver.Step
	err := c.do(ctx, OpAdvance, intent.Job, func() error {
		j, err := c.find(intent.Job)
		if err != nil {
			return err
		}
		kind, detail, err := c.advance(j, intent)
		if err != nil {
			return fmt.Errorf("intent %s: %w", intent.ID, err)
		}
		step = driver.Step{Kind: kind, Attempt: j.view.Attempt, Detail: detail}
		return nil
	})
	if err != nil {
		return driver.Step{}, err
	}
	return step, nil
}

// Check implements driver.Driver.
func (c *Cluster) Check(ctx context.Context, intent driver.Intent) error {
	return c.do(ctx, OpCheck, intent.Job, func() error {
		j, err := c.find(intent.Job)
		if err != nil {
			return err
		}
		if detail := j.superseded(intent); detail != "" {
			return fmt.Errorf("intent %s: %w: %s", intent.ID, driver.ErrConflict, detail)
		}
		return c.feasible(j, intent)
	})
}

func (c *Cluster) advance(j *job, in driver.Intent) (driver.StepKind, string, error) {
	// 1. What needs no step: the intent or the job is over. How an intent ended
	// stays true after the job's end.
	if how, ok := j.over[in.ID]; ok {
		return how, "this intent is over", nil
	}
	if j.view.State.Ended() {
		return driver.StepFinished, string(j.view.State), nil
	}
	if detail := j.superseded(in); detail != "" {
		j.over[in.ID] = driver.StepSuperseded
		return driver.StepSuperseded, detail, nil
	}
	// 2. An intent that nothing was done for yet.
	if j.move == nil {
		if err := c.feasible(j, in); err != nil {
			return "", "", err
		}
		if r := j.current(); r != nil && in.Discard {
			j.move = &move{id: in.ID, to: roomOf(j.resources(in.Change))}
			c.goesOn(r, exitKilled)
			return driver.StepCheckpointing, "ended without being asked to save", nil
		}
		if j.view.State == driver.Running {
			return c.signal(j, in)
		}
		j.move = &move{id: in.ID}
		return c.change(j, in)
	}
	// 3. An intent on its way.
	j.move.asked = c.now
	switch j.move.stage {
	case left:
		j.move.stage = told
		return driver.StepStopped, strconv.Itoa(j.saved) + " epochs are saved", nil
	case told:
		return c.change(j, in)
	case changed:
		return c.release(j)
	case asked:
	}
	return driver.StepCheckpointing, "", nil
}

// superseded tells why an intent is not for the job as it is now, or "".
func (j *job) superseded(in driver.Intent) string {
	switch {
	case in.Fingerprint != j.view.Fingerprint:
		return "its owner changed the job"
	case j.move != nil && j.move.id != in.ID:
		return "intent " + j.move.id + " is changing the job"
	case j.move == nil && in.Attempt != j.view.Attempt:
		return fmt.Sprintf("made for attempt %d", in.Attempt)
	case j.move == nil && j.view.State == driver.Pending && j.cause == driver.CauseMemory:
		return "the owner's memory limit returns"
	}
	return ""
}

// feasible tells whether the cluster could carry the intent out.
func (c *Cluster) feasible(j *job, in driver.Intent) error {
	ch := in.Change
	if ch.Cores < 0 || ch.MemoryBytes < 0 || ch.TimeLimit < 0 {
		return fmt.Errorf("a change to less than nothing: %w", driver.ErrInvalid)
	}
	if err := jobfile.CheckValues(ch.Env, ch.Args, ch.Live); err != nil {
		return fmt.Errorf("%w: %w", err, driver.ErrInvalid)
	}
	if len(ch.Args) > 0 {
		return fmt.Errorf("%w: a batch script has no arguments to change", driver.ErrUnsupported)
	}
	if _, err := driver.EncodeSettings(1, ch.Live); err != nil {
		return err
	}
	if err := c.canHold(j.resources(ch)); err != nil {
		return err
	}
	if j.view.State != driver.Running {
		return nil
	}
	switch cp := in.Checkpoint; {
	case cp == nil:
		return fmt.Errorf("%w: a running job without a checkpoint is not touched", driver.ErrUnsupported)
	case cp.Signal == "" || cp.Exit == 0 && cp.Done == "":
		return fmt.Errorf("%w: a checkpoint without a signal, or without a sign that it was saved", driver.ErrUnsupported)
	case j.noRequeue:
		return fmt.Errorf("%w: its owner refuses restarts", driver.ErrDenied)
	default:
		if _, err := regexp.Compile(cp.Done); err != nil {
			return errors.Join(driver.ErrInvalid, err)
		}
	}
	if ch.Empty() { // the way back to what its owner asked for is always open
		return nil
	}
	return c.grow(j.current(), roomOf(j.resources(ch)))
}

func roomOf(r driver.Resources) driver.Room {
	return driver.Room{Cores: r.Cores, Memory: r.MemoryBytes}
}

// grow refuses more than an attempt has where its job would have to wait for that: behind
// those that wait, or since others that are being moved will have it.
func (c *Cluster) grow(r *run, want driver.Room) error {
	has := roomOf(r.took)
	if slices.ContainsFunc(c.queue, func(j *job) bool { return !j.notBefore.After(c.now) }) {
		return driver.Grow(has, want)
	}
	var nodes []driver.Room
	for _, n := range c.nodes {
		free := driver.Room{Cores: n.spec.Cores - n.cores, Memory: n.spec.MemoryBytes - n.memory}
		if n == r.node {
			free = free.Plus(has)
		}
		for _, other := range c.jobs {
			if m := other.move; m != nil && len(other.runs) > 0 && other.runs[len(other.runs)-1].node == n {
				free = free.Minus(m.more(other.current()))
			}
		}
		nodes = append(nodes, free)
	}
	return driver.Grow(has, want, nodes...)
}

// more is what a job that is being moved will take beside what it has; r is its attempt,
// nil between two.
func (m *move) more(r *run) driver.Room {
	if r == nil {
		return m.to
	}
	more := m.to.Minus(roomOf(r.took))
	return driver.Room{Cores: max(more.Cores, 0), Memory: max(more.Memory, 0)}
}

// signal asks a running attempt to save.
func (c *Cluster) signal(j *job, in driver.Intent) (driver.StepKind, string, error) {
	r, cp := j.current(), *in.Checkpoint
	if !j.act.Saves && !j.act.IgnoreSignal {
		c.end(r, driver.Failed, 128+signalNumber(cp.Signal), "killed by "+cp.Signal)
		return driver.StepFinished, j.view.Detail, nil
	}
	m := &move{id: in.ID, to: roomOf(j.resources(in.Change)), stage: asked}
	if cp.Done != "" {
		done, err := regexp.Compile(cp.Done)
		if err != nil {
			return "", "", errors.Join(driver.ErrInvalid, err)
		}
		m.done = done
	}
	j.move = m
	r.signalled = &cp
	c.during(r, cp.Grace, func() {
		if j.move == m && m.stage == asked {
			j.settle(driver.StepAbandoned)
			c.changed(j)
		}
	})
	return driver.StepCheckpointing, "asked with " + cp.Signal, nil
}

// change gives the next attempt its settings.
func (c *Cluster) change(j *job, in driver.Intent) (driver.StepKind, string, error) {
	j.view.Change = in.Change.Clone()
	j.cause, j.intent, j.note = driver.CauseIntent, in.ID, in.Note
	j.move.stage = changed
	c.changed(j)
	return driver.StepChanged, "", nil
}

// release lets the next attempt start.
func (c *Cluster) release(j *job) (driver.StepKind, string, error) {
	id := j.move.id
	j.settle(driver.StepStarted)
	if j.view.State == driver.Stopped {
		c.enqueue(j, driver.CauseIntent, id)
	} else {
		if j.view.Attempt == 0 { // the queue does not move up for an intent
			j.notBefore = c.now
		}
		c.changed(j)
		c.schedule()
	}
	return driver.StepStarted, "", nil
}

// ownerChanges is what an edit by the owner does: intents on their way are void,
// and a job that one of them holds goes on as its owner wrote it.
func (c *Cluster) ownerChanges(j *job) {
	if j.view.State.Ended() {
		return
	}
	j.view.Source = append(slices.Clip(j.view.Source), "\n# changed by its owner\n"...)
	j.view.Fingerprint = fingerprint(j.view.Source, j.spec.Variables)
	c.changed(j)
	m := j.move
	if m == nil {
		return
	}
	j.settle(driver.StepSuperseded)
	if m.stage == asked {
		return // the attempt goes on by itself after it saved
	}
	j.view.Change, j.note = driver.Change{}, ""
	if j.view.State == driver.Stopped {
		c.enqueue(j, driver.CauseSubmitted, "")
		return
	}
	j.cause, j.intent = driver.CauseSubmitted, ""
}

// signalNumber is the number of a signal on Linux; unknown names count as
// SIGTERM.
func signalNumber(name string) int {
	switch name {
	case "SIGHUP":
		return 1
	case "SIGINT":
		return 2
	case "SIGUSR1":
		return 10
	case "SIGUSR2":
		return 12
	}
	return 15
}
