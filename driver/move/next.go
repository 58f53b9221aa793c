package move

import (
	"fmt"
	"time"

	"pitchpipe/driver"
)

// At is where the scheduler has the job that an intent is about.
type At int

// The places.
const (
	Runs    At = iota // the attempt that the intent was made for runs
	Leaving           // its processes are being ended
	Waits             // nothing runs, and the next attempt waits
)

// End is how an intent ended, and why. The zero End: it has not.
type End struct {
	Kind driver.StepKind
	Why  string
}

// View is what a driver sees of a job in one call.
type View struct {
	Job driver.Job
	At  At

	// End: the intent has ended by what others did. The job ended, its owner or another
	// changed it, or its next attempt began.
	End End

	// Applied says how it is known that an attempt has or had the intent's settings, or
	// that the queued one will have them; empty = none does.
	Applied string

	Changed bool // the next attempt has the settings of the intent: all that is left is to start it
	Direct  bool // a change ends the attempt that runs
	Grows   bool // the intent is for more room than the job has
	Final   bool // the change can no longer be taken back: an error of a verb ends no intent
}

// Verb is what Next tells the driver to do.
type Verb int

// The verbs.
const (
	Wait   Verb = iota // nothing, for now
	Close              // note how the intent ended
	Ask                // ask the job to save
	Hear               // look whether it said that it saved
	Stop               // end the attempt
	Keep               // have the job that left wait for the intent
	Change             // give the next attempt its settings
	Start              // let the next attempt start
)

// Action is a verb and what Advance answers.
type Action struct {
	Verb Verb
	Step End
}

// Next decides what is to be done for the intent in progress.
func Next(v View, m *Moving, now time.Time) Action {
	phase := m.Phase
	if v.Direct && phase == Changed && v.At == Runs && !v.Changed && !m.Queued {
		phase = Ending // a crash came before the change, and the attempt runs on
	}
	switch {
	case v.End.Kind == driver.StepFinished && v.Applied != "": // it ended with the change
		return Action{Close, End{driver.StepStarted, v.Applied}}
	case v.End.Kind != "":
		return Action{Close, v.End}
	case phase == Changed && v.Changed:
		return Action{Start, End{driver.StepStarted, "queued"}}
	case v.Direct && v.At == Waits, (phase == Changed || phase == Stopped) && v.At == Waits:
		return Action{Change, End{driver.StepChanged, ""}}
	case m.Queued:
		return Action{Wait, End{driver.StepRunning, "it is about to begin"}}
	case phase == Changed || phase == Stopped:
		return Action{Wait, End{driver.StepStopped, "its processes are being ended"}}
	case v.At == Waits:
		return Action{Keep, End{driver.StepStopped, ""}}
	case v.At == Leaving:
		return Action{Wait, End{driver.StepCheckpointing, "its processes are being ended"}}
	case phase == Ending && m.late(now) && !m.Ended:
		// It has worked on since it saved, and would lose that.
		return Action{Close, End{driver.StepAbandoned, fmt.Sprintf("not ended within %v of being asked to save", m.Intent.Checkpoint.Grace)}}
	case phase == Ending && v.Direct:
		return Action{Change, End{driver.StepChanged, ""}}
	case phase == Ending:
		return Action{Stop, End{driver.StepCheckpointing, "being ended"}}
	case !m.Sent:
		return Action{Ask, End{driver.StepCheckpointing, "asked to save with " + m.Intent.Checkpoint.SignalName()}}
	case m.late(now):
		return Action{Close, End{driver.StepAbandoned, fmt.Sprintf("did not save within %v", m.Intent.Checkpoint.Grace)}}
	case m.Intent.Checkpoint.Done != "":
		return Action{Hear, End{driver.StepCheckpointing, "has not saved yet"}}
	}
	return Action{Wait, End{driver.StepCheckpointing, "has not saved yet"}}
}

// Stands returns the state of an intent that is not in progress. The zero End: it is new.
func Stands(v View, r *Record, in driver.Intent) End {
	kind, closed := r.Closed[in.ID]
	switch {
	case v.Applied != "":
		return End{driver.StepStarted, v.Applied}
	case closed && (kind == driver.StepStarted || !v.Job.State.Ended()):
		return End{kind, r.Why[in.ID]}
	case v.Job.State.Ended():
		return End{driver.StepFinished, string(v.Job.State)}
	case in.Fingerprint != v.Job.Fingerprint:
		return End{driver.StepSuperseded, "what its owner wrote is another"}
	case in.Attempt != v.Job.Attempt:
		return End{driver.StepSuperseded, fmt.Sprintf("the job is in attempt %d", v.Job.Attempt)}
	case r.Moving != nil:
		return End{driver.StepSuperseded, "intent " + r.Moving.Intent.ID + " is in progress"}
	}
	return v.End
}
