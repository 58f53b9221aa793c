package models

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

// RegretInput is what Regret measures: trials and samples of the same runs, and curves,
// which say where epochs end; without any each sample is an epoch.
type RegretInput struct {
	records.Set
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

// RegretRow is what became of one input of one workload. Ratios are plain fractions: 1 is no
// regret. Null: there was nothing to measure it by.
type RegretRow struct {
	Workload  string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Input     int           `json:"input" about:"as the tables number them; 0 = they do not" col:"INPUT"`
	Machine   string        `json:"machine" about:"name, as in the data"`
	Repeats   int           `json:"repeats" about:"of the input in which all settings were measured"`
	Seconds   result.Figure `json:"seconds" about:"geometric mean of a whole run under the default" col:"SECONDS|2"`
	Known     result.Figure `json:"known" about:"share of the questions that got a class" col:"KNOWN"`
	Classes   []string      `json:"classes,omitempty" about:"workloads among whose runs the class was learned" col:"CLASS LEARNED FROM"`
	Reasons   []string      `json:"reasons,omitempty" about:"of the classifier where there was no class, of the planner where there was one and no move" col:"WHY NOT"`
	Chosen    []string      `json:"chosen,omitempty" about:"settings that it got, the default included" col:"GOT"`
	Optimum   string        `json:"optimum" about:"cheapest in all repeats together" col:"OPTIMUM"`
	Regret    result.Figure `json:"regret" about:"cost of what it got over that of its own optimum, both in repeats that chose neither" col:"REGRET"`
	Hindsight result.Figure `json:"regret_hindsight" about:"the same over the cheapest of all repeats together" col:"HINDSIGHT"`
	Probed    result.Figure `json:"probed_regret" about:"regret, were each setting probed once, in the repeat of the profile, where there was no class; the probes are not charged" col:"PROBED"`
	Single    result.Figure `json:"single_regret" about:"regret of the best single setting for all others" col:"SINGLE"`
	Default   result.Figure `json:"default_regret" about:"regret of the default" col:"DEFAULT"`
	Oracle    result.Figure `json:"oracle_over_default" about:"cost of its own optimum over that of the default: what there is to gain"`
}

// RegretSummary sums the rows up. Means are geometric, over inputs.
type RegretSummary struct {
	Objective       tuning.Objective `json:"objective" about:"what is minimised"`
	Weight          result.Figure    `json:"weight" about:"of energy in blend"`
	Energy          string           `json:"energy" about:"what stands for energy"`
	Default         string           `json:"default" about:"the settings that inputs come with"`
	Workloads       int              `json:"workloads" about:"how many"`
	Inputs          int              `json:"inputs" about:"how many were left out in turn"`
	Settings        int              `json:"settings" about:"how many different ones"`
	Repeats         int              `json:"repeats" about:"most of any input"`
	Skipped         int              `json:"skipped" about:"inputs with fewer than two repeats of two settings, or none of the default"`
	Optima          int              `json:"optima" about:"different settings among the optima"`
	Questions       int              `json:"questions" about:"how often it was decided"`
	Regret          result.Figure    `json:"regret_mean" about:"geometric mean of regret over the inputs"`
	RegretWorst     result.Figure    `json:"regret_worst" about:"greatest of them"`
	Hindsight       result.Figure    `json:"regret_hindsight_mean" about:"geometric mean of regret_hindsight"`
	KnownRegret     result.Figure    `json:"known_regret_mean" about:"geometric mean over the questions that got a class"`
	UnknownRegret   result.Figure    `json:"unknown_regret_mean" about:"geometric mean over those that kept their default for want of one"`
	UnknownProbed   result.Figure    `json:"unknown_probed_regret_mean" about:"geometric mean over the same, were they probed"`
	Probed          result.Figure    `json:"probed_regret_mean" about:"geometric mean of probed_regret over the inputs"`
	ProbedWorst     result.Figure    `json:"probed_regret_worst" about:"greatest of them"`
	Single          result.Figure    `json:"single_regret_mean" about:"geometric mean of single_regret"`
	SingleWorst     result.Figure    `json:"single_regret_worst" about:"greatest of them"`
	SingleHindsight result.Figure    `json:"single_regret_hindsight_mean" about:"the same in hindsight"`
	SingleSettings  []string         `json:"single_settings" about:"the best single setting for all others, each that came up"`
	DefaultRegret   result.Figure    `json:"default_regret_mean" about:"geometric mean of default_regret"`
	DefaultWorst    result.Figure    `json:"default_regret_worst" about:"greatest of them"`
	Oracle          result.Figure    `json:"oracle_over_default_mean" about:"geometric mean of oracle_over_default"`
	Known           result.Figure    `json:"share_known" about:"share of the questions that got a class"`
	Moved           result.Figure    `json:"share_moved" about:"share of the questions that were given another setting than the default"`
	OwnKind         result.Figure    `json:"share_own_kind" about:"share of those with a class whose class holds runs of the same workload"`
	Classes         result.Figure    `json:"classes_mean" about:"classes learned, in the mean over the inputs left out"`
	Disturbed       result.Figure    `json:"share_disturbed" about:"share of the runs used that others disturbed"`
	Spread          result.Figure    `json:"repeat_sd_log" about:"standard deviation of ln cost between repeats of one setting"`
	LeftOut         []result.LeftOut `json:"left_out" about:"trials that did not fail and whose cost was not measured"`
}

// RegretReport is the result of Regret.
type RegretReport = result.Report[RegretRow, RegretSummary]

// Regret leaves each input out in turn: what does the setting of its class cost it?
func Regret(ctx context.Context, in RegretInput, progress result.Progress) (RegretReport, error) {
	in.Tariff, in.Objective, in.Energy = tuning.DefaultTariff(), cmp.Or(in.Objective, DefaultObjective), cmp.Or(in.Energy, DefaultEnergy)
	out := RegretReport{Command: "evaluate regret", Data: in.Files()}
	switch {
	case !slices.Contains(tuning.Objectives(), in.Objective):
		return out, result.Invalid("objective %q: want one of %v", in.Objective, tuning.Objectives())
	case !slices.Contains(Energies(), in.Energy):
		return out, result.Invalid("energy %q: want one of %v", in.Energy, Energies())
	case !(in.Weight >= 0 && in.Weight <= 1):
		return out, result.Invalid("weight %v: want a share from 0 to 1", in.Weight)
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
		return out, result.Invalid("too little is recorded: %d of %d inputs have two repeats of two settings, the default %s among them, with what %s of %s needs; want two inputs",
			len(used), len(all), own, in.Objective, in.Energy)
	}
	sampled, err := in.sampled()
	if err != nil {
		return out, err
	}
	jobs := in.jobs(used, sampled)
	if !slices.ContainsFunc(jobs, func(j job) bool { return j.profiled }) {
		return out, result.Invalid("too little is recorded: no run under the default %s was sampled; want the samples of the same recording", own)
	}
	judged := make([]judgement, len(used))
	err = result.Each(ctx, len(used), progress, func(_ context.Context, i int) (string, error) {
		var err error
		judged[i], err = in.leaveOut(used[i], used, jobs)
		return "without " + used[i].name(), err
	})
	if err != nil {
		return out, err
	}
	for _, j := range judged {
		out.Rows = append(out.Rows, j.row)
	}
	out.Summary = in.summary(used, judged)
	out.Summary.Skipped, out.Summary.LeftOut = len(all)-len(used), left
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

// judgement is what became of one input. Figures are logarithms of ratios.
type judgement struct {
	row              RegretRow
	single           string // the best single setting for all others
	asked            int
	known, moved     int
	ownKind, classes int
	withClass        []float64 // of the questions that got a class
	without          []float64 // of those that kept their default for want of one
	withoutProbed    []float64 // of the same, were they probed
	singleHindsight  []float64
}

// note adds a ratio that was measured.
func note(to *[]float64, v float64, ok bool) {
	if ok {
		*to = append(*to, v)
	}
}

// leaveOut learns from all others on the machine and asks about each repeat of the input.
func (in RegretInput) leaveOut(s *factorial, all []*factorial, jobs []job) (judgement, error) {
	others := slices.DeleteFunc(slices.Clone(all), func(o *factorial) bool { return o == s || o.machine != s.machine })
	var rest, asked []job
	for _, j := range jobs {
		switch {
		case j.input == s:
			asked = append(asked, j)
		case j.input.machine == s.machine:
			rest = append(rest, j)
		}
	}
	taught, err := in.learn(rest)
	if err != nil {
		return judgement{}, fmt.Errorf("without %s: %w", s.name(), err)
	}
	repeats, keys := s.whole()
	optimum := s.cheapest(repeats, func(k string) bool { return slices.Contains(keys, k) })
	out := judgement{single: single(others), classes: taught.classes, asked: len(asked)}
	r := &out.row
	*r = RegretRow{Workload: s.workload, Input: s.input, Machine: s.machine, Repeats: len(repeats), Optimum: optimum}
	var seconds, chosen, probed, hindsight []float64
	for _, run := range s.runs[in.Default.Key()] {
		seconds = append(seconds, run.whole.Seconds)
	}
	slices.Sort(seconds) // so that the sum does not depend on the order of a map
	for _, j := range asked {
		v := taught.decide(j)
		out.count(v)
		key := v.settings.Key()
		tried := key // the cheapest when each setting was tried once, in the repeat of the profile
		if best := s.cheapest([]int{j.repeat}, func(string) bool { return true }); !v.known && best != "" {
			tried = best
		}
		for _, judge := range s.repeats() {
			if judge == j.repeat {
				continue // it was profiled in it
			}
			cost, ok := s.regret(key, judge)
			costTried, okTried := s.regret(tried, judge)
			note(&chosen, cost, ok)
			note(&probed, costTried, okTried)
			if v.known {
				note(&out.withClass, cost, ok)
			} else {
				note(&out.without, cost, ok)
				note(&out.withoutProbed, costTried, okTried)
			}
		}
		v2, ok := s.hindsight(key)
		note(&hindsight, v2, ok)
	}
	hind, ok := s.hindsight(out.single)
	note(&out.singleHindsight, hind, ok)
	r.Seconds, r.Known = result.GeometricOf(seconds), result.Share(out.known, out.asked)
	r.Regret, r.Hindsight, r.Probed = result.Geometric(chosen), result.Geometric(hindsight), result.Geometric(probed)
	r.Single, r.Default = s.over(out.single), s.over(in.Default.Key())
	r.Oracle = 1 / r.Default
	return out, nil
}

// count adds a verdict to the row.
func (j *judgement) count(v verdict) {
	if v.known {
		j.known++
	}
	if v.own {
		j.ownKind++
	}
	if v.moved {
		j.moved++
	} else {
		j.row.Reasons = insert(j.row.Reasons, string(v.reason))
	}
	for _, w := range v.workloads {
		j.row.Classes = insert(j.row.Classes, w)
	}
	j.row.Chosen = insert(j.row.Chosen, v.settings.Key())
}

// summary sums the rows up: means are geometric, over inputs.
func (in RegretInput) summary(all []*factorial, judged []judgement) RegretSummary {
	out := RegretSummary{
		Objective: in.Objective, Weight: result.Figure(in.Weight), Energy: in.Energy, Default: in.Default.Key(),
		Inputs: len(judged), SingleSettings: []string{},
	}
	var total judgement
	var workloads, settings, optima []string
	var classes []float64
	of := func(figure func(RegretRow) result.Figure) (mean, worst result.Figure) {
		var list []result.Figure
		for _, j := range judged {
			list = append(list, figure(j.row))
		}
		_, worst = result.Range(list)
		return result.GeometricOf(list), worst
	}
	for _, j := range judged {
		total.withClass, total.without = append(total.withClass, j.withClass...), append(total.without, j.without...)
		total.withoutProbed = append(total.withoutProbed, j.withoutProbed...)
		total.singleHindsight = append(total.singleHindsight, j.singleHindsight...)
		total.asked, total.known, total.moved, total.ownKind = total.asked+j.asked, total.known+j.known, total.moved+j.moved, total.ownKind+j.ownKind
		workloads, optima, classes = insert(workloads, j.row.Workload), insert(optima, j.row.Optimum), append(classes, float64(j.classes))
		out.SingleSettings = insert(out.SingleSettings, j.single)
		out.Repeats = max(out.Repeats, j.row.Repeats)
	}
	disturbed, runs := 0, 0
	for _, s := range all {
		for _, key := range s.keys() {
			settings = insert(settings, key)
			for _, r := range s.runs[key] {
				runs++
				if r.disturbed {
					disturbed++
				}
			}
		}
	}
	out.Workloads, out.Settings, out.Optima, out.Questions = len(workloads), len(settings), len(optima), total.asked
	out.Regret, out.RegretWorst = of(func(r RegretRow) result.Figure { return r.Regret })
	out.Hindsight, _ = of(func(r RegretRow) result.Figure { return r.Hindsight })
	out.Probed, out.ProbedWorst = of(func(r RegretRow) result.Figure { return r.Probed })
	out.Single, out.SingleWorst = of(func(r RegretRow) result.Figure { return r.Single })
	out.DefaultRegret, out.DefaultWorst = of(func(r RegretRow) result.Figure { return r.Default })
	out.Oracle, _ = of(func(r RegretRow) result.Figure { return r.Oracle })
	out.KnownRegret, out.UnknownRegret = result.Geometric(total.withClass), result.Geometric(total.without)
	out.UnknownProbed, out.SingleHindsight = result.Geometric(total.withoutProbed), result.Geometric(total.singleHindsight)
	out.Known, out.Moved, out.OwnKind = result.Share(total.known, total.asked), result.Share(total.moved, total.asked), result.Share(total.ownKind, total.known)
	out.Classes, out.Disturbed, out.Spread = result.Mean(classes), result.Share(disturbed, runs), spread(all)
	return out
}
