package tuning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rule is one setting that decides what may happen to a job: of the site's policy, of the
// stanza, or of what runs the job.
type Rule struct {
	Name  string `json:"name"` // as it is written, such as above_request or budget returns
	Value string `json:"value"`
	From  string `json:"from,omitempty"` // file:line, or FromDefault; empty = unknown
}

// FromDefault is where a rule comes from that is not in any file.
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
	r := Rule{Name: key, From: s.Sources[key]}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	knob, ceiling := strings.CutPrefix(key, "ceilings.")
	switch {
	case ceiling:
		r.Value = Knob{Name: knob}.spell(s.Ceilings[knob])
	case key == "max_mode":
		r.Value = string(s.MaxMode)
	case key == "knobs":
		r.Value = "all"
		if s.Knobs != nil {
			r.Value = "[" + strings.Join(s.Knobs, ", ") + "]"
		}
	case key == "control":
		r.Value = number(s.Control)
	case key == "probe_share":
		r.Value = number(s.ProbeShare)
	case key == "margin":
		r.Value = number(s.Margin)
	case key == "limit_reserve":
		r.Value = s.LimitReserve.String()
	default:
		flags := map[string]bool{"above_request": s.AboveRequest, "may_restart": s.MayRestart, "dry_run": s.DryRun, "enforce_model": s.EnforceModel}
		counts := map[string]int{
			"job_restarts": s.JobRestarts, "kind_returns": s.KindReturns, "user_restarts": s.UserRestarts,
			"total_restarts": s.TotalRestarts, "max_tuned": s.MaxTuned,
		}
		if on, ok := flags[key]; ok {
			r.Value = strconv.FormatBool(on)
		} else {
			r.Value = strconv.Itoa(counts[key])
		}
	}
	return r
}

// Rule is a key or a block of the stanza and where it comes from.
func (p Policy) Rule(key string) Rule {
	r := Rule{Name: key, Value: "none", From: p.Sources[key]}
	if r.From == "" && p.Sources != nil {
		r.From = FromDefault
	}
	b := p.Budget
	switch key {
	case "mode":
		r.Value = string(p.Mode)
	case "max_slowdown":
		r.Value = strconv.FormatFloat(p.MaxSlowdown, 'g', -1, 64)
	case "progress total":
		if p.Progress.Total > 0 {
			r.Value = strconv.Itoa(p.Progress.Total)
		}
	case "profile warmup_epochs":
		r.Value = strconv.Itoa(p.Profile.WarmupEpochs)
	case "profile epochs":
		r.Value = strconv.Itoa(p.Profile.Epochs)
	case "quality max_loss":
		if p.Quality != nil {
			r.Value = strconv.FormatFloat(p.Quality.MaxLoss, 'g', -1, 64)
		}
	case "budget energy":
		r.Value = b.Energy.String()
	case "budget time":
		r.Value = b.Time.String()
	case "budget restarts":
		r.Value = strconv.Itoa(b.Restarts)
	case "budget probes":
		r.Value = strconv.Itoa(b.Probes)
	case "budget returns":
		r.Value = strconv.Itoa(b.Returns)
	default: // a block
		name, _ := strings.CutPrefix(key, "knob ")
		if k, ok := p.Knob(name); ok && len(k.Values) > 0 {
			r.Value = k.spell(k.Values...)
		} else if ok {
			r.Value = k.spell(k.Min) + " to " + k.spell(k.Max)
		}
	}
	return r
}

// Rules are those by which a job is held for a reason; p is narrowed by the site. Other
// reasons come from what was measured.
func Rules(r Reason, p Policy, s Site) []Rule {
	stricter := func(site int, key, stanza string, have int) []Rule {
		if site > 0 && have == site {
			return []Rule{s.Rule(key)}
		}
		return []Rule{p.Rule(stanza)}
	}
	switch r { //nolint:exhaustive // the others have no rule
	case ReasonObserveMode, ReasonRecommend:
		if p.Mode == s.MaxMode {
			return []Rule{s.Rule("max_mode")}
		}
		return []Rule{p.Rule("mode")}
	case ReasonDryRun:
		return []Rule{s.Rule("dry_run")}
	case ReasonControlGroup:
		return []Rule{s.Rule("control")}
	case ReasonSiteForbids:
		if p.Checkpoint == nil && !s.MayRestart {
			return []Rule{s.Rule("may_restart")}
		}
		return p.limits()
	case ReasonNoKnobs:
		return p.limits()
	case ReasonNoProgress:
		return []Rule{p.Rule("progress")}
	case ReasonNoTotal:
		return []Rule{p.Rule("progress total")}
	case ReasonNoCheckpoint:
		return []Rule{p.Rule("checkpoint")}
	case ReasonWarmingUp:
		return []Rule{p.Rule("profile warmup_epochs")}
	case ReasonProfiling:
		return []Rule{p.Rule("profile epochs")}
	case ReasonTooShort:
		return []Rule{s.Rule("margin"), s.Rule("probe_share")}
	case ReasonWorthless, ReasonUncertain, ReasonLongQueue, ReasonUnknownQueue:
		return []Rule{s.Rule("margin")}
	case ReasonBudgetRestarts:
		return stricter(s.JobRestarts, "job_restarts", "budget restarts", p.Budget.Restarts)
	case ReasonBudgetProbes:
		return []Rule{p.Rule("budget probes")}
	case ReasonBudgetReturns, ReasonWholeRuns:
		return stricter(s.KindReturns, "kind_returns", "budget returns", p.Budget.Returns)
	case ReasonBudgetEnergy, ReasonOverEnergy:
		return []Rule{p.Rule("budget energy")}
	case ReasonBudgetTime, ReasonOverTime:
		return []Rule{p.Rule("budget time")}
	case ReasonNearLimit, ReasonNearClosing:
		return []Rule{s.Rule("limit_reserve")}
	case ReasonNoQualityGuard:
		return []Rule{p.Rule("quality")}
	case ReasonQualityLost:
		return []Rule{p.Rule("quality max_loss")}
	case ReasonSlower:
		if p.MaxSlowdown > 0 {
			return []Rule{p.Rule("max_slowdown")}
		}
	case ReasonModelled:
		return []Rule{s.Rule("enforce_model")}
	}
	return nil
}

// limits are the rules that took something away from knobs, each once.
func (p Policy) limits() []Rule {
	var out []Rule
	for _, l := range p.Limits {
		if !slices.Contains(out, l.Rule) {
			out = append(out, l.Rule)
		}
	}
	return out
}

// spell prints values of the knob for people.
func (k Knob) spell(values ...Value) string {
	var out []string
	for _, v := range values {
		text := v.String()
		if k.Name == Memory && v.IsNumber() {
			text = Bytes(v.Float()).String()
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}
