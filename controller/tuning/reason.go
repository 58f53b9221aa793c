package tuning

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
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
	ReasonNoRequeue      Reason = "no-requeue"
	ReasonFatalSignal    Reason = "fatal-signal"
	ReasonRestartsEnd    Reason = "restarts-end-it"
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
	ReasonTryingTrial    Reason = "trying-trial"
	ReasonBudgetReturns  Reason = "budget-returns"
	ReasonOwnFirst       Reason = "own-settings-first"
	ReasonAllocation     Reason = "allocation"
	ReasonClassKnown     Reason = "class-known"
	ReasonPredicted      Reason = "predicted"
	ReasonPredictedStart Reason = "predicted-start"
	ReasonUnknownProbe   Reason = "unknown-probe"
	ReasonClassProbe     Reason = "class-probe"
	ReasonProbeNext      Reason = "probe-next"
	ReasonSiblingProbes  Reason = "sibling-probes"
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

	// About the actions that a job offers.
	ReasonActionKnown    Reason = "action-known"
	ReasonActionTried    Reason = "action-tried"
	ReasonActionDoubtful Reason = "action-doubtful"

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
	ReasonSignalEnded  Reason = "ended-by-signal"
	ReasonResumeFailed Reason = "resume-failed"

	// About the job or the scheduler.
	ReasonFinished      Reason = "finished"
	ReasonFailed        Reason = "failed"
	ReasonCancelled     Reason = "cancelled"
	ReasonLost          Reason = "lost"
	ReasonOwnerChanged  Reason = "owner-changed"
	ReasonTrialsWait    Reason = "trials-wait"
	ReasonNoTrialWaits  Reason = "no-trial-waits"
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

// Rule is one setting that decides what may happen to a job: of the site's policy, of the
// stanza, or of what runs the job.
type Rule struct {
	Name  string `json:"name"` // as it is written, such as above_request or budget returns
	Value string `json:"value"`
	From  string `json:"from,omitempty"` // file:line, or FromDefault; empty = unknown
}

// FromDefault is the From of a rule that is not in any file.
const FromDefault = "default"

// String is the rule with its place.
func (r Rule) String() string {
	if r.From == "" {
		return r.Name + "=" + r.Value
	}
	return fmt.Sprintf("%s=%s (%s)", r.Name, r.Value, r.From)
}

// Limit is what a rule takes away from a knob.
type Limit struct {
	Knob string `json:"knob"`
	Why  string `json:"why"`
	Rule Rule   `json:"rule"`
}

// Rule is a key of the site's policy and where it comes from.
func (s Site) Rule(key string) Rule {
	var value any
	for field, v := range reflect.ValueOf(s).Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == key {
			value = v.Interface()
		}
	}
	knob, bounds := strings.CutPrefix(key, "ceilings.")
	switch {
	case bounds:
		value = Spell(knob, s.Ceilings[knob])
	case key == "knobs" && s.Knobs == nil:
		value = "all"
	case key == "knobs":
		value = "[" + strings.Join(s.Knobs, ", ") + "]"
	}
	return Rule{Name: key, Value: fmt.Sprint(value), From: s.Sources[key]}
}

// Rule is a key or a block of the stanza and where it comes from.
func (p Policy) Rule(key string) Rule {
	values := map[string]any{
		"mode":                  p.Mode,
		"objective":             p.Objective,
		"max_slowdown":          p.MaxSlowdown,
		"profile warmup_epochs": p.Profile.WarmupEpochs,
		"profile epochs":        p.Profile.Epochs,
		"budget energy":         p.Budget.Energy,
		"budget time":           p.Budget.Time,
		"budget restarts":       p.Budget.Restarts,
		"budget probes":         p.Budget.Probes,
		"budget returns":        p.Budget.Returns,
	}
	if p.Progress.Total > 0 {
		values["progress total"] = p.Progress.Total
	}
	if p.Quality != nil {
		values["quality max_loss"] = p.Quality.MaxLoss
	}
	if name, ok := strings.CutPrefix(key, "knob "); ok {
		k, _ := p.Knob(name)
		values[key] = k.choice()
	}
	r := Rule{Name: key, Value: "none", From: p.Sources[key]}
	if v, ok := values[key]; ok {
		r.Value = fmt.Sprint(v)
	}
	if r.From == "" && p.Sources != nil {
		r.From = FromDefault
	}
	return r
}

// Rules are those that hold a job for a reason; p is narrowed by the site. Other
// reasons come from what was measured.
func Rules(r Reason, p Policy, s Site) []Rule {
	var out []Rule
	_, settings, _ := r.row()
	switch {
	case r == ReasonNoKnobs, r == ReasonSiteForbids && (p.Checkpoint != nil || s.MayRestart):
		for _, l := range p.Limits {
			if !slices.Contains(out, l.Rule) {
				out = append(out, l.Rule)
			}
		}
		return out
	case settings == "", r == ReasonSlower && p.MaxSlowdown <= 0:
		return nil
	}
	for key := range strings.SplitSeq(settings, ", ") {
		if site, ok := strings.CutPrefix(key, "site "); ok {
			out = append(out, s.Rule(site))
			continue
		}
		stanza, site, _ := strings.Cut(key, " or site ")
		rule := p.Rule(stanza)
		if stricter := s.Rule(site); stricter.Value == rule.Value && rule.Value != "0" {
			rule = stricter
		}
		out = append(out, rule)
	}
	return out
}

// choice prints what a knob may be set to.
func (k Knob) choice() string {
	if len(k.Values) > 0 {
		return k.spell(k.Values...)
	}
	return k.spell(k.Min) + " to " + k.spell(k.Max)
}

// spell prints values of the knob for people.
func (k Knob) spell(values ...Value) string {
	return strings.Join(Each(values, func(v Value) string { return Spell(k.Name, v) }), ",")
}

// Spell prints a value of a knob as a stanza has it.
func Spell(knob string, v Value) string {
	if knob == Memory && v.IsNumber() {
		return Bytes(v.Float()).String()
	}
	return v.String()
}
