package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pitchpipe/controller/tuning"
)

// Text prints the table for people.
func Text(t Table) string {
	var b strings.Builder
	const layout = "2006-01-02 15:04"
	fmt.Fprintf(&b, "Jobs that ended from %s to %s UTC, and those that have not ended yet\n\n",
		t.Since.UTC().Format(layout), t.Until.UTC().Format(layout))
	if t.Total.Jobs == 0 {
		b.WriteString("There are none.\n")
		return b.String()
	}
	head := []string{"JOB", "NAME", "USER", "STATE"}
	if t.By != ByJob {
		head = []string{strings.ToUpper(string(t.By)), "JOBS", "TUNED", "UNTUNED SHARE"}
	}
	head = append(head, "TIME", "CORE-HOURS")
	if t.Total.priced() {
		head = append(head, "COST")
	}
	head = append(head, "ENERGY", "MODELLED", "RESTARTS", "PROBES", "EPOCHS", "TIME SAVED", "NET SAVED")
	total := t.Total
	if t.By == ByJob {
		total.Name = fmt.Sprintf("%d jobs", total.Jobs)
	}
	b.WriteString(List(head, append(slices.Clip(t.Lines), total), func(l Line) []string { return l.cells(t.By, t.Total.priced()) }))
	printSavings(&b, t.Savings)
	for _, n := range t.Notes {
		b.WriteString("\n" + n + "\n")
	}
	return b.String()
}

// priced reports whether there is a cost in another unit than core-hours.
func (l Line) priced() bool {
	return slices.ContainsFunc(l.Cost, func(c Cost) bool { return c.Unit != tuning.DefaultTariff().Unit })
}

func (l Line) cells(by By, priced bool) []string {
	tuned, untuned := strconv.Itoa(l.Tuned), strconv.Itoa(l.Untuned)
	if l.Jobs > 0 && l.Forgotten == l.Jobs {
		tuned, untuned = Unknown, Unknown
	}
	head := []string{clean(l.Key), strconv.Itoa(l.Jobs), tuned, untuned}
	if by == ByJob {
		head = []string{clean(l.Key), clean(l.Name), clean(l.User), clean(l.State)}
	}
	measured, sources := l.Joules(false)
	energy := number(measured, Joules, 0, l.Jobs)
	if measured != nil {
		energy += " (" + sources + ")"
	}
	if l.NoEnergy > 0 && l.NoEnergy < l.Jobs {
		energy += fmt.Sprintf(", %d unmeasured", l.NoEnergy)
	}
	modelled, of := l.Joules(true)
	computed := number(modelled, Joules, 0, l.Jobs)
	if modelled != nil && of != tuning.Modelled { // of a part of the nodes
		computed += " (" + of + ")"
	}
	cells := append(head, number(l.Seconds, Duration, l.NoSeconds, l.Jobs), number(l.CoreHours, Amount, l.NoCoreHours, l.Jobs))
	if priced {
		cells = append(cells, l.costs())
	}
	return append(cells, energy, computed,
		whole(l.Restarts, Unknown), whole(l.Probes, Unknown), whole(l.Epochs, Unknown), number(l.Net, Duration, l.NoNet, l.Tuned), number(l.NetShare, share, l.NoNet, l.Tuned))
}

func (l Line) costs() string {
	parts := tuning.Each(l.Cost, Cost.String)
	text := cmp.Or(strings.Join(parts, " + "), Unknown)
	if l.NoCost > 0 && len(parts) > 0 {
		text += fmt.Sprintf(" in %d of %d", l.Jobs-l.NoCost, l.Jobs)
	}
	if l.FreeEnergy > 0 {
		text += fmt.Sprintf(", %d without energy", l.FreeEnergy)
	}
	return text
}

// String prints the amount and the unit.
func (c Cost) String() string { return Amount(c.Amount) + " " + c.Unit }

// number prints a sum, "-" where there is none, and the number of jobs in it
// where some lack it.
func number(v *float64, form func(float64) string, without, jobs int) string {
	switch {
	case v == nil:
		return Unknown
	case without > 0:
		return fmt.Sprintf("%s in %d of %d", form(*v), jobs-without, jobs)
	}
	return form(*v)
}

// whole prints a count; the note on forgotten jobs says how many it covers.
func whole(v *int, missing string) string {
	if v == nil {
		return missing
	}
	return strconv.Itoa(*v)
}

