package models

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// RegretInput is what Regret measures: trials and samples of the same runs, and curves,
// which say where epochs end; without any each sample is an epoch.
type RegretInput struct {
	evaluate.Set
	tuning.Measure
	Energy      string          // what stands for energy: one of Energies
	Default     tuning.Settings // what inputs run under that are unknown; nil: the most of every knob
	Undisturbed bool            // leave out the runs that others disturbed

	knobs []tuning.Knob
}

// The defaults of a RegretInput.
const (
	DefaultObjective = tuning.EDP
	DefaultEnergy    = CoreSeconds
)

// Regret leaves each input out in turn: what does the setting of its class cost it?
func Regret(ctx context.Context, in RegretInput, progress evaluate.Progress) (evaluate.Report, error) {
	in.Tariff, in.Objective, in.Energy = tuning.DefaultTariff(), cmp.Or(in.Objective, DefaultObjective), cmp.Or(in.Energy, DefaultEnergy)
	out := evaluate.Report{Command: "evaluate regret", Data: in.Files()}
	err := cmp.Or(
		evaluate.Want(slices.Contains(tuning.Objectives(), in.Objective), "objective %q: want one of %v", in.Objective, tuning.Objectives()),
		evaluate.Want(slices.Contains(Energies(), in.Energy), "energy %q: want one of %v", in.Energy, Energies()),
		evaluate.Want(in.Weight >= 0 && in.Weight <= 1, "weight %v: want a share from 0 to 1", in.Weight),
	)
	if err != nil {
		return out, err
	}
	all, left, err := in.gather()
	if err != nil {
		return out, err
	}
	in.knobs = knobs(all)
	if in.Default == nil {
		in.Default = tuning.Settings{}
		for _, k := range in.knobs { // the most of everything
			in.Default[k.Name] = slices.MaxFunc(k.Values, func(a, b tuning.Value) int {
				return cmp.Or(cmp.Compare(a.Float(), b.Float()), cmp.Compare(a.String(), b.String()))
			})
		}
	}
	own := in.Default.Key()
	used := slices.DeleteFunc(slices.Clone(all), func(s *factorial) bool { return !s.usable(own) })
	if len(used) < 2 {
		return out, evaluate.Invalid("too little is recorded: %d of %d inputs have two repeats of two settings, the default %s among them, with what %s of %s needs; want two inputs",
			len(used), len(all), own, in.Objective, in.Energy)
	}
	sampled, err := in.sampled()
	if err != nil {
		return out, err
	}
	jobs := in.jobs(used, sampled)
	if !slices.ContainsFunc(jobs, func(j job) bool { return j.profiled }) {
		return out, evaluate.Invalid("too little is recorded: no run under the default %s was sampled; want the samples of the same recording", own)
	}
	judged := make([]judgement, len(used))
	err = out.Fill(ctx, len(used), progress, func(_ context.Context, i int) (string, []evaluate.Line, error) {
		var err error
		judged[i], err = in.leaveOut(used[i], used, jobs)
		return "without " + used[i].name(), []evaluate.Line{judged[i].row}, err
	})
	if err != nil {
		return out, err
	}
	out.Summary = in.summary(used, judged, out.Rows).With(evaluate.Line{"skipped": len(all) - len(used), "left_out": []evaluate.Line(left)})
	return out, nil
}

// knobs are what the settings name, with every value that was measured.
func knobs(all []*factorial) []tuning.Knob {
	var out []tuning.Knob
	for _, s := range all {
		for _, key := range s.keys() {
			settings := s.settings[key]
			for _, name := range slices.Sorted(maps.Keys(settings)) {
				i := slices.IndexFunc(out, func(k tuning.Knob) bool { return k.Name == name })
				if i < 0 {
					out, i = append(out, tuning.Knob{Name: name}), len(out)
				}
				if !slices.Contains(out[i].Values, settings[name]) {
					out[i].Values = append(out[i].Values, settings[name])
				}
			}
		}
	}
	return out
}

// judgement is what became of one input. Figures are logarithms of ratios, NaN where nothing was measured.
type judgement struct {
	row             evaluate.Line
	single          string // the best single setting for all others
	classes         int
	verdicts        []verdict
	withClass       []float64 // of the questions that got a class
	without         []float64 // of those that kept their default for want of one
	withoutProbed   []float64 // of the same, were they probed
	singleHindsight []float64
}

