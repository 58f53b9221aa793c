package tuning

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Settable reports whether a value of the knob is found out by trying: memory follows from what
// jobs needed, GPUs and the power limit are read and not set.
func Settable(name string) bool { return name != Memory && name != GPUs && name != PowerLimit }

// Guarded reports whether a knob may change: what changes what a job learns needs a quality guard.
func (p Policy) Guarded(name string) bool { return p.Quality != nil || !p.Learns(name) }

// Takes reports whether a knob and those that follow it permit a value.
func (p Policy) Takes(k Knob, v Value, own Settings) bool {
	if !k.Allows(v) {
		return false
	}
	return !slices.ContainsFunc(p.Knobs, func(f Knob) bool {
		bounded := len(f.Values) > 0 || f.Min.IsSet() || f.Max.IsSet()
		return f.Follows == k.Name && bounded && !f.Allows(v) && own[f.Name] != v
	})
}

// Untouchable returns why a job of this policy is left alone while it runs, whatever is measured.
func (p Policy) Untouchable(s Site) Reason {
	switch {
	case !p.Progress.IsSet():
		return ReasonNoProgress
	case p.Checkpoint == nil && !s.MayRestart:
		return ReasonSiteForbids
	case p.Checkpoint == nil:
		return ReasonNoCheckpoint
	}
	return ReasonNone
}

// When is when a knob can act.
type When string

// The times, the earliest first.
const (
	Now       When = "now"        // while the job runs, by a checkpoint and a restart; and before a start
	NextStart When = "next-start" // before a start: of a pending job, of an array's task, of the next run of its kind
	Never     When = "never"
	Unknown   When = "unknown" // it depends on what the scheduler chooses for the job
)

// Prospect is when a knob can act, and what keeps it from more.
type Prospect struct {
	Knob   string `json:"knob"`
	When   When   `json:"when"`
	Own    string `json:"own,omitempty"`    // its owner's value, empty = unknown
	Values string `json:"values,omitempty"` // that it may get instead
	// Tried: which value is best is found out. Else it gets one only where earlier runs of
	// its kind have shown that one to be better.
	Tried     bool    `json:"tried,omitempty"`
	Why       []Cause `json:"why,omitempty"`
	Otherwise When    `json:"otherwise,omitempty"` // when it could act, were nothing held against the job as a whole
}

// Cause is a reason and the rules behind it.
type Cause struct {
	Text  string `json:"text"`
	Rules []Rule `json:"rules,omitempty"`
}

// String is the reason with its rules.
func (c Cause) String() string {
	if len(c.Rules) == 0 {
		return c.Text
	}
	return c.Text + " [" + joined(c.Rules, ", ") + "]"
}

func joined[T fmt.Stringer](list []T, sep string) string {
	return strings.Join(Each(list, T.String), sep)
}

// Because is what keeps the knob from more; empty: nothing does.
func (p Prospect) Because() string { return joined(p.Why, "; ") }

func (p *Prospect) because(why string, rules ...Rule) { p.Why = append(p.Why, Cause{why, rules}) }

// Prospects are those of every knob of a stanza under one scheduler and one site.
type Prospects struct {
	Scheduler string     `json:"scheduler"`
	Headline  string     `json:"headline"`
	Knobs     []Prospect `json:"knobs"`
	Notes     []string   `json:"notes,omitempty"`
}

// Prospects says when each knob of a stanza can act. What a job or earlier runs show may keep a
// knob where it is; nothing lets one act sooner. The way back to the owner's settings is always
// open.
func (s Site) Prospects(asked Policy, r Reach, own Settings) Prospects {
	o := outlook{asked, s.Narrow(asked.Carried(r), own), s, r, own}
	out := Prospects{Scheduler: r.Scheduler}
	for _, k := range asked.Knobs {
		out.Knobs = append(out.Knobs, o.prospect(k))
	}
	for i, k := range asked.Knobs {
		o.follow(k, &out.Knobs[i], out.Knobs)
	}
	frozen := o.frozen()
	for i := range out.Knobs {
		if k := &out.Knobs[i]; frozen.Text != "" && k.When != Never {
			k.When, k.Otherwise = Never, k.When
		}
	}
	out.Headline = headline(frozen, out.Knobs)
	if asked.TrialOf != nil && len(asked.Knobs) == 0 {
		out.Headline = "valid; the search varies all knobs, so inside its trials nothing is tuned"
	}
	if s.Control > 0 && slices.ContainsFunc(out.Knobs, func(k Prospect) bool { return k.When != Never }) {
		who := "jobs"
		if asked.TrialOf != nil {
			who = "searches"
		}
		out.Notes = append(out.Notes, fmt.Sprintf("%.3g %% of the %s stay untuned for comparison [%s]", 100*s.Control, who, s.Rule("control")))
	}
	return out
}

