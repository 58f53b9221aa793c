package regret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

var (
	// ErrTooLittle means that the data cannot answer the question.
	ErrTooLittle = errors.New("too little is recorded")
	// ErrChoice means that there is no such objective, energy or default.
	ErrChoice = errors.New("not a choice")
)

// The defaults of an Input.
const (
	DefaultObjective = tuning.EDP
	DefaultEnergy    = CoreSeconds
)

// Input is what is evaluated.
type Input struct {
	Trials  []records.Table // needed
	Samples []records.Table // of the same runs; needed
	Curves  []records.Table // of the same runs: where epochs end; none: each sample is an epoch
	tuning.Measure
	Energy      string          // what stands for energy: one of Energies
	Default     tuning.Settings // what inputs run under that are not known; nil: the most of every knob
	Undisturbed bool            // leave out the runs that others disturbed
	Seed        uint64

	knobs []tuning.Knob
}

// Run leaves each input out in turn.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	in.Objective, in.Energy = cmp.Or(in.Objective, DefaultObjective), cmp.Or(in.Energy, DefaultEnergy)
	in.Tariff = tuning.DefaultTariff()
	out := Report{Command: "evaluate regret", Rows: []Row{}}
	for _, t := range slices.Concat(in.Trials, in.Samples, in.Curves) {
		out.Data = append(out.Data, t.File)
	}
	if err := in.check(); err != nil {
		return out, err
	}
	var files []string
	for _, t := range slices.Concat(in.Trials, in.Samples) {
		if slices.Contains(files, t.File) {
			return out, fmt.Errorf("%w: %s is named twice", records.ErrInvalid, t.File)
		}
		files = append(files, t.File)
	}
	all, left, err := in.gather()
	if err != nil {
		return out, err
	}
	in.knobs = knobs(all)
	if in.Default == nil {
		in.Default = most(in.knobs)
	}
	own := in.Default.Key()
	subjects := slices.DeleteFunc(slices.Clone(all), func(s *subject) bool { return !s.usable(own) })
	if len(subjects) < 2 {
		return out, fmt.Errorf("%w: %d of %d inputs have two repeats of two settings, the default %s among them, with what %s of %s needs; want two inputs",
			ErrTooLittle, len(subjects), len(all), own, in.Objective, in.Energy)
	}
	sampled, err := in.sampled()
	if err != nil {
		return out, err
	}
	jobs := in.jobs(subjects, sampled)
	if !slices.ContainsFunc(jobs, func(j job) bool { return j.profiled }) {
		return out, fmt.Errorf("%w: no run under the default %s was sampled; want the samples of the same recording", ErrTooLittle, own)
	}
	judged := make([]judgement, len(subjects))
	err = evaluate.Each(ctx, len(subjects), progress, func(_ context.Context, i int) (string, error) {
		var err error
		judged[i], err = in.leaveOut(subjects[i], subjects, jobs)
		return "without " + subjects[i].name(), err
	})
	if err != nil {
		return out, err
	}
	for _, j := range judged {
		out.Rows = append(out.Rows, j.row)
	}
	out.Summary = in.summary(subjects, judged)
	out.Summary.Skipped, out.Summary.LeftOut = len(all)-len(subjects), left
	return out, nil
}

func (in Input) check() error {
	switch {
	case !slices.Contains(tuning.Objectives(), in.Objective):
		return fmt.Errorf("%w: objective %q: want one of %v", ErrChoice, in.Objective, tuning.Objectives())
	case !slices.Contains(Energies(), in.Energy):
		return fmt.Errorf("%w: energy %q: want core_seconds, cpu_seconds or joules", ErrChoice, in.Energy)
	case !(in.Weight >= 0 && in.Weight <= 1):
		return fmt.Errorf("%w: weight %v: want a share from 0 to 1", ErrChoice, in.Weight)
	}
	return nil
}

// allow adds the values of settings to those that knobs have.
func allow(out []tuning.Knob, s tuning.Settings) []tuning.Knob {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		i := slices.IndexFunc(out, func(k tuning.Knob) bool { return k.Name == name })
		if i < 0 {
			out = append(out, tuning.Knob{Name: name})
			i = len(out) - 1
		}
		if !slices.Contains(out[i].Values, s[name]) {
			out[i].Values = append(out[i].Values, s[name])
		}
	}
	return out
}

