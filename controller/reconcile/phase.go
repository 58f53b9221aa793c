package reconcile

import (
	_ "embed"
	"errors"
	"strings"
)

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

//go:embed STATES.md
var states string

// Arrows are the lines "from --> to: trigger" of STATES.md.
func Arrows() []Arrow {
	var out []Arrow
	for line := range strings.Lines(states) {
		from, rest, _ := strings.Cut(strings.TrimSpace(line), " --> ")
		to, by, ok := strings.Cut(rest, ": ")
		switch {
		case !ok:
		case from != "any":
			out = append(out, Arrow{Phase(from), Phase(to), Trigger(by)})
		default:
			for _, p := range Phases() {
				if !p.Over() && (p != Seen || to != string(Seen)) {
					out = append(out, Arrow{p, Phase(to), Trigger(by)})
				}
			}
		}
	}
	return out
}

// Over reports whether the phase is final.
func (p Phase) Over() bool { return p == Ended }
