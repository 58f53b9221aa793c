package tuning

import (
	_ "embed"
	"strings"
)

// Reason says why a branch was taken, "do nothing" included. The list is closed:
// a reason that is not in it does not exist.
type Reason string

// The reasons. REASONS.md has the sentence of each.
const (
	ReasonNone Reason = ""

	// Not ours to touch.
	ReasonNoStanza     Reason = "no-stanza"
	ReasonBadStanza    Reason = "bad-stanza"
	ReasonOff          Reason = "off"
	ReasonPaused       Reason = "paused"
	ReasonControlGroup Reason = "control-group"
	ReasonObserveMode  Reason = "observe-mode"
	ReasonRecommend    Reason = "recommend-mode"
	ReasonSiteForbids  Reason = "site-forbids"
	ReasonSiteCap      Reason = "site-cap"
	ReasonDryRun       Reason = "dry-run"
	ReasonUnsupported  Reason = "unsupported"

	// Not enough known.
	ReasonWarmingUp      Reason = "warming-up"
	ReasonProfiling      Reason = "profiling"
	ReasonNoProgress     Reason = "no-progress"
	ReasonNoTotal        Reason = "no-total"
	ReasonNoCheckpoint   Reason = "no-checkpoint"
	ReasonNoSamples      Reason = "no-samples"
	ReasonPolluted       Reason = "polluted"
	ReasonPartial        Reason = "partial"
	ReasonNoKnobs        Reason = "no-knobs"
	ReasonNoModel        Reason = "no-model"
	ReasonTooFar         Reason = "too-far"
	ReasonAmbiguous      Reason = "ambiguous"
	ReasonThinProfile    Reason = "thin-profile"
	ReasonSchemaMismatch Reason = "schema-mismatch"
	ReasonOtherSettings  Reason = "other-settings"
	ReasonOtherMachine   Reason = "other-machine"
	ReasonNearest        Reason = "nearest-class"
	ReasonFirstSeen      Reason = "first-seen"
	ReasonUncounted      Reason = "uncounted"

	// Worth it, or not.
	ReasonTooShort       Reason = "too-short"
	ReasonWorthless      Reason = "worthless"
	ReasonAlreadyBest    Reason = "already-best"
	ReasonRecalled       Reason = "recalled"
	ReasonRightSized     Reason = "memory-right-sized"
	ReasonTryingReturn   Reason = "trying-return"
	ReasonBudgetReturns  Reason = "budget-returns"
	ReasonOwnFirst       Reason = "own-settings-first"
	ReasonClassKnown     Reason = "class-known"
	ReasonPredicted      Reason = "predicted"
	ReasonPredictedStart Reason = "predicted-start"
	ReasonUnknownProbe   Reason = "unknown-probe"
	ReasonClassProbe     Reason = "class-probe"
	ReasonProbeNext      Reason = "probe-next"
	ReasonProbesDone     Reason = "probes-done"
	ReasonProbeWon       Reason = "probe-won"
	ReasonProbesNoGain   Reason = "probes-no-gain"
	ReasonUnlikely       Reason = "unlikely"
	ReasonBudgetEnergy   Reason = "budget-energy"
	ReasonBudgetTime     Reason = "budget-time"
	ReasonBudgetRestarts Reason = "budget-restarts"
	ReasonBudgetProbes   Reason = "budget-probes"
	ReasonNearLimit      Reason = "near-time-limit"
	ReasonNearClosing    Reason = "near-reservation"
	ReasonLongQueue      Reason = "long-queue"
	ReasonUnknownQueue   Reason = "unknown-queue"
	ReasonNoQualityGuard Reason = "no-quality-guard"
	ReasonWholeRuns      Reason = "whole-runs-only"
	ReasonQualityLost    Reason = "quality-lost"
	ReasonSlower         Reason = "slower-than-allowed"
	ReasonRemembered     Reason = "remembered-regression"
	ReasonUncertain      Reason = "uncertain-saving"
	ReasonOverEnergy     Reason = "over-energy-budget"
	ReasonOverTime       Reason = "over-time-budget"
	ReasonLossLimit      Reason = "loss-limit"
	ReasonLessPromising  Reason = "less-promising"
	ReasonFewRuns        Reason = "too-few-runs"

	// After a move.
	ReasonImproved     Reason = "improved"
	ReasonRegressed    Reason = "regressed"
	ReasonNeutral      Reason = "neutral"
	ReasonInconclusive Reason = "inconclusive"
	ReasonModelled     Reason = "modelled-energy"
	ReasonGraceExpired Reason = "grace-expired"
	ReasonStopLoss     Reason = "stop-loss"
	ReasonDoubted      Reason = "doubted"
	ReasonOutOfMemory  Reason = "out-of-memory"
	ReasonKilled       Reason = "killed-at-limit"

	// About the job or the scheduler.
	ReasonFinished      Reason = "finished"
	ReasonFailed        Reason = "failed"
	ReasonCancelled     Reason = "cancelled"
	ReasonLost          Reason = "lost"
	ReasonOwnerChanged  Reason = "owner-changed"
	ReasonBeganFirst    Reason = "began-first"
	ReasonNoRoom        Reason = "no-room"
	ReasonUnreachable   Reason = "unreachable"
	ReasonDenied        Reason = "denied"
	ReasonDriverFailure Reason = "driver-failure"
)

// page has a row for each reason: "| `reason` | sentence | settings |".
//
//go:embed REASONS.md
var page string

// row is the sentence of a reason, and the settings that it follows from.
func (r Reason) row() (sentence, settings string, ok bool) {
	_, row, ok := strings.Cut(page, "\n| `"+string(r)+"` | ")
	row, _, _ = strings.Cut(row, "|\n")
	sentence, settings, _ = strings.Cut(row, " | ")
	return sentence, strings.TrimSpace(settings), ok
}

// Sentence returns the text that a user reads.
func (r Reason) Sentence() string {
	if sentence, _, ok := r.row(); ok {
		return sentence
	}
	return string(r)
}
