package story

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

// behind lists all that a decision rests on: the numbers that it was compared by, what is
// left of the job, the state of its budgets, and what else was considered.
func behind(d *tuning.Decision) []string {
	numbers := d.Evidence
	if d.Forecast.IsKnown() { // which says it with its interval
		numbers = slices.DeleteFunc(slices.Clone(numbers), func(e tuning.Evidence) bool { return e.Name == "remaining_seconds" })
	}
	out := evidence(numbers)
	out = append(out, left(d.Forecast)...)
	for _, b := range d.Budgets {
		if d.Reason != tuning.ReasonOverEnergy && d.Reason != tuning.ReasonOverTime || b.Unenforced != tuning.ReasonNone {
			out = append(out, budget(b)...) // those reasons have said it
		}
	}
	if d.Prices != nil {
		out = append(out, tuning.Each(d.Alternatives, func(a tuning.Alternative) string { return alternative(a, *d.Prices) })...)
	}
	return out
}

func left(f *tuning.Forecast) []string {
	if !f.IsKnown() {
		return nil
	}
	takes := "take"
	if f.Epochs.Value == 1 {
		takes = "takes"
	}
	text := fmt.Sprintf("its remaining %s %s about %s (in four of five cases %s)", number(f.Epochs.Value, "epoch"), takes,
		report.Duration(f.Seconds.Value), span(*f.Seconds, report.Duration))
	if f.Joules != nil {
		text += fmt.Sprintf(" and %s (%s; %s)", report.Joules(f.Joules.Value), span(*f.Joules, report.Joules), f.JoulesSource)
	}
	text += map[tuning.Basis]string{
		tuning.BasisOwn:     " under its owner's settings, from " + number(float64(f.Measured), "epoch") + " measured there",
		tuning.BasisPresent: " under the present settings, from " + number(float64(f.Measured), "epoch") + " measured there",
		tuning.BasisKind:    " under its owner's settings, as the last such job took",
	}[f.Basis]
	out := []string{text}
	if f.Final != nil && f.Final.High-f.Final.Low < math.Abs(f.Final.Value) { // else it says nothing
		plain := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
		out = append(out, fmt.Sprintf("its %s is heading for %s (%s)", f.FinalOf, plain(f.Final.Value), span(*f.Final, plain)))
	}
	return out
}

func span(e tuning.Estimate, form func(float64) string) string {
	return form(e.Low) + " to " + form(e.High)
}

// budget returns a line on the state of a budget, none while its limit is far.
func budget(b tuning.BudgetOutlook) []string {
	form, noun := report.Duration, "time"
	if b.Of == "energy" {
		form, noun = report.Joules, "energy"
	}
	name := fmt.Sprintf("its %s budget", noun)
	limit := form(b.Limit)
	switch {
	case b.Unenforced == tuning.ReasonModelled:
		return []string{name + " of " + limit + " is not enforced: the energy is modelled, not measured"}
	case b.Unenforced != tuning.ReasonNone || b.Own == nil:
		return []string{"it is unknown whether the job keeps " + name + " of " + limit}
	case b.Overruns:
		will := "will"
		if b.Own.Value <= b.Limit {
			will = "may"
		}
		return []string{fmt.Sprintf("it %s overrun %s of %s anyway: under its owner's settings it uses about %s (%s) in all",
			will, name, limit, form(b.Own.Value), span(*b.Own, form))}
	case b.Change != nil && b.Change.High > b.Limit:
		return []string{fmt.Sprintf("%s is %s: with the change it could use %s in all, under its owner's settings at most %s",
			name, limit, form(b.Change.High), form(b.Own.High))}
	}
	return nil
}

func alternative(a tuning.Alternative, p tuning.Prices) string {
	what := settingsText(a.Settings)
	before := map[tuning.Origin]string{tuning.OriginPresent: "staying at ", tuning.OriginOwner: "its owner's "}
	text := "considered: " + before[a.From] + what
	form := func(v float64) string { return amount(v, p.Unit) }
	switch {
	case a.Rest != nil:
		text += fmt.Sprintf(", remaining work about %s (%s)", form(a.Rest.Value), span(*a.Rest, form))
	case a.From == tuning.OriginSearch:
		text += ", which was not measured"
	}
	if a.Saving != nil && a.Saving.Value > 0 {
		text += fmt.Sprintf(", saving %s (%s)", form(a.Saving.Value), span(*a.Saving, form))
	}
	if a.Taken {
		return text + ": taken"
	}
	return text + ": not taken, since " + a.Reason.Sentence()
}

func amount(v float64, unit string) string {
	switch unit {
	case "seconds":
		return report.Duration(v)
	case "joules":
		return report.Joules(v)
	case "epochs":
		return number(v, "epoch")
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
