package regret

import (
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// job is one repeat of one input: it ran under every setting, and was profiled under
// the default.
type job struct {
	subject     *subject
	repeat      int
	profile     tuning.Profile
	profiled    bool
	observation knowledge.Observation
}

// jobs are what the controller would have observed.
func (in Input) jobs(subjects []*subject, sampled sampled) []job {
	var out []job
	own := in.Default.Key()
	for _, s := range subjects {
		for _, repeat := range s.repeats() {
			reference, ok := s.cells[own][repeat]
			if !ok {
				continue // what is not measured under the default teaches no effect
			}
			j := job{subject: s, repeat: repeat}
			j.profile, j.profiled = sampled.profile(reference, s.machine, s.cores)
			id := fmt.Sprintf("%s#%d", s.name(), repeat)
			j.observation = knowledge.Observation{
				ID: id, Job: id, Kind: tuning.JobKind{Name: s.name()}, Machine: s.machine, Cores: s.cores, At: moment(),
			}
			if j.profiled {
				j.observation.Profiles = []tuning.Profile{j.profile}
			}
			for _, key := range s.keys() {
				if m, ok := s.cells[key][repeat]; ok {
					trial := m.epoch
					trial.Reference = key == own
					j.observation.Trials = append(j.observation.Trials, trial)
				}
			}
			out = append(out, j)
		}
	}
	return out
}

// moment is when everything was observed: nothing has aged.
func moment() time.Time { return time.Unix(0, 0).UTC() }

// mind is what the others taught: all but one input.
type mind struct {
	in      Input
	model   *classify.Model
	classes int
	members map[string][]job // by class
	of      map[string]string
	all     []knowledge.Observation
}

// learn makes a mind of jobs, as the controller does it.
func (in Input) learn(jobs []job) (*mind, error) {
	m := &mind{in: in, members: map[string][]job{}, of: map[string]string{}}
	var samples []classify.Sample
	for _, j := range jobs {
		m.all = append(m.all, j.observation)
		if j.profiled {
			samples = append(samples, classify.Sample{Profile: j.profile, Run: j.observation.Job, Kind: j.observation.Kind.String()})
		}
	}
	var err error
	if m.model, err = classify.Fit(samples); err != nil {
		return nil, fmt.Errorf("fit the classes: %w", err)
	}
	for _, s := range m.model.Strata {
		m.classes += len(s.Groups)
	}
	for _, j := range jobs {
		if !j.profiled {
			continue
		}
		if c := m.model.Classify(j.profile); c.Known() {
			m.members[c.ID] = append(m.members[c.ID], j)
			m.of[j.observation.ID] = c.ID
		}
	}
	return m, nil
}

// verdict is what is decided about a job.
type verdict struct {
	known     bool
	workloads []string // of the class's members
	own       bool     // one of them is the job's
	settings  tuning.Settings
	moved     bool
	reason    tuning.Reason
}

// decide asks about a job that runs under its default: nothing but its profile is told.
func (m *mind) decide(j job) verdict {
	out := verdict{settings: m.in.Default}
	class := tuning.Class{Reason: tuning.ReasonNoSamples}
	if j.profiled {
		class = m.model.Classify(j.profile)
	}
	out.known, out.reason = class.Known(), class.Reason
	if !out.known {
		return out
	}
	for _, member := range m.members[class.ID] {
		out.workloads = append(out.workloads, member.subject.workload)
	}
	slices.Sort(out.workloads)
	out.workloads = slices.Compact(out.workloads)
	out.own = slices.Contains(out.workloads, j.subject.workload)
	effects := knowledge.ClassEffects(
		slices.DeleteFunc(slices.Clone(m.all), func(o knowledge.Observation) bool { return m.of[o.ID] != class.ID }),
		m.in.Default,
		knowledge.Target{Machine: j.subject.machine, Cores: j.subject.cores},
		m.in.Measure,
		moment(),
	)
	d := plan.Decide(m.in.state(class, effects, j.observation))
	out.reason = d.Reason
	if d.Action == tuning.Move {
		out.settings, out.moved = d.Settings, true
	}
	return out
}

// state is that of a job of which nearly all is still to come, and which can be moved
// for nothing: whether a move repays its restart is another question.
func (in Input) state(class tuning.Class, effects []tuning.Effect, o knowledge.Observation) tuning.State {
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