// leaveOut learns from all others on the machine and asks about each repeat of the input.
func (in RegretInput) leaveOut(s *factorial, all []*factorial, jobs []job) (judgement, error) {
	other := func(o *factorial) bool { return o != s && o.machine == s.machine }
	taught, err := in.learn(evaluate.Only(jobs, func(j job) bool { return other(j.input) }))
	if err != nil {
		return judgement{}, fmt.Errorf("without %s: %w", s.name(), err)
	}
	repeats, keys := s.whole()
	optimum := s.cheapest(repeats, func(k string) bool { return slices.Contains(keys, k) })
	out := judgement{single: single(evaluate.Only(all, other)), classes: taught.classes}
	var classes, reasons, settings []string
	var seconds, chosen, probed, hindsight []float64
	for _, run := range s.runs[in.Default.Key()] {
		seconds = append(seconds, run.whole.Seconds)
	}
	slices.Sort(seconds) // so that the sum does not depend on the order of a map
	for _, j := range evaluate.Only(jobs, func(j job) bool { return j.input == s }) {
		v := taught.decide(j)
		out.verdicts = append(out.verdicts, v)
		if !v.moved {
			reasons = insert(reasons, string(v.reason))
		}
		for _, w := range v.workloads {
			classes = insert(classes, w)
		}
		settings = insert(settings, v.settings.Key())
		key := v.settings.Key()
		tried := key // the cheapest when each setting was tried once, in the repeat of the profile
		if best := s.cheapest([]int{j.repeat}, func(string) bool { return true }); !v.known && best != "" {
			tried = best
		}
		for _, judge := range s.repeats() {
			if judge == j.repeat {
				continue // it was profiled in it
			}
			cost, costTried := s.regret(key, judge), s.regret(tried, judge)
			chosen, probed = append(chosen, cost), append(probed, costTried)
			if v.known {
				out.withClass = append(out.withClass, cost)
			} else {
				out.without, out.withoutProbed = append(out.without, cost), append(out.withoutProbed, costTried)
			}
		}
		hindsight = append(hindsight, s.hindsight(key))
	}
	out.singleHindsight = append(out.singleHindsight, s.hindsight(out.single))
	own := s.over(in.Default.Key())
	out.row = evaluate.Line{
		"workload": s.workload, "input": s.input, "machine": s.machine, "repeats": len(repeats), "optimum": optimum,
		"classes": classes, "reasons": reasons, "chosen": settings, "known": evaluate.ShareOf(out.verdicts, func(v verdict) bool { return v.known }),
		"seconds": evaluate.GeometricOf(seconds), "regret": evaluate.Geometric(chosen), "regret_hindsight": evaluate.Geometric(hindsight),
		"probed_regret": evaluate.Geometric(probed), "single_regret": s.over(out.single), "default_regret": own, "oracle_over_default": 1 / own,
	}
	return out, nil
}

// summary sums the rows up: means are geometric, over inputs.
func (in RegretInput) summary(all []*factorial, judged []judgement, rows []evaluate.Line) evaluate.Line {
	var total judgement
	var workloads, settings, optima, singles []string
	var classes []float64
	repeats := 0
	for i, j := range judged {
		total.withClass, total.without = append(total.withClass, j.withClass...), append(total.without, j.without...)
		total.withoutProbed = append(total.withoutProbed, j.withoutProbed...)
		total.singleHindsight = append(total.singleHindsight, j.singleHindsight...)
		total.verdicts = append(total.verdicts, j.verdicts...)
		workloads, optima = insert(workloads, rows[i].Text("workload")), insert(optima, rows[i].Text("optimum"))
		classes, singles = append(classes, float64(j.classes)), insert(singles, j.single)
		repeats = max(repeats, int(rows[i].Figure("repeats")))
	}
	var runs []trial
	for _, s := range all {
		for _, key := range s.keys() {
			settings = insert(settings, key)
			runs = slices.AppendSeq(runs, maps.Values(s.runs[key]))
		}
	}
	known := evaluate.Only(total.verdicts, func(v verdict) bool { return v.known })
	out := evaluate.Line{
		"objective": in.Objective, "weight": evaluate.Figure(in.Weight), "energy": in.Energy, "default": in.Default.Key(),
		"workloads": len(workloads), "inputs": len(judged), "settings": len(settings), "repeats": repeats, "optima": len(optima),
		"questions": len(total.verdicts), "single_settings": singles, "classes_mean": evaluate.Mean(classes), "repeat_sd_log": spread(all),
		"known_regret_mean": evaluate.Geometric(total.withClass), "unknown_regret_mean": evaluate.Geometric(total.without),
		"unknown_probed_regret_mean": evaluate.Geometric(total.withoutProbed), "single_regret_hindsight_mean": evaluate.Geometric(total.singleHindsight),
		"share_known":     evaluate.Share(len(known), len(total.verdicts)),
		"share_moved":     evaluate.ShareOf(total.verdicts, func(v verdict) bool { return v.moved }),
		"share_own_kind":  evaluate.ShareOf(known, func(v verdict) bool { return v.own }),
		"share_disturbed": evaluate.ShareOf(runs, func(t trial) bool { return t.disturbed }),
	}
	for _, key := range []string{"regret", "regret_hindsight", "probed_regret", "single_regret", "default_regret", "oracle_over_default"} {
		out[key+"_mean"] = evaluate.GeometricOf(evaluate.Column(rows, key))
	}
	for _, key := range []string{"regret", "probed_regret", "single_regret", "default_regret"} {
		_, out[key+"_worst"] = evaluate.Range(evaluate.Column(rows, key))
	}
	return out
}
