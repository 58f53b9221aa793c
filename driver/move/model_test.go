package move_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// world is a scheduler with one job, and what a driver has on record of it. Whatever
// happens in it is an effect of a verb or its own event.
type world struct {
	t *rapid.T

	state       driver.State // Running, Stopped (between two attempts) or an end
	leaving     bool         // the attempt was told to go
	attempts    []string     // the settings that each had
	next        string       // the settings that the next will have
	fingerprint string
	asked, said bool // the attempt was asked to save, and said so
	record      move.Record
	direct      bool

	failing error // the next verb has its effect and fails so; nil: it does not
	crash   int   // after so many points the process dies; 0: it does not
}

var errCrash = errors.New("crash")

func (w *world) point(string) {
	if w.crash--; w.crash == 0 {
		panic(errCrash)
	}
}

// job is the driver: what it read, and a copy of the record.
type job struct {
	move.Defaults
	*world
	r move.Record
}

func (w *world) Look(context.Context, driver.JobID, string) (move.Job, func(), error) {
	return &job{world: w, r: w.record.Clone()}, func() {}, nil
}

func (j *job) Record() *move.Record { return &j.r }
func (j *job) Attempt() int         { return len(j.attempts) }
func (j *job) Save(context.Context) error {
	j.record = j.r.Clone()
	return nil
}

func (j *job) View(in driver.Intent) move.View {
	v := move.View{Job: driver.Job{State: j.state, Attempt: len(j.attempts), Fingerprint: j.fingerprint}, Direct: j.direct}
	switch {
	case slices.Contains(j.attempts, in.ID):
		v.Applied = "it was applied"
	case j.state == driver.Stopped && j.next == in.ID && j.r.Moving == nil:
		v.Applied = "it is queued"
	}
	m := j.r.Moving
	switch {
	case j.state.Ended():
		v.End = move.End{Kind: driver.StepFinished}
	case j.state == driver.Stopped:
		v.At = move.Waits
	case j.leaving:
		v.At = move.Leaving
	}
	if m == nil || m.Intent.ID != in.ID || v.End.Kind != "" {
		return v
	}
	switch v.Changed = j.next == in.ID; {
	case len(j.attempts) > in.Attempt && v.Applied != "":
		v.End = move.End{Kind: driver.StepStarted}
	case in.Fingerprint != j.fingerprint:
		v.End = move.End{Kind: driver.StepSuperseded, Why: "its owner changed it"}
	case len(j.attempts) > in.Attempt:
		v.End = move.End{Kind: driver.StepSuperseded, Why: "it began before it was changed"}
	}
	return v
}

// effect is what every effect must find: a record that says that it was to come.
func (j *job) effect(phases ...move.Phase) error {
	m := j.record.Moving
	if m == nil || !slices.Contains(phases, m.Phase) {
		j.t.Fatalf("an effect with the record %+v, want one of %v", m, phases)
	}
	err := j.failing
	j.failing = nil
	return err
}

func (j *job) Judge(context.Context, driver.Intent) error { return nil }
func (j *job) Saved(context.Context) (bool, error)        { return j.said && j.state == driver.Running, nil }

func (j *job) Keep(context.Context) error { return j.effect(move.Asking, move.Ending) }

func (j *job) Ask(context.Context) error {
	j.asked = true
	return j.effect(move.Asking)
}

// Stop does nothing to an attempt that has ended.
func (j *job) Stop(context.Context) error {
	if j.state == driver.Running {
		j.end()
	}
	return j.effect(move.Ending)
}

// end tells the attempt to go, and fails where that loses work.
func (j *job) end() {
	if !j.said && !j.r.Moving.Intent.Discard {
		j.t.Fatal("an attempt is ended that has not saved")
	}
	j.leaving = true
}

func (j *job) Change(context.Context) (move.End, error) {
	switch {
	case j.state == driver.Running && j.direct:
		j.end()
		j.next = j.r.Moving.Intent.ID
	case j.state == driver.Stopped:
		j.next = j.r.Moving.Intent.ID
	}
	return move.End{}, j.effect(move.Changed)
}

func (j *job) Start(context.Context) (move.End, error) {
	if j.leaving {
		return move.End{Kind: driver.StepChanged}, nil
	}
	if j.state == driver.Stopped {
		j.begins()
	}
	return move.End{}, j.effect(move.Changed)
}