// outlook is what the prospects of one job depend on.
type outlook struct {
	asked, policy Policy // before and after the scheduler and the site narrowed it
	site          Site
	reach         Reach
	own           Settings
}

// prospect returns the prospect of a knob that follows no other.
func (o outlook) prospect(asked Knob) Prospect {
	out := Prospect{Knob: asked.Name, When: Never}
	own := o.own[asked.Name]
	if own.IsSet() {
		out.Own = asked.spell(own)
	}
	for _, l := range o.policy.Limits {
		if l.Knob == asked.Name {
			out.because(l.Why, l.Rule)
		}
	}
	k, left := o.policy.Knob(asked.Name)
	lower := func(v Value) bool { return v.IsSet() && v.Float() < own.Float() }
	switch {
	case !left || k.Follows != "":
	case k.Name == GPUs || k.Name == PowerLimit:
		out.because("it is read and never set")
	case k.Name != Memory:
		o.tried(k, &out)
	case !own.IsSet():
		out.because("the job asks for no memory, so there is nothing to give up")
	case !lower(k.Min) && !slices.ContainsFunc(k.Values, lower):
		out.because("none of its values is below your request of "+k.spell(own), o.asked.Rule("knob "+k.Name))
	default:
		out.When, out.Values, out.Tried = NextStart, "less than "+k.spell(own), true
		out.because("once earlier runs have shown how much such jobs need")
	}
	return out
}

// frozen is why nothing of the job is changed; without a text: it may be.
func (o outlook) frozen() Cause {
	switch {
	case o.reach.Observed != "":
		return Cause{Text: o.reach.Observed}
	case o.policy.Mode == Apply && o.site.DryRun:
		return Cause{"the site records decisions and carries none out", []Rule{o.site.Rule("dry_run")}}
	case o.policy.Mode == Apply:
		return Cause{}
	}
	out := Cause{Text: "better values are named, not applied"}
	if o.policy.Mode == Observe {
		out.Text = "the job is only observed"
	}
	if o.asked.Mode != Apply {
		out.Rules = append(out.Rules, o.asked.Rule("mode"))
	}
	if o.site.MaxMode != Apply {
		out.Rules = append(out.Rules, o.site.Rule("max_mode"))
	}
	return out
}

// spread is how many values of a range are looked at.
const spread = 64

// tried is the prospect of a knob whose values are found out by trying.
func (o outlook) tried(k Knob, out *Prospect) {
	own := o.own[k.Name]
	if !own.IsSet() {
		own = k.Default
	}
	others := slices.DeleteFunc(k.Candidates(spread), func(v Value) bool { return v == own || !o.policy.Takes(k, v, o.own) })
	values := k.choice()
	if len(k.Values) > 0 {
		values = k.spell(others...)
	}
	switch {
	case len(others) > 0:
		o.schedule(k, values, out)
	case len(out.Why) == 0:
		out.because("no other value than yours is allowed", o.asked.Rule("knob "+k.Name))
	}
}

// schedule says when a knob with other values can act.
func (o outlook) schedule(k Knob, values string, out *Prospect) {
	why := o.unmoved()
	switch {
	case !o.policy.Guarded(k.Name):
		out.because("it changes what the job learns, and the stanza has neither a quality block nor quality=same for it", o.policy.Rule("quality"))
		return
	case o.policy.Learns(k.Name):
		out.because("it changes what the job learns, so only whole runs can judge it")
	case why.Text == "":
		out.When, out.Values, out.Tried = Now, values, true
		return
	default:
		out.Why = append(out.Why, why)
	}
	out.When, out.Values = NextStart, values
	rules := Rules(ReasonBudgetReturns, o.policy, o.site)
	n, who := o.policy.Budget.Returns, "runs of its kind"
	if o.policy.TrialOf != nil && k.Name == Cores {
		n, who, rules = o.policy.Budget.Probes, "trials", Rules(ReasonBudgetProbes, o.policy, o.site)
	}
	if out.Tried = n > 0 && o.site.ProbeShare > 0; out.Tried {
		out.because(fmt.Sprintf("at most %d %s try values from their start", n, who), rules...)
		return
	}
	if n > 0 {
		rules = []Rule{o.site.Rule("probe_share")}
	}
	out.because("no run tries values from its start, so a run gets a value only where earlier runs of its kind have shown that it is better, or their use of cores leaves no doubt", rules...)
}

