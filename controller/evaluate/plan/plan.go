package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// ErrInput is wrapped by what is wrong with an Input.
var ErrInput = errors.New("not a replay of whole jobs")

// Input is what is asked for.
type Input struct {
	Files  []string // of trials
	Curves []string // how epochs vary, and what they report; none: they are all alike and say nothing

	tuning.Measure
	MaxSlowdown float64 // 0: no limit
	Probes      int     // settings that a job may try

	Restart time.Duration // what a move takes
	Wait    time.Duration // in the queue at each move

	Noise Noise // where the data have none

	Epochs []int // lengths of the jobs; 0: as many as were recorded, else Recorded; none: 0
	Seeds  int   // jobs of each table and length, each with other luck

	Returns int // times that each of these comes again, to a site that remembers it
	Tries   int // of these that may try a setting from their start, see tuning.Budget

	Default tuning.Settings // the owner's settings, in place of those that stand with the data
	Knobs   []string        // that may move; none: those that are known to leave alone what a job learns
	Site    *tuning.Site    // its policy, of which mode and untuned share do not count; nil: that of a site that wrote none
	Above   bool            // the site lets jobs have more than they asked for
}

// Noise is by how much what the controller sees varies, as standard deviations of natural
// logarithms, where what was recorded does not: a cell of one run, or whose repeats are
// all alike, says nothing of how another run would differ. The zero Noise adds none.
type Noise struct {
	Attempt float64 // between attempts under the same settings
	Epoch   float64 // between the epochs of an attempt, where no curves tell
}

// UsualNoise is that of real runs: repeats of one program under one setting differ by
// 0.039 in the recorded set that has such repeats (armpm, 75 cells of 4), and epochs of
// one attempt by what package forecast takes for usual.
func UsualNoise() Noise { return Noise{Attempt: 0.04, Epoch: 0.05} }

// mostNoise is more than anything differs by of which it is worth knowing the cost.
const mostNoise = 1

// Recorded is how many epochs a job has where neither the table nor anybody says so.
const Recorded = 100

// mostReturns is more than any job comes again here: what was learned is derived anew at
// each look.
const mostReturns = 1000

// maxEpochs is more than any job has, and few enough to replay.
const maxEpochs = 100_000

// Run replays the jobs of every table of the files.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	if len(in.Epochs) == 0 {
		in.Epochs = []int{0}
	}
	if err := in.check(); err != nil {
		return Report{}, err
	}
	all, err := in.read()
	if err != nil {
		return Report{}, err
	}
	type part struct {
		table  table
		epochs int
	}
	var parts []part
	skipped := 0
	for _, t := range all {
		if !in.replayable(t) {
			skipped++
			continue
		}
		for _, n := range in.Epochs {
			parts = append(parts, part{t, n})
		}
	}
	rows := make([]Row, len(parts))
	err = evaluate.Each(ctx, len(parts), progress, func(ctx context.Context, i int) (string, error) {
		var err error
		rows[i], err = in.row(ctx, parts[i].table, parts[i].epochs)
		return "tables", err
	})
	if err != nil {
		return Report{}, fmt.Errorf("evaluate plan: %w", err)
	}
	rep := Report{Command: "evaluate plan", Data: slices.Concat(in.Files, in.Curves), Rows: rows, Summary: in.summary(rows)}
	rep.Summary.Skipped = skipped
	return rep, nil
}

