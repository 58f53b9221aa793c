package story

import (
	"fmt"
	"math"
	"strings"

	"pitchpipe/controller/tuning"
)

// returned says the numbers of a job whose kind returns.
func returned(e tuning.Evidence) string {
	switch e.Name {
	case "returns_seen":
		return number(e.Value, "earlier run") + " of its kind measured"
	case "returns_tried":
		return "settings tried so far by " + number(e.Value, "run") + " of its kind, those under way included"
	case "hyperparameters":
		return "these knobs change what it learns: " + strings.ReplaceAll(e.Text, " ", ", ")
	case "own_runs_seen":
		return number(e.Value, "run") + " under its owner's values showed what they end with"
	case "own_runs_needed":
		return "others are tried after " + number(e.Value, "such run")
	case "returns_allowed":
		if e.Value == 0 {
			return "no run may try others, since budget returns is 0"
		}
		return "at most " + number(e.Value, "run") + " may try one"
	case "return_setting":
		return "the setting is " + e.Text
	case "return_setting_runs":
		if e.Value == 0 {
			return "no run had it yet"
		}
		return number(e.Value, "run") + " had it, which is too little to be sure"
	case "return_expected_log_ratio":
		return "it is expected to change the objective by " + percent(e.Value)
	case "return_standard_error":
		return "give or take " + fmt.Sprintf("%.0f %%", math.Expm1(e.Value)*100)
	case "returns_differ":
		return "runs under one setting differ by about " + fmt.Sprintf("%.0f %%", math.Expm1(e.Value)*100)
	}
	return ""
}
