package story

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

// sentences say each number behind a decision. In braces is how the number or the text is
// printed, see printed.
func sentences() map[string]string {
	return map[string]string{
		"because": "since {reason}", "rule": "by the rule {text}", "class_reason": "{reason}", "would": "otherwise it would {action}", "queue": "{text}", "observed": "{text}",
		"class": "it resembles the jobs of class {text}", "classes_alike": "it resembles these classes equally: {and}",
		"distance": "it is {fixed} away from the nearest class", "radius": "that class reaches {fixed} far",
		"profile_caution": "its profile is marked as {words}", "class_runs": "that class was learned from {count run}",

		"remaining_seconds": "its remaining epochs take about {time}", "allotted_seconds": "with the cores that it gets, about {time}", "predicted_saving_seconds": "predicted to save {time}",
		"predicted_saving_share": "the response model expects it to save {share} of each epoch",
		"log_time_beside":        "its epochs take {times} as long as in an earlier run with {text}",
		"restart_cost_seconds":   "restarting it costs about {time}", "saving_at_least_seconds": "in nine of ten cases at least {time}",
		"queue_wait_seconds": "it would wait about {time} in the queue", "closed_in_seconds": "its nodes are unavailable in {time}",
		"closed_by": "because of reservation or maintenance {text}", "reserve_seconds": "the site wants {time} left before that",
		"limit_left_seconds": "its time limit is reached in {time}", "margin": "the saving must be {short} times the cost",
		"epoch_seconds": "an epoch takes {time}", "kind_untuned_epoch_seconds": "untuned, jobs of its kind took {time} an epoch",
		"kind_untuned_runs": "seen in {count untuned run}", "doubted_above_seconds": "above {time} an epoch tuning is in doubt",
		"epochs_left": "{count epoch} left, too few to see whether it helps", "epochs_measured": "measured over {count epoch}",
		"disturbed_epochs": "other work disturbed {count epoch}", "known_setting": "that setting is {text}",
		"known_log_ratio": "the best setting known changed the objective by {percent}", "known_runs": "seen in {count run}",
		"memory_runs_seen": "seen in {count run}", "memory_peak_bytes": "jobs of its kind needed at most {memory}",

		"predicted_saving_joules": "predicted to save {energy}", "saving_at_least_joules": "in nine of ten cases at least {energy}",
		"restart_cost_joules": "restarting it costs about {energy}", "predicted_saving_epochs": "predicted to save {epochs}",
		"saving_at_least_epochs": "in nine of ten cases at least {epochs}", "restart_cost_epochs": "restarting it costs about {epochs}",
		"predicted_saving_cost": "predicted to save {cost}", "saving_at_least_cost": "in nine of ten cases at least {cost}",
		"restart_cost_cost": "restarting it costs about {cost}",
		"cost_without":      "the cost is counted without its {text}, which was not measured throughout",
		"budget_seconds":    "its time budget is {time}", "budget_joules": "its energy budget is {energy}",
		"with_change_at_most_seconds": "with the change it could take {time} in all", "with_change_at_most_joules": "with the change it could use {energy} in all",
		"as_owned_at_most_seconds": "under its owner's settings at most {time}", "as_owned_at_most_joules": "under its owner's settings at most {energy}",

		"log_ratio": "its objective changed by {percent}", "log_ratio_low": "at least by {bound}", "log_ratio_high": "at most by {bound}",
		"pairs": "from {count pair of epochs}", "best": "best so far: {text}", "best_log_ratio": "the best setting changes its objective by {percent}",
		"best_standard_error": "give or take {spread}", "settings_tried": "{count setting} measured, its own included", "knob": "the knob is {text}",

		"epochs_to_go": "{count epoch} left after the present one", "undisturbed_runs": "{count run} of its kind took no action",
		"adapted_runs": "{count run} of its kind took actions", "action_gain": "the quality is expected to end {share} better",
		"action_standard_error": "give or take {share}",

		"trials_to_follow": "{count trial} of the search are still to begin", "predicted_loss_share": "it may cost this trial {share} of each epoch",
		"returns_seen": "{count earlier run} of its kind measured", "returns_tried": "settings tried so far by {count run} of its kind, those under way included",
		"hyperparameters": "these knobs change what it learns: {list}", "own_runs_seen": "{count run} under its owner's values showed their final quality",
		"own_runs_needed": "others are tried after {count such run}", "returns_allowed": "at most {count run} may try one",
		"returns_allowed=0": "no run may try others, since budget returns is 0", "return_setting": "the setting is {text}",
		"return_setting_runs": "{count run} had it, which is too few to be sure", "return_setting_runs=0": "no run had it yet",
		"return_expected_log_ratio": "it is expected to change the objective by {percent}", "return_standard_error": "give or take {whole spread}",
		"pace":     "an epoch takes at least {short} times as long as under its owner's settings",
		"log_time": "an epoch takes {times} as long as under its owner's settings", "max_slowdown": "its owner allows {short} times as long",
		"attempt_loss_epochs": "this attempt has cost {epochs}", "leaving_epochs": "leaving it now costs {epochs}",
		"loss_epochs": "failed tuning has cost {epochs}", "way_back_epochs": "going back costs {epochs}",
		"both_ways_epochs": "going there and back costs {epochs}", "trying_epochs": "trying it may cost {epochs}",
		"loss_limit_epochs": "tuning that fails may cost {epochs}", "loss_limit_share": "tuning that fails may cost {share} of its objective",
		"proven_saving_epochs": "its best setting is sure to save {epochs}",
		"predicted_log_ratio":  "the response model expects its objective to change by {percent}", "predicted_log_ratio_at_most": "with 95 % certainty by at most {percent}",
		"predicted_log_time": "the response model expects its time to change by {percent}", "predicted_log_time_at_most": "with 95 % certainty by at most {percent}",
		"returns_differ": "runs under one setting differ by about {whole spread}",
	}
}

