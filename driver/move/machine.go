package move

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"pitchpipe/driver"
)

// The points at which a crash is tested. "Recorded" means durable.
const (
	Begun    = "asking"           // recorded: the job is to be asked to save
	Asked    = "signal-sent"      // it was asked
	Noted    = "signalled"        // recorded
	Saved    = "stopping"         // recorded: it saved or is discarded, and is to be ended
	Told     = "end-sent"         // the order to end it was given
	Accepted = "end-acknowledged" // recorded
	Left     = "left"             // it is to wait for the intent
	Kept     = "stopped"          // recorded
	Planned  = "changing"         // recorded: what the next attempt is to have
	Done     = "changed"          // it has it
	Queued   = "queued"           // recorded: the intent ended with its start
)

// Scheduler is how the machine finds a job.
type Scheduler interface {
	// Look reads the job and its record again and holds it until release is called, so
	// that nothing else changes it or its record. Its error is driver.ErrNotFound where
	// nothing is known of the job; of one that the scheduler forgot there is a record.
	Look(ctx context.Context, id driver.JobID, intent string) (j Job, release func(), err error)
}

// Job is one job as it was read in this call, and the verbs of its driver. Each verb can
// be repeated, and the record is written before Ask, Stop and Change.
type Job interface {
	// View is the state of the job towards the intent, which may be in progress or new.
	View(in driver.Intent) View
	// Attempt is the one that the job is in now.
	Attempt() int
	// Record is the job's. What is changed in it counts once it was saved.
	Record() *Record
	// Save makes the record durable.
	Save(ctx context.Context) error

	// Judge refuses a new intent that this cluster or this job cannot follow.
	Judge(ctx context.Context, in driver.Intent) error
	// Begin notes in the record where the job is as its Moving begins. An End says that it
	// cannot begin at this moment.
	Begin(ctx context.Context) (End, error)
	// Ask asks the job to save. One that has ended is not there to be asked.
	Ask(ctx context.Context) error
	// Saved reports whether the job said, since it was asked, that it saved.
	Saved(ctx context.Context) (bool, error)
	// Stop ends the attempt that runs, if it has not ended.
	Stop(ctx context.Context) error
	// Keep has the job that left wait for the intent, and go on by itself after a while.
	Keep(ctx context.Context) error
	// Plan notes in the record what the next attempt is to have. An End says how an intent
	// ended that cannot be followed after all.
	Plan(ctx context.Context) (End, error)
	// Change gives the next attempt what was planned. An End says that it could not.
	Change(ctx context.Context) (End, error)
	// Start lets the next attempt start. An End says that it cannot start yet, or how it ended.
	Start(ctx context.Context) (End, error)
	// Over undoes what an intent leaves that ends so: a job that was made to wait goes on
	// with what it had. The record is saved after it.
	Over(ctx context.Context, end End) error
}

// Defaults are verbs that do nothing, for drivers that have nothing to do there.
type Defaults struct{}

// Begin notes nothing.
func (Defaults) Begin(context.Context) (End, error) { return End{}, nil }

// Saved implements Job: no saved state is ever seen.
func (Defaults) Saved(context.Context) (bool, error) { return false, nil }

// Stop leaves it to the change.
func (Defaults) Stop(context.Context) error { return nil }

// Keep leaves the job as it is.
func (Defaults) Keep(context.Context) error { return nil }

// Plan plans nothing.
func (Defaults) Plan(context.Context) (End, error) { return End{}, nil }

// Change changes nothing but the record.
func (Defaults) Change(context.Context) (End, error) { return End{}, nil }

// Over undoes nothing.
func (Defaults) Over(context.Context, End) error { return nil }

// Machine advances intents. Its zero value is ready.
type Machine struct {
	// AfterStep is called at each point, so that a test can crash there; nil = nothing is.
	AfterStep func(point string)

	growing sync.Mutex // one intent at a time begins that wants more than its job has
}

func (m *Machine) at(point string) {
	if m.AfterStep != nil {
		m.AfterStep(point)
	}
}

// Advance takes at most one step towards the intent.
func (m *Machine) Advance(ctx context.Context, s Scheduler, in driver.Intent) (driver.Step, error) {
	if in.ID == "" {
		return driver.Step{}, fmt.Errorf("advance: an intent of %s without id: %w", in.Job, driver.ErrInvalid)
	}
	step, err := m.advance(ctx, s, in)
	if err != nil {
		return driver.Step{}, fmt.Errorf("advance %s of %s: %w", in.ID, in.Job, err)
	}
	return step, nil
}

func (m *Machine) advance(ctx context.Context, s Scheduler, in driver.Intent) (driver.Step, error) {
	j, release, err := s.Look(ctx, in.Job, in.ID)
	if err != nil {
		return driver.Step{}, err
	}
	defer release()
	if r := j.Record(); r.Moving != nil && r.Moving.Intent.ID == in.ID {
		return m.Proceed(ctx, j)
	}
	v := j.View(in)
	if end := Stands(v, j.Record(), in); end.Kind != "" {
		return answer(j, end), nil
	}
	if v.Grows {
		m.growing.Lock()
		defer m.growing.Unlock()
	}
	if err := j.Judge(ctx, in); err != nil {
		return driver.Step{}, err
	}
	return m.begin(ctx, j, v, in)
}