// unmoved is why a running job is not restarted for a change; without a text: it may be.
func (o outlook) unmoved() Cause {
	r, p := o.policy.Untouchable(o.site), o.policy.Progress
	switch {
	case o.reach.Stays != "":
		return Cause{Text: o.reach.Stays}
	case r == ReasonSiteForbids:
		return Cause{"the site restarts no running job", Rules(r, o.policy, o.site)}
	case r == ReasonNone && p.Total == 0 && !p.Report && !regexp.MustCompile(`\(\?P?<total>`).MatchString(p.Pattern):
		r = ReasonNoTotal
	case r == ReasonNone && o.reach.Limit > 0 && o.reach.Limit <= o.site.LimitReserve:
		r = ReasonNearLimit
	case r == ReasonNone && o.policy.Budget.Restarts == 0:
		return Cause{"no restart is allowed while it runs", Rules(ReasonBudgetRestarts, o.policy, o.site)}
	case r == ReasonNone:
		return Cause{}
	}
	return Cause{r.Sentence(), Rules(r, o.policy, o.site)}
}

// follow completes the prospect of a knob that follows another: it acts with it. Where it
// differs from it in the owner's settings any change makes it equal.
func (o outlook) follow(k Knob, out *Prospect, all []Prospect) {
	if _, left := o.policy.Knob(k.Name); !left || k.Follows == "" || out.When != Never {
		return
	}
	lead, known := o.policy.Knob(k.Follows)
	i := slices.IndexFunc(all, func(x Prospect) bool { return x.Knob == k.Follows })
	own, mine := o.own[k.Follows], o.own[k.Name]
	switch {
	case known && all[i].When != Never:
		out.When, out.Values, out.Tried = all[i].When, all[i].Values, all[i].Tried
		with := "with " + lead.Name + ", which it follows"
		if line := o.reach.Follow[k.Env]; line != "" && !o.reach.Env {
			with += ", by " + line
		} else if !mine.IsSet() && k.Env != "" && own.IsSet() {
			with += "; until then the program chooses, since the job file does not set " + k.Env
			if lead.Allows(own) {
				out.Values += "," + k.spell(own)
			}
		}
		out.because(with)
	case !known || !own.IsSet() || mine == own || !k.Allows(own) || !lead.Allows(own):
		out.because("it follows " + k.Follows + ", which stays as it is")
	default:
		out.because("it follows " + lead.Name + ", so any change makes it equal")
		o.schedule(k, k.spell(own), out)
		out.Tried = false // no change is made for that alone
	}
}

// headline sums up the prospects in one line.
func headline(frozen Cause, knobs []Prospect) string {
	by := map[When][]string{}
	tried := false
	for _, k := range knobs {
		by[k.When], tried = append(by[k.When], k.Knob), tried || k.Tried
	}
	const nothing = "valid, but nothing can be tuned: "
	switch {
	case frozen.Text != "":
		return nothing + frozen.String()
	case len(by[Never]) == len(knobs):
		return nothing + whyNot(knobs)
	}
	var parts []string
	for _, x := range []struct {
		when When
		text string
	}{{Now, "act now, while the job runs: "}, {NextStart, "act at the next start: "}, {Never, "never: "}} {
		if len(by[x.when]) > 0 {
			parts = append(parts, x.text+strings.Join(by[x.when], ", "))
		}
	}
	if !tried {
		return "valid, but no new value is tried: only results of earlier runs are used; " + strings.Join(parts, "; ")
	}
	return "valid; " + strings.Join(parts, "; ")
}

// whyNot says why no knob can act. Knobs with the same reason are listed together.
func whyNot(knobs []Prospect) string {
	var why []string
	by := map[string][]string{}
	for _, k := range knobs {
		text := k.Because()
		if by[text] == nil {
			why = append(why, text)
		}
		by[text] = append(by[text], k.Knob)
	}
	switch len(why) {
	case 0:
		return "the stanza names no knob"
	case 1:
		return why[0]
	}
	for i, text := range why {
		why[i] = strings.Join(by[text], ", ") + ": " + text
	}
	return strings.Join(why, "; ")
}
