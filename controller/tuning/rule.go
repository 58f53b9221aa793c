package tuning

import (
	"fmt"
	"slices"
	"strings"
)

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
	values := map[string]any{
		"max_mode":       s.MaxMode,
		"knobs":          "[" + strings.Join(s.Knobs, ", ") + "]",
		"above_request":  s.AboveRequest,
		"may_restart":    s.MayRestart,
		"dry_run":        s.DryRun,
		"enforce_model":  s.EnforceModel,
		"control":        s.Control,
		"probe_share":    s.ProbeShare,
		"margin":         s.Margin,
		"limit_reserve":  s.LimitReserve,
		"job_restarts":   s.JobRestarts,
		"kind_returns":   s.KindReturns,
		"user_restarts":  s.UserRestarts,
		"total_restarts": s.TotalRestarts,
		"max_tuned":      s.MaxTuned,
	}
	if s.Knobs == nil {
		values["knobs"] = "all"
	}
	if knob, ok := strings.CutPrefix(key, "ceilings."); ok {
		values[key] = Knob{Name: knob}.spell(s.Ceilings[knob])
	}
	return Rule{Name: key, Value: fmt.Sprint(values[key]), From: s.Sources[key]}
}

// Rule is a key or a block of the stanza and where it comes from.
func (p Policy) Rule(key string) Rule {
	values := map[string]any{
		"mode":                  p.Mode,
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

// Rules are those by which a job is held for a reason; p is narrowed by the site. Other
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
