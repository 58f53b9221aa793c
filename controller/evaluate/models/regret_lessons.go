package models

import (
	"fmt"
	"slices"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
)

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

// state is that of a job of which nearly all is still to come, and which can be moved
// for nothing: whether a move repays its restart is another question.
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
