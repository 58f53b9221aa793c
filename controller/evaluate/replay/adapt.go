package replay

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/adapt"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// AdaptInput is what Adapt measures.
type AdaptInput struct {
	Tables []evaluate.Table // adaptations
}

const (
	noAction = "none"    // of an epoch at which a job was asked and did not change
	before   = "before_" // begins the scenario of the run up to the start of another
	lastOnes = 3         // epochs at the end of a run whose mean is its quality
)

// onset is one scenario of a workload: every sequence of actions from one start on.
type onset struct {
	workload, scenario string
	never              float64 // quality of the undisturbed run
	left               float64 // epochs left at the start, by the pace before it
	runs               []adapt.Run
	qualities          map[string]evaluate.Figure // by what was done, mean over its runs
}

// Adapt learns from all but one scenario, and where there are several from all but one workload,
// what actions bring, and lets the policy decide in what was held out. Its choice has the quality
// of the recorded run that took it; where it chooses to do nothing, that of the undisturbed run.
func Adapt(ctx context.Context, in AdaptInput, progress evaluate.Progress) (evaluate.Report, error) {
	out := evaluate.Report{Command: "evaluate adapt"}
	var all []onset
	var left evaluate.LeftOut
	for _, t := range in.Tables {
		out.Data = append(out.Data, t.File)
		for _, g := range t.Groups() {
			all = append(all, onsetsOf(g, &left)...)
		}
	}
	var cases []held
	for _, by := range []held{{out: "scenario"}, {out: "workload"}} {
		for i := range all {
			by.onset = &all[i]
			if slices.ContainsFunc(all, by.learns) {
				cases = append(cases, by)
			}
		}
	}
	if len(cases) == 0 {
		return out, evaluate.Invalid("%d scenarios with runs: want two or more, to learn from one what to do in another", len(all))
	}
	truth := adapt.Learn(runsOf(all, func(onset) bool { return true }))
	err := out.Fill(ctx, len(cases), progress, func(_ context.Context, i int) (string, []evaluate.Line, error) {
		return cases[i].workload + " " + cases[i].scenario, []evaluate.Line{cases[i].measure(runsOf(all, cases[i].learns), truth)}, nil
	})
	if err != nil {
		return out, err
	}
	shares := sharesOf(out.Rows)
	out.Summary = evaluate.Line{"gain_share": shares[0]["gain_share"], "worst": shares[0]["worst"], "shares": shares, "left_out": []evaluate.Line(left)}
	return out, nil
}

// onsetsOf reads the scenarios of a workload.
func onsetsOf(g evaluate.Group, left *evaluate.LeftOut) []onset {
	undisturbed := map[string][]evaluate.Row{}
	var longest []evaluate.Row
	scenarios := evaluate.Split(g.Rows, func(r evaluate.Row) string { return r.Text("scenario") })
	for _, run := range scenarios {
		if name, ok := strings.CutPrefix(run[0].Text("scenario"), before); ok {
			undisturbed[name] = evaluate.InOrder(run)
			if len(run) > len(longest) {
				longest = undisturbed[name]
			}
		}
	}
	never, whole := ending(longest)
	var out []onset
	for _, of := range scenarios {
		s := onset{workload: g.Workload, scenario: of[0].Text("scenario"), never: never}
		if strings.HasPrefix(s.scenario, before) {
			continue
		}
		runs, decisions, qualities := evaluate.Runs(of), 0, map[string][]float64{}
		for i, run := range runs {
			runs[i] = evaluate.InOrder(run)
			for p, r := range runs[i] { // later epochs may say none, where nothing was asked
				if a := r.Text("action"); a != "" && a != noAction {
					decisions = max(decisions, p+1)
				}
			}
		}
		s.left = cmp.Or(epochsLeft(undisturbed[s.scenario]), float64(len(runs[0]))) // the second is known only afterwards
		for _, run := range runs {
			quality, ok := ending(run)
			one := adapt.Run{Kind: s.workload, Gain: quality} // over never, below
			for p, r := range run[:min(decisions, len(run))] {
				one.Actions = append(one.Actions, tuning.Taken{Name: r.Text("action"), Left: s.left - float64(p)})
			}
			if !ok || decisions == 0 || len(one.Actions) < decisions || tuning.Times(one.Actions, "") > 0 {
				left.Add(g, run, "an action, or a quality at the end, is missing")
				continue
			}
			s.runs = append(s.runs, one)
			qualities[does(one.Actions)] = append(qualities[does(one.Actions)], quality)
		}
		if idle := strings.TrimSpace(strings.Repeat(noAction+" ", decisions)); !whole {
			s.never = float64(evaluate.Mean(qualities[idle]))
		}
		if len(s.runs) == 0 || !(s.never > 0) {
			left.Add(g, of, "no run "+before+"… and none without an action says what never to act comes to")
			continue
		}
		s.qualities = map[string]evaluate.Figure{"": evaluate.Figure(s.never)}
		for does, q := range qualities {
			s.qualities[does] = evaluate.Mean(q)
		}
		for i := range s.runs {
			s.runs[i].Gain = s.runs[i].Gain/s.never - 1
		}
		out = append(out, s)
	}
	return out
}

// ending returns the mean quality of a run's last epochs; false: unknown.
func ending(run []evaluate.Row) (float64, bool) {
	sum := 0.0
	for _, r := range run[max(0, len(run)-lastOnes):] {
		q, ok := r.Float("quality")
		if !ok {
			return 0, false
		}
		sum += q
	}
	return sum / lastOnes, sum > 0 && len(run) >= lastOnes
}

