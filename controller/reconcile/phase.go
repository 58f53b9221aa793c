package reconcile

import (
	"errors"
	"fmt"
	"slices"
)

// Phase is where a job is on its way through the tuner.
type Phase string

// The phases.
const (
	Seen        Phase = "seen"
	Ignored     Phase = "ignored"
	Eligible    Phase = "eligible"
	Recalled    Phase = "recalled"
	Profiling   Phase = "profiling"
	Classified  Phase = "classified"
	Held        Phase = "held"
	Probing     Phase = "probing"
	Moving      Phase = "moving"
	RollingBack Phase = "rolling-back"
	Verifying   Phase = "verifying"
	Settled     Phase = "settled"
	Suspended   Phase = "suspended"
	Ended       Phase = "ended"
	Cancelled   Phase = "cancelled"
	Failed      Phase = "failed"
)

// Trigger is what moves a job from one phase to another.
type Trigger string

// The triggers.
const (
	NoStanza     Trigger = "no stanza, or one that cannot be used"
	StanzaRead   Trigger = "stanza read"
	KnownKind    Trigger = "its kind is known while it is pending"
	JobStarted   Trigger = "an attempt runs"
	ProfileReady Trigger = "profile ready"
	ToldToHold   Trigger = "decision: hold"
	ToldToProbe  Trigger = "decision: probe"
	ToldToMove   Trigger = "decision: move"
	ToldToReturn Trigger = "decision: roll back"
	IntentDone   Trigger = "the next attempt was started"
	IntentVoid   Trigger = "the intent ended without a change"
	OutcomeKnown Trigger = "outcome known"
	Worse        Trigger = "outcome: regressed"
	Stopped      Trigger = "stop-loss"
	OwnerCame    Trigger = "its owner changed the job"
	Unreachable  Trigger = "scheduler unreachable"
	Reachable    Trigger = "scheduler reachable again"
	JobEnded     Trigger = "the job ended"
	JobCancelled Trigger = "the job was cancelled"
	OurFault     Trigger = "our handling failed"
	LookAgain    Trigger = "looked at again"
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
		{Seen, Eligible, StanzaRead},

		{Eligible, Recalled, KnownKind},
		{Eligible, Profiling, JobStarted},
		{Eligible, Held, ToldToHold},

		{Recalled, Verifying, IntentDone},
		{Recalled, Eligible, IntentVoid},

		{Profiling, Classified, ProfileReady},
		{Profiling, Held, ToldToHold},
		{Profiling, RollingBack, ToldToReturn},
		{Profiling, Moving, ToldToMove}, // from a probe that others disturb to the best setting so far

		{Classified, Held, ToldToHold},
		{Classified, Probing, ToldToProbe},
		{Classified, Moving, ToldToMove},
		{Classified, RollingBack, ToldToReturn},
		{Classified, Verifying, ToldToHold}, // the last probe was the best: it stays

		{Held, Profiling, LookAgain},
		{Held, Profiling, JobStarted},
		{Held, Classified, ProfileReady},

		{Probing, Profiling, IntentDone},
		{Probing, Profiling, IntentVoid},
		{Moving, Verifying, IntentDone},
		{Moving, Profiling, IntentVoid},
		{RollingBack, Settled, IntentDone},
		{RollingBack, Settled, IntentVoid},

		{Verifying, Settled, OutcomeKnown},
		{Verifying, RollingBack, Worse},
		{Verifying, Probing, ToldToProbe}, // a recalled setting is doubted: its owner's are tried
		{Verifying, Profiling, LookAgain}, // an attempt came that was not ours
		{Settled, RollingBack, Worse},
		{Settled, Moving, ToldToMove}, // what it showed under a better setting shows one that is better still
		{Settled, Probing, ToldToProbe},
		{Settled, Profiling, LookAgain},
		{Ignored, Eligible, StanzaRead},
	}
	for _, from := range []Phase{Profiling, Classified, Held, Verifying, Settled} {
		arrows = append(arrows, Arrow{from, RollingBack, Stopped}, Arrow{from, Moving, Stopped}) // the stop-loss
	}
	for _, from := range Live() {
		arrows = append(
			arrows,
			Arrow{from, Ended, JobEnded},
			Arrow{from, Cancelled, JobCancelled},
			Arrow{from, Failed, OurFault},
		)
		if from != Suspended {
			arrows = append(arrows, Arrow{from, Suspended, Unreachable}, Arrow{Suspended, from, Reachable})
		}
		if from != Seen {
			arrows = append(arrows, Arrow{from, Seen, OwnerCame})
		}
	}
	return append(
		arrows,
		Arrow{Failed, Ended, JobEnded},
		Arrow{Failed, Cancelled, JobCancelled},
		Arrow{Failed, Seen, OwnerCame},
		Arrow{Failed, Suspended, Unreachable},
		Arrow{Suspended, Failed, Reachable},
	)
}

// Live lists the phases in which the job may still be acted upon.
func Live() []Phase {
	return []Phase{
		Seen, Ignored, Eligible, Recalled, Profiling, Classified, Held, Probing, Moving, RollingBack,
		Verifying, Settled, Suspended,
	}
}

// Over reports whether the phase is final.
func (p Phase) Over() bool { return p == Ended || p == Cancelled }

// Acting reports whether an intent is under way in this phase.
func (p Phase) Acting() bool {
	return p == Recalled || p == Probing || p == Moving || p == RollingBack
}

func permitted(from, to Phase, by Trigger) error {
	if slices.Contains(Arrows(), Arrow{from, to, by}) {
		return nil
	}
	return fmt.Errorf("%s → %s by %q: %w", from, to, by, ErrTransition)
}
