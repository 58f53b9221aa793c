package reconcile

import "errors"

// Phase is where a job is on its way through the tuner.
type Phase string

// The phases.
const (
	Seen      Phase = "seen"      // its file has yet to be read
	Ignored   Phase = "ignored"   // it has no stanza that can be used
	Waiting   Phase = "waiting"   // for its start, before which it can be changed at no cost
	Profiling Phase = "profiling" // its epochs are measured, and it is decided about
	Held      Phase = "held"      // it stays as it is for now; it is decided about again
	Changing  Phase = "changing"  // an intent is under way; Record.Move says which
	Verifying Phase = "verifying" // it runs under another setting that is compared with its owner's
	Settled   Phase = "settled"   // it stays as it is, unless what it runs under turns out worse or better still
	Ended     Phase = "ended"     // Record.State says how
)

// Phases lists the phases.
func Phases() []Phase {
	return []Phase{Seen, Ignored, Waiting, Profiling, Held, Changing, Verifying, Settled, Ended}
}

// Trigger is what moves a job from one phase to another.
type Trigger string

// The triggers.
const (
	NoStanza      Trigger = "no stanza, or one that cannot be used"
	StanzaRead    Trigger = "stanza read"
	KnownKind     Trigger = "its kind is known while it is pending"
	JobStarted    Trigger = "an attempt runs"
	DecidedHold   Trigger = "decision: hold"
	DecidedChange Trigger = "decision: probe, move or roll back"
	IntentDone    Trigger = "the next attempt was started"
	IntentVoid    Trigger = "the intent ended without a change"
	OutcomeKnown  Trigger = "outcome known"
	Worse         Trigger = "outcome: regressed"
	StopLoss      Trigger = "stop-loss"
	OwnerChanged  Trigger = "its owner changed the job"
	JobEnded      Trigger = "the job ended"
	OurFailure    Trigger = "our handling failed"
	LookAgain     Trigger = "looked at again"
)

// Arrow is one permitted transition.
type Arrow struct {
	From, To Phase
	By       Trigger
}

// ErrTransition means that the loop tried what the table does not permit: a bug.
var ErrTransition = errors.New("transition not in the table")

// Arrows is the one table of transitions. STATES.md is generated from it.
func Arrows() []Arrow {
	arrows := []Arrow{
		{Seen, Ignored, NoStanza},
		{Seen, Waiting, StanzaRead},

		{Waiting, Changing, KnownKind},
		{Waiting, Profiling, JobStarted},
		{Waiting, Settled, DecidedHold},

		{Profiling, Changing, DecidedChange},
		{Profiling, Held, DecidedHold},
		{Profiling, Settled, DecidedHold},
		{Profiling, Verifying, DecidedHold}, // the last probe was the best: it stays

		{Held, Profiling, LookAgain},
		{Held, Settled, DecidedHold},

		{Changing, Profiling, IntentDone}, // a probe
		{Changing, Verifying, IntentDone}, // a move
		{Changing, Settled, IntentDone},   // a roll-back
		{Changing, Waiting, IntentVoid},
		{Changing, Profiling, IntentVoid},
		{Changing, Settled, IntentVoid},

		{Verifying, Settled, OutcomeKnown},
		{Verifying, Changing, DecidedChange}, // a recalled setting is doubted: its owner's is tried
		{Verifying, Profiling, LookAgain},    // an attempt came that was not ours
		{Settled, Changing, DecidedChange},   // its epochs show or promise a setting that is better still
		{Settled, Changing, Worse},
	}
	for _, from := range []Phase{Profiling, Held, Verifying, Settled} {
		arrows = append(arrows, Arrow{from, Changing, StopLoss})
	}
	for _, from := range Phases() {
		if from == Ended {
			continue
		}
		arrows = append(arrows, Arrow{from, Ended, JobEnded}, Arrow{from, Settled, OurFailure})
		if from != Seen {
			arrows = append(arrows, Arrow{from, Seen, OwnerChanged})
		}
	}
	return arrows
}

// Over reports whether the phase is final.
func (p Phase) Over() bool { return p == Ended }