// Amount prints two decimals, and two digits of what is less than 0.1: that is not nothing.
func Amount(v float64) string {
	if v != 0 && math.Abs(v) < 0.1 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// clean keeps a name that a user chose from steering the terminal or the columns.
func clean(s string) string { return Legible(cmp.Or(s, Unknown)) }

// Legible replaces what is not printable, so that a name cannot control the terminal.
func Legible(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func printSavings(b *strings.Builder, savings []Saving) {
	b.WriteString("\nWhat tuning saved, compared with jobs of the same work in the untuned control group:\n")
	if len(savings) == 0 {
		b.WriteString("  no tuned job and no job of the control group has ended, so there is nothing to compare\n")
	}
	for _, s := range savings {
		kind := "all kinds"
		if s.Kind != "" {
			kind = fmt.Sprintf("%s, %d epochs", clean(s.Kind), s.Epochs)
		}
		if slices.ContainsFunc(savings, func(o Saving) bool { return o.Kind == s.Kind && o.Own != s.Own }) {
			kind += ", requested " + clean(s.Own)
		}
		fmt.Fprintf(b, "  %s, %s: %s\n", s.Objective, kind, s.Sentence())
		if s.TunedUnfinished+s.UntunedUnfinished > 0 {
			fmt.Fprintf(b, "    not compared, since they did not finish: %d tuned, %d untuned\n", s.TunedUnfinished, s.UntunedUnfinished)
		}
	}
}

// Sentence says the saving in words.
func (s Saving) Sentence() string {
	o := s.Outcome
	if o == nil {
		return fmt.Sprintf("%s (%s tuned, %d untuned)", s.Note, Count(s.Tuned, "job"), s.Untuned)
	}
	text := string(o.Verdict)
	if o.Pairs == 0 {
		return fmt.Sprintf("%s: %s (%s)", text, o.Reason.Sentence(), Count(s.Pairs, "pair"))
	}
	if o.Source != "" {
		text += ", joules by " + o.Source
	}
	if o.NoEnergy {
		text += ", energy left out"
	}
	if o.Low < -far && o.High > far {
		verb := "are"
		if o.Pairs == 1 {
			verb = "is"
		}
		return fmt.Sprintf("%s: %s per epoch, and %s %s too few for an interval; %s",
			text, Percent(o.LogRatio), Count(o.Pairs, "pair"), verb, o.Reason.Sentence())
	}
	return fmt.Sprintf("%s: %s per epoch (%g %% interval %s to %s), %s; %s",
		text, Percent(o.LogRatio), 100*o.Level, Bound(o.Low, "open"), Bound(o.High, "open"), Count(o.Pairs, "pair"), o.Reason.Sentence())
}

// far is a bound that means nothing any more, in natural logs: a factor of 150.
const far = 5

// Bound is one end of an interval of log ratios; one that is too far away to mean anything is open.
func Bound(logRatio float64, open string) string {
	if math.Abs(logRatio) > far {
		return open
	}
	return Percent(logRatio)
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// Percent prints a log ratio as a change.
func Percent(logRatio float64) string { return fmt.Sprintf("%+.1f %%", math.Expm1(logRatio)*100) }

// CSV prints the lines, the total last, and no savings. A number that is missing
// is an empty field.
func CSV(t Table) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	rows := [][]string{{
		string(t.By), "name", "user", "state", "since", "until", "jobs", "running", "tuned", "untuned_share", "seconds", "core_hours",
		"joules", "joules_source", "joules_modelled", "restarts", "probes", "epochs",
		"jobs_without_seconds", "jobs_without_core_hours", "jobs_without_energy", "jobs_forgotten",
		"net_seconds", "jobs_without_net", "cost", "cost_unit", "jobs_without_cost", "jobs_with_cost_without_energy", "net_share",
	}}
	for _, l := range append(slices.Clip(t.Lines), t.Total) {
		measured, sources := l.Joules(false)
		modelled, _ := l.Joules(true)
		cost, unit := "", "" // several units have no sum
		if len(l.Cost) == 1 {
			cost, unit = Field(&l.Cost[0].Amount), l.Cost[0].Unit
		}
		rows = append(rows, []string{
			Legible(l.Key), Legible(l.Name), Legible(l.User), l.State, t.Since.UTC().Format(time.RFC3339), t.Until.UTC().Format(time.RFC3339),
			strconv.Itoa(l.Jobs), strconv.Itoa(l.Running), strconv.Itoa(l.Tuned), strconv.Itoa(l.Untuned),
			Field(l.Seconds), Field(l.CoreHours), Field(measured), sources, Field(modelled),
			whole(l.Restarts, ""), whole(l.Probes, ""), whole(l.Epochs, ""),
			strconv.Itoa(l.NoSeconds), strconv.Itoa(l.NoCoreHours), strconv.Itoa(l.NoEnergy), strconv.Itoa(l.Forgotten),
			Field(l.Net), strconv.Itoa(l.NoNet), cost, unit, strconv.Itoa(l.NoCost), strconv.Itoa(l.FreeEnergy), Field(l.NetShare),
		})
	}
	if t.By == ByUser {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3) // which has the name of the first column
		}
	}
	_ = w.WriteAll(rows) // a Builder takes everything
	return b.String()
}

// Field is a number of a CSV: exact, and empty where it is missing.
func Field(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
