package verify

import (
	"math"
	"time"

	"pitchpipe/controller/tuning"
)

// Pair is two jobs that did the same work, one tuned and one not. Both have ended:
// a pair that is still growing is not evidence yet.
//
// How pairs are built decides what they show:
//
//   - Chance alone has chosen who stays untuned: the site's untuned share. Jobs whose
//     owners switched tuning off differ in more than that.
//   - Equal work: the same kind, the same number of epochs, all of them done, the
//     same settings asked for, the same kind of machine. The inputs may differ.
//   - The rule that pairs them looks at no result. Each job is used once, with a
//     partner near in time, since machines and neighbours change.
//   - A pair does not change once it was made, and pairs are in the order in which they
//     were made: the interval holds at all times only over a sequence that grows and is
//     never shuffled again.
//   - A tuned job counts whatever became of it. Its probe epochs are marked as warm-up,
//     and what they and the restarts with their warm-up cost beyond the untuned job's
//     same epochs is the charge.
//
// The pair counts as its mean log ratio over the epochs that both did and neither
// drops: seconds (or joules) of epoch n tuned over those of epoch n untuned.
type Pair struct {
	Tuned   []tuning.Epoch
	Untuned []tuning.Epoch

	// What probes and restarts cost the tuned job beyond the epochs that are
	// compared. Charged to the tuned side, spread over those epochs.
	ChargeSeconds float64
	ChargeJoules  tuning.Joules
	ChargeHeld    float64 // the part of tuning.Cost that is not energy, in its unit
	ChargeSource  string  // of ChargeJoules; empty: that of the epochs that are compared
	// JoulesUnknown: tuning cost joules that were not measured. The pair is then left
	// out wherever joules count, since taking them for none would flatter tuning.
	JoulesUnknown bool
}

// Input is the evidence and the terms of the comparison. The zero value of each
// term means its default.
type Input struct {
	// Within one job: its epochs under its owner's settings, and those after the
	// move. Ignored where there are Pairs.
	Before []tuning.Epoch
	After  []tuning.Epoch

	// Between jobs. The claim takes eight pairs or more.
	Pairs []Pair

	tuning.Measure                 // of tuning.DefaultObjective when empty
	MaxSlowdown    float64         // 0 = unbounded
	Quality        *tuning.Quality // nil = not guarded

	// EnforceModelled lets modelled joules support a claim.
	EnforceModelled bool

	// Candidates is among how many settings this one was chosen by comparing them
	// with the same untuned epochs. The error is shared among them, so that the
	// choice is paid for. 0 and 1: it was not chosen that way.
	Candidates int

	Level float64 // of the interval; 0: DefaultLevel

	Baseline tuning.Settings
	Tuned    tuning.Settings
	At       time.Time
}

// What is taken for given.
const (
	DefaultLevel = 0.95

	// Margin is the share up to which an effect counts as none.
	Margin = 0.02

	// AttemptSD is the standard deviation of ln(seconds) between attempts of one job on
	// one machine, as known before any was seen.
	AttemptSD = 0.01

	// Unbounded is the bound of an interval that has none: a factor of a million.
	// It is finite so that an Outcome can be written as JSON.
	Unbounded = 6 * math.Ln10
)

// sides are the epochs of both sides, job by job.
func (in Input) sides() [][]tuning.Epoch {
	out := [][]tuning.Epoch{in.Before, in.After}
	for _, p := range in.Pairs {
		out = append(out, p.Tuned, p.Untuned)
	}
	return out
}
