package story

import (
	"fmt"
	"strconv"

	"pitchpipe/controller/tuning"
)

// behind lists all that a decision rests on: the numbers that it was compared by, what is
// left of the job, how its budgets stand, and what else was considered.
func behind(d *tuning.Decision) []string {
	shown := d.Evidence
	if d.Forecast.IsKnown() {
		shown = without(shown, "remaining_seconds") // the forecast says it with its interval
	}
	out := evidence(shown)
	out = append(out, left(d.Forecast)...)
	for _, b := range d.Budgets {
		if d.Reason != tuning.ReasonOverEnergy && d.Reason != tuning.ReasonOverTime || b.Unenforced != tuning.ReasonNone {
			out = append(out, budget(b)...) // those reasons have said it
		}
	}
	if d.Prices != nil {
		for _, a := range d.Alternatives {
			out = append(out, alternative(a, *d.Prices))
		}
	}
	return out
}

func without(es []tuning.Evidence, name string) []tuning.Evidence {
	var out []tuning.Evidence
	for _, e := range es {
		if e.Name != name {
			out = append(out, e)
		}
	}
	return out
}

// left says what is left of a job.
func left(f *tuning.Forecast) []string {
	if !f.IsKnown() {
		return nil
	}
	takes := "take"
	if f.Epochs.Value == 1 {
		takes = "takes"
	}
	text := fmt.Sprintf("its remaining %s %s about %s (in four of five cases %s)", number(f.Epochs.Value, "epoch"), takes,
		duration(f.Seconds.Value), span(*f.Seconds, duration))
	if f.Joules != nil {
		text += fmt.Sprintf(" and %s (%s; %s)", energy(f.Joules.Value), span(*f.Joules, energy), f.JoulesSource)
	}
	switch f.Basis {
	case tuning.BasisOwn:
		text += fmt.Sprintf(" under its owner's settings, by %s measured there", number(float64(f.Measured), "epoch"))
	case tuning.BasisPresent:
		text += fmt.Sprintf(" under the present settings, by %s measured there", number(float64(f.Measured), "epoch"))
	case tuning.BasisKind:
		text += " under its owner's settings, as the last such job took"
	}
	out := []string{text}
	if f.Final != nil {
		plain := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
		out = append(out, fmt.Sprintf("its %s is heading for %s (%s)", f.FinalOf, plain(f.Final.Value), span(*f.Final, plain)))
	}
	return out
}

func span(e tuning.Estimate, form func(float64) string) string {
	return form(e.Low) + " to " + form(e.High)
}

// budget says how a budget stands; one that is far is not worth a line.
func budget(b tuning.BudgetOutlook) []string {
	form, noun := duration, "time"
	if b.Of == "energy" {
		form, noun = energy, "energy"
	}
	switch {
	case b.Unenforced == tuning.ReasonModelled:
		return []string{fmt.Sprintf("its %s budget of %s forbids nothing: the energy is modelled, not measured", noun, form(b.Limit))}
	case b.Unenforced != tuning.ReasonNone || b.Own == nil:
		return []string{fmt.Sprintf("whether it keeps its %s budget of %s is not known", noun, form(b.Limit))}
	case b.Overruns && b.Own.Value > b.Limit:
		return []string{fmt.Sprintf("it will overrun its %s budget of %s anyway: under its owner's settings it uses about %s (%s) in all",
			noun, form(b.Limit), form(b.Own.Value), span(*b.Own, form))}
	case b.Overruns:
		return []string{fmt.Sprintf("it may overrun its %s budget of %s anyway: under its owner's settings it uses about %s (%s) in all",
			noun, form(b.Limit), form(b.Own.Value), span(*b.Own, form))}
	case b.Change != nil && b.Change.High > b.Limit:
		return []string{fmt.Sprintf("its %s budget is %s: with the change it could use %s in all, under its owner's settings at most %s",
			noun, form(b.Limit), form(b.Change.High), form(b.Own.High))}
	}
	return nil
}

// alternative says one setting that was considered.
func alternative(a tuning.Alternative, p tuning.Prices) string {
	what := settingsText(a.Settings)
	switch a.From {
	case tuning.OriginPresent:
		what = "staying at " + what
	case tuning.OriginOwner:
		what = "its owner's " + what
	case tuning.OriginTried, tuning.OriginKind, tuning.OriginClass, tuning.OriginSearch:
	}
	text := "considered: " + what
	form := func(v float64) string { return amount(v, p.Unit) }
	switch {
	case a.Rest != nil:
		text += fmt.Sprintf(", the rest for about %s (%s)", form(a.Rest.Value), span(*a.Rest, form))
	case a.From == tuning.OriginSearch:
		text += ", whose effect is unknown"
	}
	if a.Saving != nil && a.Saving.Value > 0 {
		text += fmt.Sprintf(", saving %s (%s)", form(a.Saving.Value), span(*a.Saving, form))
	}
	if a.Taken {
		return text + ": taken"
	}
	return text + ": not taken, since " + a.Reason.Sentence()
}

// amount prints what the objective is counted in.
func amount(v float64, unit string) string {
	switch unit {
	case "seconds":
		return duration(v)
	case "joules":
		return energy(v)
	case "epochs":
		return number(v, "epoch")
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
