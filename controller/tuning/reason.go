package tuning

// Reason says why a branch was taken, "do nothing" included. The list is closed:
// a reason that is not in it does not exist.
type Reason string

// The reasons. Sentence holds the text that a user reads.
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
	ReasonAttemptDied  Reason = "attempt-died"
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

// Reasons lists every reason with the sentence that a user reads, in the order
// of the documentation.
func Reasons() []ReasonText {
	return []ReasonText{
		{ReasonNoStanza, "the job has no tuning stanza, so it is left alone"},
		{ReasonBadStanza, "the tuning stanza has errors, so the job runs as it is"},
		{ReasonOff, "its owner switched tuning off for this job"},
		{ReasonPaused, "tuning is paused"},
		{ReasonControlGroup, "it was drawn into the share of jobs that stays untuned for comparison"},
		{ReasonObserveMode, "its mode is observe: it is profiled and nothing is changed"},
		{ReasonRecommend, "its mode is recommend: the better setting is named, not applied"},
		{ReasonSiteForbids, "the site's policy does not allow it"},
		{ReasonSiteCap, "a cap of the site's policy is reached"},
		{ReasonDryRun, "the site runs the tuner dry: the decision is recorded, not carried out"},
		{ReasonUnsupported, "the scheduler cannot make this change"},

		{ReasonWarmingUp, "its first epochs are warm-up and are not judged"},
		{ReasonProfiling, "its early epochs are being measured"},
		{ReasonNoProgress, "it reports no progress, so its epochs cannot be told apart"},
		{ReasonNoTotal, "nothing says how many epochs it has, so the remaining work is unknown"},
		{ReasonNoCheckpoint, "it has no checkpoint, so it is never touched while it runs"},
		{ReasonNoSamples, "the exporter has no samples of it"},
		{ReasonPolluted, "other work on the node disturbed the measurement"},
		{ReasonPartial, "it runs on several nodes, of which only the first is measured"},
		{ReasonNoKnobs, "no knob has another value that its owner and the site allow"},
		{ReasonNoModel, "nothing has been learned yet to compare it with"},
		{ReasonTooFar, "it resembles no known class"},
		{ReasonAmbiguous, "it resembles two classes so equally that they cannot be told apart"},
		{ReasonThinProfile, "its profile holds too few samples to be compared with the classes"},
		{ReasonSchemaMismatch, "its counters are not those that the classes were learned with"},
		{ReasonOtherSettings, "no class was learned under settings that can be compared with its own"},
		{ReasonOtherMachine, "its attempts ran on machines of different kinds, so that their epochs cannot be compared"},
		{ReasonNearest, "its profile lies within the radius of this class"},
		{ReasonFirstSeen, "no earlier job of its kind has shown what another setting does"},
		{ReasonUncounted, "what it is tuned for cannot be counted: its joules, or what it is charged for, are not known"},

		{ReasonTooShort, "what remains of it is too short for a restart"},
		{ReasonWorthless, "the predicted saving does not exceed the cost of a restart by the margin"},
		{ReasonAlreadyBest, "it already runs under the best setting known for it"},
		{ReasonRecalled, "jobs of this kind have run before and their best setting is known"},
		{ReasonRightSized, "jobs of this kind have run before and needed far less memory than it asks for"},
		{ReasonTryingReturn, "jobs of this kind return, so this run tries a setting that may be better, for itself and those that follow"},
		{ReasonBudgetReturns, "the returns that may try a setting are used up, or under way"},
		{ReasonOwnFirst, "no run of its kind was measured under its owner's settings, which all others are compared with"},
		{ReasonClassKnown, "its class is known and has a better setting"},
		{ReasonPredicted, "what its first epochs made of its cores shows that this setting is better, which is verified"},
		{ReasonPredictedStart, "what an earlier run of its kind made of its cores shows that this setting is better; the run is compared with untuned ones when it ends"},
		{ReasonUnknownProbe, "it is unknown, so some of its early epochs try other settings"},
		{ReasonClassProbe, "its class is known but no setting is yet that is better for it, so some of its early epochs try others"},
		{ReasonProbeNext, "the next setting is tried on its next epochs"},
		{ReasonProbesDone, "every planned setting was tried"},
		{ReasonProbeWon, "of the settings tried, this one is better than its own by more than the noise"},
		{ReasonProbesNoGain, "no setting tried was better than its own by more than the noise"},
		{ReasonUnlikely, "no other setting is likely to save more than trying it costs"},
		{ReasonBudgetEnergy, "its energy budget is used up, so tuning ends and the job runs on"},
		{ReasonBudgetTime, "its time budget is used up, so tuning ends and the job runs on"},
		{ReasonBudgetRestarts, "its restarts are used up, so tuning ends and the job runs on"},
		{ReasonBudgetProbes, "its probes are used up"},
		{ReasonNearLimit, "its time limit is too near for a restart"},
		{ReasonNearClosing, "a reservation or maintenance takes its nodes too soon for a restart"},
		{ReasonLongQueue, "a restart would wait longer in the queue than it would save"},
		{ReasonUnknownQueue, "others wait for the same resources, and it is unknown how long a restart would wait"},
		{ReasonNoQualityGuard, "it has no quality guard, so its hyperparameters stay as they are"},
		{ReasonWholeRuns, "the knobs that are left change what it learns: they change only before a start, once whole runs (budget returns) have shown that the result keeps the guard and a run costs less"},
		{ReasonQualityLost, "the quality of its result fell by more than its owner allows"},
		{ReasonSlower, "the setting is slower than its owner allows"},
		{ReasonRemembered, "this setting made jobs of its kind worse before"},
		{ReasonUncertain, "the predicted saving is too uncertain: it may not exceed the cost of a restart by the margin"},
		{ReasonOverEnergy, "with the change it could use more than its energy budget, and under its owner's settings it would not"},
		{ReasonOverTime, "with the change it could take longer than its time budget, and under its owner's settings it would not"},
		{ReasonLossLimit, "trying another setting could cost more than tuning may cost this job where it does not work out"},
		{ReasonLessPromising, "another setting promises more"},
		{ReasonFewRuns, "too few jobs have shown what this setting does"},

		{ReasonImproved, "it does better than untuned, and the interval excludes no effect"},
		{ReasonRegressed, "it does worse than untuned, and the interval excludes no effect"},
		{ReasonNeutral, "the effect lies within the margin that counts as none"},
		{ReasonInconclusive, "the measurements so far cannot tell better from worse"},
		{ReasonModelled, "its energy is modelled, not measured, which supports no claim"},
		{ReasonGraceExpired, "it did not save a checkpoint in time, so the move was abandoned and the job runs on"},
		{ReasonStopLoss, "tuning has cost the job as much as it may, so it leaves this setting at once"},
		{ReasonDoubted, "it runs slower than jobs of its kind did untuned, so its owner's settings are tried on its next epochs"},
		{ReasonOutOfMemory, "it ran out of memory under a tuned limit, so its owner's value is back"},
		{ReasonAttemptDied, "the tuned attempt failed, so its owner's settings are back"},
		{ReasonKilled, "a limit of its scheduler ended it under tuned settings, which are not given to such a job again"},

		{ReasonFinished, "it finished its work"},
		{ReasonFailed, "it failed by itself"},
		{ReasonCancelled, "it was cancelled"},
		{ReasonLost, "the scheduler lost it"},
		{ReasonOwnerChanged, "its owner or the scheduler changed it meanwhile, so the plan no longer applies"},
		{ReasonBeganFirst, "it began before it could be changed, and is watched as it runs"},
		{ReasonNoRoom, "there is no room now for what the better setting needs, so it keeps what it has rather than wait longer"},
		{ReasonUnreachable, "the scheduler cannot be reached"},
		{ReasonDenied, "the scheduler refused the change"},
		{ReasonDriverFailure, "the change could not be carried out"},
	}
}

// ReasonText is a reason and its sentence.
type ReasonText struct {
	Reason   Reason `json:"reason"`
	Sentence string `json:"sentence"`
}

// Sentence returns the text that a user reads.
func (r Reason) Sentence() string {
	for _, t := range Reasons() {
		if t.Reason == r {
			return t.Sentence
		}
	}
	return string(r)
}
