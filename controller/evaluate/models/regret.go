package models

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/profile"
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
	sampled, err := in.sampled()
	if err != nil {
		return out, err
	}
	all, left, err := in.gather(sampled)
	if err != nil {
		return out, err
	}
	in.knobs = knobs(all)
	if in.Default == nil {
		in.Default = tuning.Settings{}
		for _, k := range in.knobs { // the most of everything
			in.Default[k.Name] = slices.MaxFunc(k.Values, tuning.Value.Compare)
		}
	}
	own := in.Default.Key()
	// Something to choose, and something to judge it by.
	used := evaluate.Only(all, func(s *factorial) bool { return len(s.repeated()) >= 2 && len(s.runs[own]) >= 2 })
	if len(used) < 2 {
		return out, evaluate.Invalid("too little is recorded: %d of %d inputs have two repeats of two settings, the default %s among them, with what %s of %s needs; want two inputs",
			len(used), len(all), own, in.Objective, in.Energy)
	}
	jobs := in.jobs(used)
	if !slices.ContainsFunc(jobs, job.profiled) {
		return out, evaluate.Invalid("too little is recorded: no run under the default %s was sampled; want the samples of the same recording, in the same folder", own)
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

// knobs returns the knobs that the settings name, with every measured value.
func knobs(all []*factorial) []tuning.Knob {
	var settings []tuning.Settings
	for _, s := range all {
		for _, key := range s.keys() {
			for _, run := range s.runs[key] {
				settings = append(settings, run.Settings)
			}
		}
	}
	return tuning.Each(tuning.Knobs(settings), func(name string) tuning.Knob {
		k := tuning.Knob{Name: name}
		for _, s := range settings {
			if v, has := s[name]; has && !slices.Contains(k.Values, v) {
				k.Values = append(k.Values, v)
			}
		}
		return k
	})
}

// judgement is the result for one input.
type judgement struct {
	row       evaluate.Line
	single    string  // the best single setting for all others
	hindsight float64 // its regret, as a logarithm
	classes   int
	verdicts  []verdict
}

// leaveOut learns from all others on the machine and asks about each repeat of the input.
func (in RegretInput) leaveOut(s *factorial, all []*factorial, jobs []job) (judgement, error) {
	other := func(o *factorial) bool { return o != s && o.machine == s.machine }
	taught, err := in.learn(evaluate.Only(jobs, func(j job) bool { return other(j.input) }))
	if err != nil {
		return judgement{}, fmt.Errorf("without %s: %w", s.name(), err)
	}
	best := single(evaluate.Only(all, other))
	out := judgement{single: best, hindsight: s.hindsight(best), classes: taught.classes}
	var classes, reasons, settings []string
	var hindsight []float64
	for _, j := range evaluate.Only(jobs, func(j job) bool { return j.input == s }) {
		v := taught.decide(j)
		if !v.moved {
			reasons = insert(reasons, string(v.reason))
		}
		for _, w := range v.workloads {
			classes = insert(classes, w)
		}
		key := v.settings.Key()
		settings = insert(settings, key)
		tried := key // the cheapest when each setting was tried once, in the repeat of the profile
		if !v.known {
			tried = cmp.Or(s.cheapest(s.keys(), []int{j.repeat}), key)
		}
		for _, judge := range s.repeats() {
			if judge != j.repeat { // it was profiled in it
				v.regret, v.probed = append(v.regret, s.regret(key, judge)), append(v.probed, s.regret(tried, judge))
			}
		}
		out.verdicts, hindsight = append(out.verdicts, v), append(hindsight, s.hindsight(key))
	}
	var seconds []float64
	for _, run := range s.runs[in.Default.Key()] {
		seconds = append(seconds, run.seconds)
	}
	slices.Sort(seconds) // so that the sum does not depend on the order of a map
	repeats, _ := s.whole()
	own := s.over(in.Default.Key())
	regret, probed := costs(out.verdicts)
	out.row = evaluate.Line{
		"workload": s.workload, "input": s.input, "machine": s.machine, "repeats": len(repeats), "optimum": s.optimum(),
		"classes": classes, "reasons": reasons, "chosen": settings, "known": evaluate.ShareOf(out.verdicts, func(v verdict) bool { return v.known }),
		"seconds": evaluate.GeometricOf(seconds), "regret": regret, "regret_hindsight": evaluate.Geometric(hindsight),
		"probed_regret": probed, "single_regret": s.over(best), "default_regret": own, "oracle_over_default": 1 / own,
	}
	return out, nil
}

// costs returns the geometric mean regrets over all repeats of verdicts.
func costs(all []verdict) (regret, probed evaluate.Figure) {
	var got, tried []float64
	for _, v := range all {
		got, tried = append(got, v.regret...), append(tried, v.probed...)
	}
	return evaluate.Geometric(got), evaluate.Geometric(tried)
}

// summary sums the rows up: means are geometric, over inputs.
func (in RegretInput) summary(all []*factorial, judged []judgement, rows []evaluate.Line) evaluate.Line {
	verdicts := slices.Concat(tuning.Each(judged, func(j judgement) []verdict { return j.verdicts })...)
	known := evaluate.Only(verdicts, func(v verdict) bool { return v.known })
	knownRegret, _ := costs(known)
	unknownRegret, unknownProbed := costs(evaluate.Only(verdicts, func(v verdict) bool { return !v.known }))
	var settings, singles []string
	for _, j := range judged {
		singles = insert(singles, j.single)
	}
	var runs []trial
	for _, s := range all {
		for _, key := range s.keys() {
			settings = insert(settings, key)
			runs = slices.AppendSeq(runs, maps.Values(s.runs[key]))
		}
	}
	different := func(key string) int {
		return len(evaluate.Split(rows, func(row evaluate.Line) string { return row.Text(key) }))
	}
	_, repeats := evaluate.Range(evaluate.Column(rows, "repeats"))
	out := evaluate.Line{
		"objective": in.Objective, "weight": evaluate.Figure(in.Weight), "energy": in.Energy, "default": in.Default.Key(),
		"workloads": different("workload"), "inputs": len(judged), "settings": len(settings), "repeats": int(repeats), "optima": different("optimum"),
		"questions": len(verdicts), "single_settings": singles, "repeat_sd_log": spread(all),
		"classes_mean":      evaluate.Mean(tuning.Each(judged, func(j judgement) float64 { return float64(j.classes) })),
		"known_regret_mean": knownRegret, "unknown_regret_mean": unknownRegret, "unknown_probed_regret_mean": unknownProbed,
		"single_regret_hindsight_mean": evaluate.Geometric(tuning.Each(judged, func(j judgement) float64 { return j.hindsight })),
		"share_known":                  evaluate.Share(len(known), len(verdicts)),
		"share_moved":                  evaluate.ShareOf(verdicts, func(v verdict) bool { return v.moved }),
		"share_own_kind":               evaluate.ShareOf(known, func(v verdict) bool { return v.own }),
		"share_disturbed":              evaluate.ShareOf(runs, func(t trial) bool { return t.disturbed }),
	}
	for _, key := range []string{"regret", "regret_hindsight", "probed_regret", "single_regret", "default_regret", "oracle_over_default"} {
		out[key+"_mean"] = evaluate.GeometricOf(evaluate.Column(rows, key))
	}
	for _, key := range []string{"regret", "probed_regret", "single_regret", "default_regret"} {
		_, out[key+"_worst"] = evaluate.Range(evaluate.Column(rows, key))
	}
	return out
}

// job is one repeat of one input: it ran under every setting, and was profiled under
// the default where it has a profile.
type job struct {
	knowledge.Observation
	input  *factorial
	repeat int
}

// jobs are what the controller would have observed. What is not measured under the default
// teaches no effect.
func (in RegretInput) jobs(all []*factorial) []job {
	var out []job
	own := in.Default.Key()
	for _, s := range all {
		for _, repeat := range s.repeats() {
			reference, ok := s.runs[own][repeat]
			if !ok {
				continue
			}
			id := fmt.Sprintf("%s#%d", s.name(), repeat)
			j := job{input: s, repeat: repeat, Observation: knowledge.Observation{
				ID: id, Job: id, Kind: tuning.JobKind{Name: s.name()}, Machine: s.machine, Cores: s.cores, At: moment(),
			}}
			if run := reference.sampled; run != nil {
				spec := profile.Spec{Settings: reference.Settings, Machine: s.machine, NodeCores: s.cores}
				p := accounted(run.intervals, slices.Sorted(slices.Values(run.ends)), spec)
				if len(p.Features) > 0 {
					j.Profiles = []tuning.Profile{p}
				}
			}
			for _, key := range s.keys() {
				if t, ok := s.runs[key][repeat]; ok {
					t.Reference = key == own
					j.Trials = append(j.Trials, t.Trial)
				}
			}
			out = append(out, j)
		}
	}
	return out
}

func (j job) profiled() bool { return len(j.Profiles) > 0 }

// lessons is what the others taught: all inputs but one.
type lessons struct {
	in      RegretInput
	model   *classify.Model
	classes int
	members map[string][]job // by class
}

// learn makes lessons of jobs, as the controller does it.
func (in RegretInput) learn(jobs []job) (*lessons, error) {
	m := &lessons{in: in, members: map[string][]job{}}
	jobs = evaluate.Only(jobs, job.profiled)
	samples := tuning.Each(jobs, func(j job) classify.Sample {
		return classify.Sample{Profile: j.Profiles[0], Run: j.Job, Kind: j.Kind.String()}
	})
	var err error
	if m.model, err = classify.Fit(samples); err != nil {
		return nil, fmt.Errorf("fit the classes: %w", err)
	}
	m.classes = tuning.Sum(m.model.Strata, func(s classify.Stratum) int { return len(s.Groups) })
	for _, j := range jobs {
		if c := m.model.Classify(j.Profiles[0]); c.Known() {
			m.members[c.ID] = append(m.members[c.ID], j)
		}
	}
	return m, nil
}

// verdict is what was decided about a job. Figures are logarithms of ratios, NaN where nothing was measured.
type verdict struct {
	known     bool
	workloads []string // of the class's members
	own       bool     // one of them is the job's
	settings  tuning.Settings
	moved     bool
	reason    tuning.Reason
	regret    []float64 // in each repeat but that of the profile
	probed    []float64 // the same, were each setting tried once where there was no class
}

// decide asks about a job that runs under its default: its profile is all that is known.
func (m *lessons) decide(j job) verdict {
	out := verdict{settings: m.in.Default}
	class := tuning.Class{Reason: tuning.ReasonNoSamples}
	if j.profiled() {
		class = m.model.Classify(j.Profiles[0])
	}
	out.known, out.reason = class.Known(), class.Reason
	if !out.known {
		return out
	}
	for _, member := range m.members[class.ID] {
		out.workloads = insert(out.workloads, member.input.workload)
	}
	seen := tuning.Each(m.members[class.ID], func(j job) knowledge.Observation { return j.Observation })
	out.own = slices.Contains(out.workloads, j.input.workload)
	target := knowledge.Target{Machine: j.input.machine, Cores: j.input.cores}
	effects := knowledge.ClassEffects(seen, m.in.Default, target, m.in.Measure, moment())
	d := plan.Decide(m.in.state(class, effects, j.Observation))
	out.reason = d.Reason
	if d.Action == tuning.Move {
		out.settings, out.moved = d.Settings, true
	}
	return out
}

// state is that of a job that is near its start and can be moved at no cost: whether a
// move repays its restart is another question.
func (in RegretInput) state(class tuning.Class, effects []tuning.Effect, o knowledge.Observation) tuning.State {
	const epochs = 1_000_000
	seconds := 1.0
	if t, ok := tuning.Reference(o.Trials); ok {
		seconds = t.Seconds
	}
	return tuning.State{
		Now: moment(),
		Policy: tuning.Policy{
			Mode: tuning.Apply, Objective: in.Objective, Weight: in.Weight, Knobs: in.knobs,
			Progress: tuning.Progress{Report: true}, Checkpoint: &tuning.Checkpoint{},
			Profile: tuning.ProfileSpec{WarmupEpochs: 1, Epochs: 2}, Budget: tuning.Budget{Restarts: 1},
		},
		Site:      tuning.Site{Margin: 1},
		Standing:  tuning.Standing{Own: in.Default, Current: in.Default, EpochsDone: 3, EpochsTotal: epochs, EpochSeconds: seconds, JoulesSource: in.Energy},
		Findings:  tuning.Findings{Class: &class},
		Knowledge: tuning.Knowledge{ClassEffects: effects},
		Proposal:  tuning.Proposal{NextReason: tuning.ReasonBudgetProbes},
	}
}