// epochsLeft is how many epochs the budget has left after a run, at the run's own pace; 0: unknown.
func epochsLeft(run []evaluate.Row) float64 {
	if len(run) == 0 {
		return 0
	}
	seconds, timed := run[len(run)-1].Float("seconds")
	budget, _ := run[len(run)-1].Float("budget_seconds")
	if !timed || !(seconds > 0) {
		return 0
	}
	return max(0, budget/seconds-1) * float64(len(run))
}

func runsOf(all []onset, learns func(onset) bool) []adapt.Run {
	return slices.Concat(tuning.Each(evaluate.Only(all, learns), func(s onset) []adapt.Run { return s.runs })...)
}

func does(taken []tuning.Taken) string { return strings.Join(tuning.Names(taken), " ") }

// held is a scenario that was held out of all workloads, or with its whole workload.
type held struct {
	out string
	*onset
}

func (h held) learns(s onset) bool {
	if h.out == "workload" {
		return s.workload != h.workload
	}
	return s.scenario != h.scenario
}

// choose asks the policy at each decision.
func (h held) choose(m *adapt.Model) []tuning.Taken {
	q := adapt.Question{Kind: h.workload, Left: h.left, Decisions: len(h.runs[0].Actions), Throughout: true}
	taken := slices.Concat(tuning.Each(h.runs, func(r adapt.Run) []tuning.Taken { return r.Actions })...)
	for _, same := range evaluate.Split(tuning.Names(taken), func(name string) string { return name }) {
		q.Offered = append(q.Offered, tuning.Offer{Name: same[0]})
	}
	for ; q.Decisions > 0; q.Decisions, q.Left = q.Decisions-1, q.Left-1 {
		c := m.Choose(q)
		if c.Action == "" {
			break
		}
		q.Taken = append(q.Taken, tuning.Taken{Name: c.Action, Left: q.Left})
	}
	return q.Taken
}

func (h held) expect(m *adapt.Model, taken []tuning.Taken) float64 {
	gain, _ := m.Expect(h.workload, taken, nil)
	return h.never * (1 + gain)
}

// measure makes the row. What is expected is by a model of all runs, the truth, which luck in one
// run moves little: the oracle is lucky.
func (h held) measure(learned []adapt.Run, truth *adapt.Model) evaluate.Line {
	model := adapt.Learn(learned)
	chosen, never, most, sum := h.choose(model), h.qualities[""], h.never, 0.0
	policy, ok := h.qualities[does(chosen)]
	if !ok {
		policy = evaluate.Unknown()
	}
	for _, r := range h.runs {
		sum, most = sum+h.never*(1+r.Gain), max(most, h.expect(truth, r.Actions))
	}
	_, oracle := evaluate.Range(slices.Collect(maps.Values(h.qualities)))
	return evaluate.Line{
		"workload": h.workload, "scenario": h.scenario, "held_out": h.out, "epochs_left": evaluate.Figure(h.left),
		"never": never, "always": h.qualities[slices.Sorted(maps.Keys(h.qualities))[1]], // behind doing nothing, by the alphabet
		"random": evaluate.Figure(sum / float64(len(h.runs))), "fixed": h.fixed(learned),
		"policy": policy, "oracle": oracle, "gain_share": (policy - never) / (oracle - never), "actions": strings.Fields(does(chosen)),
		"forecast": evaluate.Figure(h.expect(model, chosen)), "policy_expected": evaluate.Figure(h.expect(truth, chosen)),
		"oracle_expected": evaluate.Figure(most),
	}
}

// fixed is the quality of what gained most in the runs that were not held out.
func (h held) fixed(learned []adapt.Run) evaluate.Figure {
	best, _ := evaluate.Least(slices.Sorted(maps.Keys(h.qualities)), func(name string) float64 {
		same := evaluate.Only(learned, func(r adapt.Run) bool { return does(r.Actions) == name })
		return -float64(evaluate.Mean(tuning.Each(same, func(r adapt.Run) float64 { return r.Gain })))
	})
	return h.qualities[best]
}

// sharesOf sums up the rows of each way to hold out whose policy is known. The share of a row in
// which little can be gained says little, so gains are added before they are divided.
func sharesOf(rows []evaluate.Line) []evaluate.Line {
	var out []evaluate.Line
	for _, of := range evaluate.Split(rows, func(r evaluate.Line) string { return r.Text("held_out") }) {
		by := of[0]["held_out"]
		of = slices.DeleteFunc(of, func(r evaluate.Line) bool { return !r.Figure("policy").Known() })
		share := func(what, best string) evaluate.Figure {
			var sum, most evaluate.Figure
			for _, r := range of {
				sum, most = sum+r.Figure(what)-r.Figure("never"), most+r.Figure(best)-r.Figure("never")
			}
			return sum / most
		}
		all := evaluate.Column(of, "gain_share")
		low, high := evaluate.Interval(all)
		worst, _ := evaluate.Range(tuning.Each(of, func(r evaluate.Line) evaluate.Figure { return r.Figure("policy") - r.Figure("never") }))
		out = append(out, evaluate.Line{
			"held_out": by, "rows": len(of), "gain_share": share("policy", "oracle"), "expected_share": share("policy_expected", "oracle_expected"),
			"gain_share_mean": evaluate.Mean(all), "gain_share_low": low, "gain_share_high": high,
			"fixed_share": share("fixed", "oracle"), "always_share": share("always", "oracle"), "random_share": share("random", "oracle"), "worst": worst,
		})
	}
	return out
}