// evidence says each number in words. A number without a sentence appears by its name, with
// the unit in which the name ends.
func evidence(es []tuning.Evidence) []string {
	known := sentences()
	out := make([]string, 0, len(es))
	for _, e := range es {
		sentence, ok := known[e.Name]
		if zero, has := known[e.Name+"=0"]; has && e.Value == 0 {
			sentence = zero
		}
		switch {
		case e.Name == "class_reason" && tuning.Reason(e.Text) == tuning.ReasonNearest: // the class that follows says so
		case ok:
			out = append(out, regexp.MustCompile(`\{[a-z ]+\}`).ReplaceAllStringFunc(sentence, func(form string) string { return printed(e, strings.Trim(form, "{}")) }))
		default:
			out = append(out, named(e))
		}
	}
	return out
}

// printed is the number or the text of e in a form.
func printed(e tuning.Evidence, form string) string {
	if noun, ok := strings.CutPrefix(form, "count "); ok {
		return number(e.Value, noun)
	}
	switch form {
	case "reason":
		return tuning.Reason(e.Text).Sentence()
	case "action":
		return map[string]string{"probe": "try a setting", "move": "move", "roll-back": "return to its owner's settings", "adapt": "take an action", "hold": "stay as it is"}[e.Text]
	case "and":
		return strings.ReplaceAll(e.Text, " ", " and ")
	case "list":
		return strings.ReplaceAll(e.Text, " ", ", ")
	case "words":
		return strings.ReplaceAll(e.Text, "-", " ")
	case "time":
		return report.Duration(e.Value)
	case "energy":
		return report.Joules(e.Value)
	case "memory":
		return tuning.Bytes(e.Value).Human()
	case "cost":
		return amount(e.Value, e.Text)
	case "epochs":
		return "as much as " + number(e.Value, "epoch") + " under its owner's settings"
	case "times":
		return fmt.Sprintf("%.2f times", math.Exp(e.Value))
	case "percent":
		return report.Percent(e.Value)
	case "bound":
		return report.Bound(e.Value, anyAmount)
	case "spread":
		return fmt.Sprintf("%.1f %%", math.Expm1(e.Value)*100)
	case "whole spread":
		return fmt.Sprintf("%.0f %%", math.Expm1(e.Value)*100)
	case "share":
		return fmt.Sprintf("%.1f %%", e.Value*100)
	case "fixed":
		return fmt.Sprintf("%.2f", e.Value)
	case "short":
		return fmt.Sprintf("%.3g", e.Value)
	}
	return e.Text
}

func named(e tuning.Evidence) string {
	name := strings.ReplaceAll(e.Name, "_", " ")
	for suffix, form := range map[string]string{" seconds": "time", " bytes": "memory", " joules": "energy"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base + ": " + printed(e, form)
		}
	}
	switch {
	case strings.Contains(name, "log ratio"):
		return strings.Replace(name, "log ratio", "effect", 1) + ": " + report.Percent(e.Value)
	case e.Text != "":
		return name + ": " + e.Text
	}
	return fmt.Sprintf("%s: %.4g", name, e.Value)
}

// anyAmount is a bound that is open.
const anyAmount = "any amount"

func number(v float64, noun string) string {
	if v == 1 {
		return "1 " + noun
	}
	if first, rest, ok := strings.Cut(noun, " of "); ok { // "pairs of epochs"
		return fmt.Sprintf("%.4g %ss of %s", v, first, rest)
	}
	return fmt.Sprintf("%.4g %ss", v, noun)
}