// Jobs are the jobs that Run replays, in its order.
func Jobs(in Input) ([]Job, error) {
	if len(in.Epochs) == 0 {
		in.Epochs = []int{0}
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	all, err := in.read()
	if err != nil {
		return nil, err
	}
	var out []Job
	for _, t := range all {
		for _, n := range in.Epochs {
			for seed := range in.Seeds {
				if in.replayable(t) {
					out = append(out, in.job(t, n, seed))
				}
			}
		}
	}
	return out, nil
}

func (in Input) read() ([]table, error) {
	var curves []records.Table
	for _, file := range in.Curves {
		t, err := records.Read(file, records.Curves)
		if err != nil {
			return nil, err
		}
		curves = append(curves, t)
	}
	var out []table
	for _, file := range in.Files {
		t, err := records.Read(file, records.Trials)
		if err != nil {
			return nil, err
		}
		made, err := in.tables(t, curves)
		if err != nil {
			return nil, err
		}
		out = append(out, made...)
	}
	return out, nil
}

func (in Input) check() error {
	switch {
	case len(in.Files) == 0:
		return fmt.Errorf("%w: no file of trials", ErrInput)
	case !slices.Contains(tuning.Objectives(), in.Objective):
		return fmt.Errorf("%w: objective %q: want one of %v", ErrInput, in.Objective, tuning.Objectives())
	case !(in.Weight >= 0 && in.Weight <= 1):
		return fmt.Errorf("%w: weight %g: want a share from 0 to 1", ErrInput, in.Weight)
	case in.MaxSlowdown != 0 && !(in.MaxSlowdown >= 1) || math.IsInf(in.MaxSlowdown, 0):
		return fmt.Errorf("%w: a slowdown of at most %g: want at least 1, or 0 for no limit", ErrInput, in.MaxSlowdown)
	case in.Seeds < 1:
		return fmt.Errorf("%w: %d seeds: want at least 1", ErrInput, in.Seeds)
	case in.Returns < 0 || in.Returns > mostReturns || in.Tries < 0:
		return fmt.Errorf("%w: %d returns that try %d times: want 0 to %d returns, and none or more tries", ErrInput, in.Returns, in.Tries, mostReturns)
	case !(in.Noise.Attempt >= 0 && in.Noise.Attempt <= mostNoise && in.Noise.Epoch >= 0 && in.Noise.Epoch <= mostNoise):
		return fmt.Errorf("%w: noise of %g between attempts and %g between epochs: want 0 to %d of each", ErrInput, in.Noise.Attempt, in.Noise.Epoch, mostNoise)
	case in.Probes < 0:
		return fmt.Errorf("%w: %d probes: want none or more", ErrInput, in.Probes)
	case in.Restart <= 0 || in.Wait < 0 || in.Restart > longest || in.Wait > longest:
		return fmt.Errorf("%w: a restart of %s and a wait of %s: want a restart above 0, a wait of 0 or more, and at most %s of each", ErrInput, in.Restart, in.Wait, longest)
	}
	for _, n := range in.Epochs {
		if n < 0 || n > maxEpochs {
			return fmt.Errorf("%w: %d epochs: want 1 to %d, or 0 for as many as were recorded", ErrInput, n, maxEpochs)
		}
	}
	return nil
}

// replayable tells whether there is something to move, and its cost is known in what the
// objective minimises.
func (in Input) replayable(t table) bool {
	m := in.job(t, 1, 0).Policy.Measure()
	for _, c := range t.reachable(in) {
		if math.IsInf(m.Log(c), 0) {
			return false
		}
	}
	_, own := t.cells[t.own.Key()]
	return own && len(t.knobs) > 0
}

// reachable is the mean cost of each cell that a job may be sent to, by key.
func (t table) reachable(in Input) map[string]tuning.Spent {
	j := in.job(t, 1, 0)
	out := map[string]tuning.Spent{}
	each(j.Site.Narrow(j.Policy, j.Own).Knobs, j.Own, func(s tuning.Settings) {
		if c, ok := j.Expected(s); ok {
			out[s.Key()] = c
		}
	})
	return out
}

// each goes through all combinations of the values of knobs.
func each(knobs []tuning.Knob, s tuning.Settings, do func(tuning.Settings)) {
	if len(knobs) == 0 {
		do(s)
		return
	}
	for _, v := range knobs[0].Values {
		each(knobs[1:], s.With(knobs[0].Name, v), do)
	}
}

// job is one job of a table. Where its length is not given it is that of a recorded run.
func (in Input) job(t table, epochs, seed int) Job {
	if n := len(t.lengths); epochs == 0 && n > 0 {
		epochs = t.lengths[seed%n]
	}
	if epochs == 0 {
		epochs = Recorded
	}
	j := Job{
		Workload: t.workload, Machine: t.machine, Part: t.part, Epochs: epochs, Own: t.own, Busy: t.busy, Policy: in.policy(t.knobs), Site: in.site(),
		Restart: in.Restart, Wait: in.Wait, Seed: seed, Noise: in.Noise, table: t,
	}
	j.Policy.Tariff = j.Site.Tariff
	if !t.hasJoules() {
		j.Policy.Tariff = j.Policy.Tariff.WithoutEnergy()
	}
	return j
}

// hasJoules reports whether every cell tells them.
func (t table) hasJoules() bool {
	for _, repeats := range t.cells {
		if slices.ContainsFunc(repeats, func(c tuning.Spent) bool { return !(c.Joules > 0) }) {
			return false
		}
	}
	return true
}

// Progress is how the replayed jobs tell that an epoch ended.
const Progress = `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

// grace is the longest that a stanza may give. Recorded jobs save when they were asked to,
// however long their epochs are.
const grace = time.Hour

// longest is more than a move takes.
const longest = 365 * 24 * time.Hour

// policy is the stanza of a job that may be moved, with the defaults of every other key.
func (in Input) policy(knobs []tuning.Knob) tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Mode, p.Objective, p.Weight, p.MaxSlowdown = tuning.Apply, in.Objective, in.Weight, in.MaxSlowdown
	p.Knobs, p.Budget.Probes, p.Budget.Returns = knobs, in.Probes, in.Tries
	p.Progress = tuning.Progress{Pattern: Progress}
	p.Checkpoint = &tuning.Checkpoint{Signal: tuning.DefaultSignal, Grace: grace, Exit: 85}
	return p
}

// site is the site's policy, but that jobs are moved and none is kept untuned.
func (in Input) site() tuning.Site {
	s := tuning.DefaultSite()
	if in.Site != nil {
		s = *in.Site
	}
	s.MaxMode, s.Control, s.DryRun, s.AboveRequest = tuning.Apply, 0, false, s.AboveRequest || in.Above
	return s
}