// most is the setting with the most of everything.
func most(all []tuning.Knob) tuning.Settings {
	out := tuning.Settings{}
	for _, k := range all {
		out[k.Name] = slices.MaxFunc(k.Values, func(a, b tuning.Value) int {
			return cmp.Or(cmp.Compare(a.Float(), b.Float()), cmp.Compare(a.String(), b.String()))
		})
	}
	return out
}

// judgement is what became of one input.
type judgement struct {
	row                  Row
	single               string
	asked, known, moved  int
	ownKind, classes     int
	knownLogs, otherwise logs
	probedLogs, probed   logs
	chosen, hind         logs
	singleHind           logs
}

// leaveOut learns from all others on the machine and asks about each repeat of the input.
func (in Input) leaveOut(s *subject, subjects []*subject, jobs []job) (judgement, error) {
	var others []*subject
	for _, o := range subjects {
		if o != s && o.machine == s.machine {
			others = append(others, o)
		}
	}
	var lessons, asked []job
	for _, j := range jobs {
		switch {
		case j.subject == s:
			asked = append(asked, j)
		case j.subject.machine == s.machine:
			lessons = append(lessons, j)
		}
	}
	mind, err := in.learn(lessons)
	if err != nil {
		return judgement{}, fmt.Errorf("without %s: %w", s.name(), err)
	}
	out := judgement{single: single(others), classes: mind.classes}
	out.row = in.rowOf(s)
	for _, j := range asked {
		v := mind.decide(j)
		out.asked++
		out.count(v)
		key := v.settings.Key()
		probed := key
		if !v.known {
			probed = s.probe(j.repeat, key)
		}
		for _, judge := range s.repeats() {
			if judge == j.repeat {
				continue // it was profiled in it
			}
			r, ok := s.regret(key, judge)
			out.chosen.add(r, ok)
			p, okProbed := s.regret(probed, judge)
			out.probed.add(p, okProbed)
			if v.known {
				out.knownLogs.add(r, ok)
			} else {
				out.otherwise.add(r, ok)
				out.probedLogs.add(p, okProbed)
			}
		}
		out.hind.add(s.hindsight(key))
	}
	out.row.Known = share(out.known, out.asked)
	out.row.Regret, out.row.Hindsight = out.chosen.geometric(), out.hind.geometric()
	out.row.Probed = out.probed.geometric()
	out.row.Single = s.over(out.single)
	out.singleHind.add(s.hindsight(out.single))
	out.row.Default = s.over(in.Default.Key())
	out.row.Oracle = s.gain(in.Default.Key())
	return out, nil
}

// count adds a verdict to the row.
func (j *judgement) count(v verdict) {
	if v.known {
		j.known++
	}
	if v.moved {
		j.moved++
	} else {
		j.row.Reasons = insert(j.row.Reasons, string(v.reason))
	}
	if v.own {
		j.ownKind++
	}
	for _, w := range v.workloads {
		j.row.Classes = insert(j.row.Classes, w)
	}
	j.row.Chosen = insert(j.row.Chosen, v.settings.Key())
}

func insert(all []string, one string) []string {
	if !slices.Contains(all, one) {
		all = append(all, one)
		slices.Sort(all)
	}
	return all
}

func (in Input) rowOf(s *subject) Row {
	repeats, keys := s.whole()
	out := Row{Workload: s.workload, Input: s.input, Machine: s.machine, Repeats: len(repeats)}
	out.Optimum = s.cheapest(repeats, func(k string) bool { return slices.Contains(keys, k) })
	var seconds logs
	for _, m := range s.cells[in.Default.Key()] {
		seconds = append(seconds, math.Log(m.whole.Seconds))
	}
	slices.Sort(seconds) // so that the sum does not depend on the order of a map
	out.Seconds = *seconds.geometric()
	return out
}

// over is the regret of one setting in each repeat.
func (s *subject) over(key string) *float64 {
	var all logs
	for _, r := range s.repeats() {
		all.add(s.regret(key, r))
	}
	return all.geometric()
}

// gain is the cost of the optimum over that of the default, in repeats that chose neither.
func (s *subject) gain(own string) *float64 {
	v := s.over(own)
	if v != nil {
		*v = 1 / *v
	}
	return v
}