func (j *job) Over(_ context.Context, end move.End) error {
	if end.Kind != driver.StepStarted && j.state == driver.Stopped {
		j.next = "own" // it goes on as it was
	}
	return nil
}

// begins is the start of the next attempt.
func (w *world) begins() {
	w.attempts = append(w.attempts, w.next)
	w.state, w.leaving, w.asked, w.said, w.next = driver.Running, false, false, false, "own"
}

// event is what happens by itself.
func (w *world) event(kind string) {
	switch {
	case w.state.Ended():
	case kind == "says that it saved" && w.state == driver.Running && w.asked && !w.leaving:
		w.said = true
	case kind == "leaves" && w.state == driver.Running && (w.leaving || w.asked):
		w.state, w.leaving = driver.Stopped, false
	case kind == "ends" && w.state == driver.Running && !w.leaving:
		w.state = driver.Succeeded
	case kind == "goes on by itself" && w.state == driver.Stopped:
		w.begins()
	case kind == "its owner changes it":
		w.fingerprint += "'"
		w.next = "own"
	}
}

// TestCrashesAtAnyPoint advances intents while a job lives its life and the process dies
// at any point: each effect is on record before it, no work is lost, no intent is applied
// twice, what was answered stays true, and in the end there is an answer.
func TestCrashesAtAnyPoint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, state: driver.Running, attempts: []string{"own"}, next: "own", fingerprint: "f", direct: rapid.Bool().Draw(t, "direct")}
		if rapid.Bool().Draw(t, "waits at first") {
			w.state, w.attempts = driver.Stopped, nil
		}
		machine := &move.Machine{AfterStep: w.point}
		var answers []driver.StepKind
		in := driver.Intent{
			ID: "in", Attempt: len(w.attempts), Fingerprint: "f", Discard: rapid.Bool().Draw(t, "discard"),
			Checkpoint: &driver.Checkpoint{Signal: "USR1", Grace: time.Hour, Exit: 85, Done: rapid.SampledFrom([]string{"", "saved"}).Draw(t, "done")},
		}
		advance := func() {
			step, err := crashing(func() (driver.Step, error) { return machine.Advance(t.Context(), w, in) })
			w.crash, w.failing = 0, nil
			switch {
			case errors.Is(err, errCrash) || errors.Is(err, driver.ErrUnknown):
			case err != nil:
				t.Fatal(err)
			case step.Kind.Done():
				answers = append(answers, step.Kind)
			case len(answers) > 0:
				t.Fatalf("%s after it was answered with %v", step.Kind, answers)
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "moments") {
			switch rapid.IntRange(0, 3).Draw(t, "moment") {
			case 0:
				w.event(rapid.SampledFrom([]string{"says that it saved", "leaves", "ends", "goes on by itself", "its owner changes it"}).Draw(t, "event"))
			case 1:
				w.crash = rapid.IntRange(1, 4).Draw(t, "crash")
				advance()
			case 2:
				w.failing = rapid.SampledFrom([]error{driver.ErrUnknown, driver.ErrConflict}).Draw(t, "failure")
				advance()
			default:
				advance()
			}
		}
		for i := range 20 { // nothing more goes wrong, and the job saves or leaves
			advance()
			w.event([]string{"says that it saved", "leaves"}[i%2])
		}
		if len(answers) == 0 {
			t.Fatalf("no answer: %+v", w.record.Moving)
		}
		for _, a := range answers[1:] {
			if a != answers[0] && a != driver.StepFinished {
				t.Fatalf("answers %v, want the first to stay true", answers)
			}
		}
		n := 0
		for _, settings := range w.attempts {
			if settings == in.ID {
				n++
			}
		}
		if queued := w.state == driver.Stopped && w.next == in.ID; n > 1 || (answers[0] == driver.StepStarted) != (n == 1 || queued) {
			t.Fatalf("answered with %v, attempts with %v, next %s", answers, w.attempts, w.next)
		}
	})
}

func crashing(f func() (driver.Step, error)) (step driver.Step, err error) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == any(errCrash):
			err = errCrash
		default:
			panic(fmt.Sprint(p))
		}
	}()
	return f()
}
