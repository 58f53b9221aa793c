package regret

import (
	"fmt"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// Report is what Run returns.
type Report = evaluate.Report[Row, Summary]

// Row is what became of one input of one workload. Ratios are plain fractions: 1 is no
// regret. Null: there was nothing to measure it by.
type Row struct {
	Workload  string   `json:"workload"`
	Input     int      `json:"input"` // as the tables number them; 0 = they do not
	Machine   string   `json:"machine"`
	Repeats   int      `json:"repeats"`
	Seconds   float64  `json:"seconds"`             // geometric mean of a whole run under the default
	Known     *float64 `json:"known"`               // share of the questions that got a class
	Classes   []string `json:"classes,omitempty"`   // workloads among whose runs the class was learned
	Reasons   []string `json:"reasons,omitempty"`   // of the classifier where there was no class, of the planner where there was one and no move
	Chosen    []string `json:"chosen,omitempty"`    // settings that it got, the default included
	Optimum   string   `json:"optimum"`             // cheapest in all repeats together
	Regret    *float64 `json:"regret"`              // cost of what it got over that of its own optimum, both in repeats that chose neither
	Hindsight *float64 `json:"regret_hindsight"`    // the same over the cheapest of all repeats together
	Probed    *float64 `json:"probed_regret"`       // the same, were each setting probed once, in the repeat of the profile, where there was no class
	Single    *float64 `json:"single_regret"`       // likewise, of the best single setting for all others
	Default   *float64 `json:"default_regret"`      // likewise, of the default
	Oracle    *float64 `json:"oracle_over_default"` // cost of its own optimum over that of the default: what there is to gain
}

// Summary sums the rows up. Means are geometric, over inputs.
type Summary struct {
	Objective tuning.Objective `json:"objective"`
	Weight    float64          `json:"weight"` // of energy in blend
	Energy    string           `json:"energy"` // what stands for energy
	Default   string           `json:"default"`
	Workloads int              `json:"workloads"`
	Inputs    int              `json:"inputs"`
	Settings  int              `json:"settings"`
	Repeats   int              `json:"repeats"` // most of any input
	Skipped   int              `json:"skipped"` // inputs with fewer than two repeats of two settings, or none of the default
	Optima    int              `json:"optima"`  // different settings among the optima
	Questions int              `json:"questions"`

	Regret          *float64 `json:"regret_mean"`
	RegretWorst     *float64 `json:"regret_worst"`
	Hindsight       *float64 `json:"regret_hindsight_mean"`
	KnownRegret     *float64 `json:"known_regret_mean"`          // of the questions that got a class
	UnknownRegret   *float64 `json:"unknown_regret_mean"`        // of those that kept their default for want of one
	UnknownProbed   *float64 `json:"unknown_probed_regret_mean"` // of the same, were they probed
	Probed          *float64 `json:"probed_regret_mean"`         // of all, were those without a class probed
	ProbedWorst     *float64 `json:"probed_regret_worst"`
	Single          *float64 `json:"single_regret_mean"`
	SingleWorst     *float64 `json:"single_regret_worst"`
	SingleHindsight *float64 `json:"single_regret_hindsight_mean"`
	SingleSettings  []string `json:"single_settings"` // the best single setting for all others, each that came up
	DefaultRegret   *float64 `json:"default_regret_mean"`
	DefaultWorst    *float64 `json:"default_regret_worst"`
	Oracle          *float64 `json:"oracle_over_default_mean"`

	Known     *float64 `json:"share_known"`
	Moved     *float64 `json:"share_moved"`     // of the questions that were given another setting than the default
	OwnKind   *float64 `json:"share_own_kind"`  // of those with a class, whose class holds runs of the same workload
	Classes   *float64 `json:"classes_mean"`    // learned, in the mean over the inputs left out
	Disturbed *float64 `json:"share_disturbed"` // of the runs that were used: others disturbed them
	Spread    *float64 `json:"repeat_sd_log"`   // standard deviation of ln cost between repeats of one setting

	LeftOut []evaluate.LeftOut `json:"left_out"` // trials that did not fail and whose cost was not measured
}

// Text prints the report as a table.
func Text(r Report) string {
	n := func(v *float64) string { return evaluate.Number(v, 3) }
	s := r.Summary
	var rows [][]string
	for _, x := range r.Rows {
		name := x.Workload
		if x.Input > 0 {
			name += fmt.Sprintf("/%d", x.Input)
		}
		rows = append(rows, []string{
			name, fmt.Sprintf("%.2f", x.Seconds), x.Optimum, strings.Join(x.Chosen, " | "), n(x.Known), n(x.Regret), n(x.Hindsight),
			n(x.Probed), n(x.Single), n(x.Default), strings.Join(x.Classes, " "), strings.Join(x.Reasons, " "),
		})
	}
	var b strings.Builder
	b.WriteString(evaluate.Columns([]string{
		"input", "seconds", "optimum", "got", "known", "regret", "hindsight", "probed", "single", "default", "class learned from", "why not",
	}, rows))
	fmt.Fprintf(&b, "\nobjective %s, energy is %s, default %s\n", s.objective(), s.Energy, s.Default)
	fmt.Fprintf(&b, "%d workloads, %d inputs left out in turn, %d settings, up to %d repeats; %d inputs skipped; %d different optima\n",
		s.Workloads, s.Inputs, s.Settings, s.Repeats, s.Skipped, s.Optima)
	fmt.Fprintf(&b, "cost over the input's own optimum:\n")
	b.WriteString(evaluate.Columns([]string{"", "mean", "worst", "hindsight"}, [][]string{
		{"setting of its class, without one its default", n(s.Regret), n(s.RegretWorst), n(s.Hindsight)},
		{"  those with a class", n(s.KnownRegret), "-", "-"},
		{"  those without, their default", n(s.UnknownRegret), "-", "-"},
		{"  those without, probed", n(s.UnknownProbed), "-", "-"},
		{"setting of its class, without one probed", n(s.Probed), n(s.ProbedWorst), "-"},
		{"best single setting", n(s.Single), n(s.SingleWorst), n(s.SingleHindsight)},
		{"default", n(s.DefaultRegret), n(s.DefaultWorst), "-"},
	}))
	fmt.Fprintf(&b, "the optimum costs %s of the default; probed: each setting was tried once, and what that cost is not in the figure\n", n(s.Oracle))
	fmt.Fprintf(&b, "recognised %s of %d, moved %s, into a class of their own workload %s; %s classes in the mean\n",
		n(s.Known), s.Questions, n(s.Moved), n(s.OwnKind), evaluate.Number(s.Classes, 1))
	fmt.Fprintf(&b, "best single setting: %s\n", strings.Join(s.SingleSettings, ", "))
	fmt.Fprintf(&b, "repeats differ by %s (standard deviation of ln cost); others disturbed %s of the runs\n", n(s.Spread), n(s.Disturbed))
	b.WriteString(evaluate.LeftOutText(s.LeftOut))
	return b.String()
}

func (s Summary) objective() string {
	if s.Objective == tuning.Blend {
		return fmt.Sprintf("%s %.2f", s.Objective, s.Weight)
	}
	return string(s.Objective)
}