// begin takes the first step of an intent, which is on record before that.
func (m *Machine) begin(ctx context.Context, j Job, v View, in driver.Intent) (driver.Step, error) {
	r := j.Record()
	r.Moving = &Moving{Intent: in, Phase: Asking, Asked: time.Now().UTC()}
	point := Begun
	switch {
	case v.At == Waits:
		r.Moving.Queued, r.Moving.Phase = true, Stopped
	case in.Discard:
		r.Moving.Phase, point = Ending, Saved
	}
	end, err := j.Begin(ctx)
	if err != nil || end.Kind != "" {
		r.Moving = nil
		return answer(j, end), err
	}
	if !r.Moving.Queued { // else it is saved with what the job is to have
		if err := j.Save(ctx); err != nil {
			return driver.Step{}, err
		}
		m.at(point)
	}
	return m.do(ctx, j, Next(j.View(in), r.Moving, time.Now()))
}

// Proceed takes the next step of the intent in progress.
func (m *Machine) Proceed(ctx context.Context, j Job) (driver.Step, error) {
	r := j.Record()
	return m.do(ctx, j, Next(j.View(r.Moving.Intent), r.Moving, time.Now()))
}

// do carries an action out, and ends an intent that had a step refused: its caller then
// gives it up, and no other could begin. After a conflict the next look shows how the job
// changed; one that cannot be asked to save until its grace is over is left alone.
func (m *Machine) do(ctx context.Context, j Job, a Action) (driver.Step, error) {
	in := j.Record().Moving.Intent
	end, err := m.verb(ctx, j, a)
	refused := errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrNoRoom)
	switch moving := j.Record().Moving; {
	case moving == nil:
	case refused && !j.View(in).Final:
		err = errors.Join(err, m.close(ctx, j, End{driver.StepSuperseded, err.Error()}))
	case errors.Is(err, driver.ErrConflict) && a.Verb == Ask && moving.late(time.Now()):
		end = End{driver.StepAbandoned, err.Error()}
		err = m.close(ctx, j, end)
	case err == nil && end.Kind.Done():
		err = m.close(ctx, j, end)
	}
	if errors.Is(err, driver.ErrConflict) && j.Record().Moving != nil {
		end, err = End{a.Step.Kind, err.Error()}, nil
		if end.Kind.Done() {
			end.Kind = driver.StepChanged
		}
	}
	if err != nil {
		return driver.Step{}, err
	}
	return answer(j, end), nil
}

func (m *Machine) verb(ctx context.Context, j Job, a Action) (End, error) {
	r := j.Record().Moving
	effect := func(verb func(context.Context) error, done string, note func(), noted string) (End, error) {
		if err := verb(ctx); err != nil {
			return End{}, err
		}
		m.at(done)
		note()
		return a.Step, m.save(ctx, j, noted)
	}
	switch a.Verb {
	case Wait, Close:
	case Ask:
		return effect(j.Ask, Asked, func() { r.Sent = true }, Noted)
	case Stop:
		return effect(j.Stop, Told, func() { r.Ended = true }, Accepted)
	case Keep:
		return effect(j.Keep, Left, func() { r.Phase, r.Left = Stopped, time.Now().UTC() }, Kept)
	case Hear:
		saved, err := j.Saved(ctx)
		if err != nil || !saved {
			return a.Step, err
		}
		r.Phase = Ending
		if err := m.save(ctx, j, Saved); err != nil {
			return End{}, err
		}
		return m.verb(ctx, j, Next(j.View(r.Intent), r, time.Now()))
	case Change:
		end, err := j.Plan(ctx)
		if err != nil || end.Kind != "" {
			return end, err
		}
		r.Phase = Changed
		if err := m.save(ctx, j, Planned); err != nil {
			return End{}, err
		}
		if end, err = j.Change(ctx); err != nil || end.Kind != "" {
			return end, err
		}
		m.at(Done)
	case Start:
		if end, err := j.Start(ctx); err != nil || end.Kind != "" {
			return end, err
		}
	}
	return a.Step, nil
}

func (m *Machine) save(ctx context.Context, j Job, point string) error {
	if err := j.Save(ctx); err != nil {
		return err
	}
	m.at(point)
	return nil
}

// close ends the intent in progress.
func (m *Machine) close(ctx context.Context, j Job, end End) error {
	if err := j.Over(ctx, end); err != nil {
		return err
	}
	j.Record().Close(end.Kind, end.Why)
	point := string(end.Kind)
	if end.Kind == driver.StepStarted {
		point = Queued
	}
	return m.save(ctx, j, point)
}

func answer(j Job, end End) driver.Step {
	return driver.Step{Kind: end.Kind, Attempt: j.Attempt(), Detail: end.Why}
}

// Locks are one lock for each name, for as long as someone holds it or waits for it. The
// zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Hold takes the lock of a name and returns its release.
func (l *Locks) Hold(name string) (release func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	one := l.held[name]
	if one == nil {
		one = &lock{}
		l.held[name] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, name)
		}
	}
}
