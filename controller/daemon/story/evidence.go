package story

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// evidence says each number behind a decision in words. What has no words here
// is printed by its name, with the unit that the name ends in.
func evidence(es []tuning.Evidence) []string {
	out := make([]string, 0, len(es))
	for _, e := range es {
		if e.Name == "class_reason" && tuning.Reason(e.Text) == tuning.ReasonNearest {
			continue // the class that follows says so
		}
		if text := said(e); text != "" {
			out = append(out, text)
			continue
		}
		out = append(out, named(e))
	}
	return out
}

// said is the sentence for a known number; empty for others.
func said(e tuning.Evidence) string {
	seconds := duration(e.Value)
	switch e.Name {
	case "because":
		return "since " + tuning.Reason(e.Text).Sentence()
	case "rule":
		return "by the rule " + e.Text
	case "class_reason":
		return tuning.Reason(e.Text).Sentence()
	case "would":
		return "otherwise it would " + action(tuning.Action(e.Text))
	case "class":
		return "it resembles the jobs of class " + e.Text
	case "classes_alike":
		return "the classes that it resembles alike: " + strings.ReplaceAll(e.Text, " ", " and ")
	case "distance":
		return fmt.Sprintf("it is %.2f away from the nearest class", e.Value)
	case "radius":
		return fmt.Sprintf("that class reaches %.2f far", e.Value)
	case "profile_caution":
		return "its profile is marked as " + strings.ReplaceAll(e.Text, "-", " ")
	case "class_runs":
		return "that class was learned from " + number(e.Value, "run")
	case "remaining_seconds":
		return "its remaining epochs take about " + seconds
	case "predicted_saving_seconds":
		return "predicted to save " + seconds
	case "predicted_saving_share":
		return fmt.Sprintf("the response model expects it to save %.1f %% of each epoch", e.Value*100)
	case "restart_cost_seconds":
		return "restarting it costs about " + seconds
	case "saving_at_least_seconds":
		return "in nine of ten cases at least " + seconds
	case "queue_wait_seconds":
		return "it would wait about " + seconds + " in the queue"
	case "queue":
		return e.Text
	case "closed_in_seconds":
		return "its nodes are taken in " + seconds
	case "closed_by":
		return "by the reservation or maintenance " + e.Text
	case "reserve_seconds":
		return "the site wants " + seconds + " left before that"
	case "limit_left_seconds":
		return "its time limit is reached in " + seconds
	case "margin":
		return fmt.Sprintf("the saving must be %.3g times the cost", e.Value)
	case "epoch_seconds":
		return "an epoch takes " + seconds
	case "kind_untuned_epoch_seconds":
		return "untuned, jobs of its kind took " + seconds + " an epoch"
	case "kind_untuned_runs":
		return "seen in " + number(e.Value, "untuned run")
	case "doubted_above_seconds":
		return "more than " + seconds + " an epoch is doubtful"
	case "epochs_left":
		return number(e.Value, "epoch") + " left, too few to see whether it helps"
	case "epochs_measured":
		return "measured over " + number(e.Value, "epoch")
	case "disturbed_epochs":
		return "other work disturbed " + number(e.Value, "epoch")
	case "known_setting":
		return "that setting is " + e.Text
	case "known_log_ratio":
		return "the best setting known changed the objective by " + percent(e.Value)
	case "known_runs", "memory_runs_seen":
		return "seen in " + number(e.Value, "run")
	case "memory_peak_bytes":
		return "jobs of its kind needed at most " + tuning.Bytes(e.Value).Human()
	}
	return priced(e)
}

// priced says what a change is held against, in what the objective is counted in.
func priced(e tuning.Evidence) string {
	for _, unit := range []string{"joules", "epochs", "cost"} {
		of, ok := strings.CutSuffix(e.Name, "_"+unit)
		if !ok {
			continue
		}
		much := amount(e.Value, unit)
		switch unit {
		case "epochs":
			much = "as much as " + much + " under its owner's settings"
		case "cost":
			much = amount(e.Value, e.Text)
		}
		switch of {
		case "predicted_saving":
			return "predicted to save " + much
		case "saving_at_least":
			return "in nine of ten cases at least " + much
		case "restart_cost":
			return "restarting it costs about " + much
		}
	}
	switch e.Name {
	case "cost_without":
		return "the cost is counted without its " + e.Text + ", which was not measured throughout"
	case "budget_seconds":
		return "its time budget is " + duration(e.Value)
	case "budget_joules":
		return "its energy budget is " + energy(e.Value)
	case "with_change_at_most_seconds":
		return "with the change it could take " + duration(e.Value) + " in all"
	case "with_change_at_most_joules":
		return "with the change it could use " + energy(e.Value) + " in all"
	case "as_owned_at_most_seconds":
		return "under its owner's settings at most " + duration(e.Value)
	case "as_owned_at_most_joules":
		return "under its owner's settings at most " + energy(e.Value)
	}
	return compared(e)
}

// compared says the numbers of a comparison of settings.
func compared(e tuning.Evidence) string {
	switch e.Name {
	case "log_ratio":
		return "its objective changed by " + percent(e.Value)
	case "log_ratio_low":
		return "at least by " + bound(e.Value)
	case "log_ratio_high":
		return "at most by " + bound(e.Value)
	case "pairs":
		return "from " + number(e.Value, "pair of epochs")
	case "best":
		return "best so far: " + e.Text
	case "best_log_ratio":
		return "the best setting changes its objective by " + percent(e.Value)
	case "best_standard_error":
		return "give or take " + fmt.Sprintf("%.1f %%", math.Expm1(e.Value)*100)
	case "settings_tried":
		return number(e.Value, "setting") + " measured, its own included"
	case "knob":
		return "the knob is " + e.Text
	}
	return returned(e)
}

// named prints a number with its name and unit.
func named(e tuning.Evidence) string {
	name := strings.ReplaceAll(e.Name, "_", " ")
	for suffix, form := range map[string]func(float64) string{
		" seconds": duration,
		" bytes":   func(v float64) string { return tuning.Bytes(v).Human() },
		" joules":  energy,
	} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base + ": " + form(e.Value)
		}
	}
	switch {
	case strings.Contains(name, "log ratio"):
		return strings.Replace(name, "log ratio", "effect", 1) + ": " + percent(e.Value)
	case e.Text != "":
		return name + ": " + e.Text
	}
	return fmt.Sprintf("%s: %.4g", name, e.Value)
}

func action(a tuning.Action) string {
	switch a {
	case tuning.Probe:
		return "try a setting"
	case tuning.Move:
		return "move"
	case tuning.RollBack:
		return "return to its owner's settings"
	case tuning.Hold:
	}
	return "stay as it is"
}

// bound is one end of an interval; one that is too far to mean anything is open.
func bound(logRatio float64) string {
	const far = 5 // natural logs: a factor of 150
	if math.Abs(logRatio) > far {
		return "any amount"
	}
	return percent(logRatio)
}

// number counts a noun.
func number(v float64, noun string) string {
	if v == 1 {
		return "1 " + noun
	}
	if first, rest, ok := strings.Cut(noun, " of "); ok { // "pairs of epochs"
		return fmt.Sprintf("%.4g %ss of %s", v, first, rest)
	}
	return fmt.Sprintf("%.4g %ss", v, noun)
}

// duration prints a time for reading: "250 ms", "4.2 s", "3 min 20 s", "2 h 5 min".
func duration(seconds float64) string {
	d := time.Duration(math.Abs(seconds) * float64(time.Second))
	sign := ""
	if seconds < 0 {
		sign = "-"
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", sign, d.Milliseconds())
	case d < 100*time.Second:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%s%d min%s", sign, int(d.Minutes()), rest(int(d.Seconds())%60, "s"))
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%s%d h%s", sign, int(d.Hours()), rest(int(d.Minutes())%60, "min"))
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%s%d days%s", sign, int(d.Hours())/24, rest(int(d.Hours())%24, "h"))
}

func rest(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %d %s", n, unit)
}

// energy prints joules for reading.
func energy(j float64) string {
	for _, u := range []struct {
		name   string
		factor float64
	}{{"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}} {
		if math.Abs(j) >= 10*u.factor {
			return strconv.FormatFloat(j/u.factor, 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(j, 'f', 0, 64) + " J"
}
