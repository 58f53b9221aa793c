package replay

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// PlanInput is what Plan replays: trials, and curves of the same workloads, which say how
// epochs vary and what they report.
type PlanInput struct {
	evaluate.Set

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

	Default tuning.Settings // the owner's settings, instead of those that come with the data
	Knobs   []string        // that may move; none: those that are known to leave alone what a job learns
	Site    *tuning.Site    // its policy, without mode and untuned share; nil: the default
	Above   bool            // the site lets jobs have more than they asked for
}

// Noise is how much the controller's view varies, as standard deviations of natural logarithms,
// where the recording does not vary: a cell of one run, or whose repeats are all alike, says
// nothing of how another run would differ. The zero Noise adds none.
type Noise struct {
	Attempt float64 // between attempts under the same settings
	Epoch   float64 // between the epochs of an attempt, where no curves say
}

// UsualNoise is that of real runs: repeats of one program under one setting differ by
// 0.039 in the recorded set that has such repeats (armpm, 75 cells of 4), and epochs of
// one attempt by what package forecast takes for usual.
func UsualNoise() Noise { return Noise{Attempt: 0.04, Epoch: 0.05} }

// Recorded is how many epochs a job has by default.
const Recorded = 100

// The bounds of an input: more than any job has or needs, and few enough to replay.
const (
	mostNoise   = 1
	mostReturns = 1000
	maxEpochs   = 100_000
	longestMove = 365 * 24 * time.Hour
)

// Jobs makes a job of each table and length, see Drawn. Skipped are tables in which nothing can move, or whose
// cost is unknown in what the objective minimises.
func (in PlanInput) Jobs() (out []Job, skipped int, err error) {
	if err := in.check(); err != nil {
		return nil, 0, err
	}
	all, err := pieces(in.Trials, in.Default)
	for _, p := range all {
		j := in.jobOf(p)
		if !j.replayable() {
			skipped++
			continue
		}
		for _, j.Epochs = range in.Epochs {
			out = append(out, j)
		}
	}
	return out, skipped, err
}

func (in *PlanInput) check() error {
	if len(in.Epochs) == 0 {
		in.Epochs = []int{0}
	}
	noise := func(v float64) bool { return v >= 0 && v <= mostNoise }
	err := cmp.Or(
		evaluate.Want(slices.Contains(tuning.Objectives(), in.Objective), "objective %q: want one of %v", in.Objective, tuning.Objectives()),
		evaluate.Want(in.Weight >= 0 && in.Weight <= 1, "weight %g: want a share from 0 to 1", in.Weight),
		evaluate.Want(in.MaxSlowdown == 0 || in.MaxSlowdown >= 1 && !math.IsInf(in.MaxSlowdown, 0), "a slowdown of at most %g: want at least 1, or 0 for no limit", in.MaxSlowdown),
		evaluate.Want(in.Seeds >= 1, "%d seeds: want at least 1", in.Seeds),
		evaluate.Want(in.Returns >= 0 && in.Returns <= mostReturns && in.Tries >= 0,
			"%d returns that try %d times: want 0 to %d returns, and none or more tries", in.Returns, in.Tries, mostReturns),
		evaluate.Want(noise(in.Noise.Attempt) && noise(in.Noise.Epoch),
			"noise of %g between attempts and %g between epochs: want 0 to %d of each", in.Noise.Attempt, in.Noise.Epoch, mostNoise),
		evaluate.Want(in.Probes >= 0, "%d probes: want none or more", in.Probes),
		evaluate.Want(in.Restart > 0 && in.Wait >= 0 && in.Restart <= longestMove && in.Wait <= longestMove,
			"a restart of %s and a wait of %s: want a restart above 0, a wait of 0 or more, and at most %s of each", in.Restart, in.Wait, longestMove),
	)
	for _, n := range in.Epochs {
		err = cmp.Or(err, evaluate.Want(n >= 0 && n <= maxEpochs, "%d epochs: want 1 to %d, or 0 for as many as were recorded", n, maxEpochs))
	}
	return err
}

func (j Job) replayable() bool {
	m := j.Policy.Measure()
	for _, c := range j.reachable() {
		if math.IsInf(m.Log(c), 0) {
			return false
		}
	}
	return len(j.cells[j.Own.Key()]) > 0 && len(j.Policy.Knobs) > 0
}

// reachable is the mean cost of each cell that a job may be sent to, by key.
func (j Job) reachable() map[string]tuning.Spent {
	out := map[string]tuning.Spent{}
	var each func(knobs []tuning.Knob, s tuning.Settings)
	each = func(knobs []tuning.Knob, s tuning.Settings) {
		if len(knobs) > 0 {
			for _, v := range knobs[0].Values {
				each(knobs[1:], s.With(knobs[0].Name, v))
			}
		} else if c, ok := j.Expected(s); ok {
			out[s.Key()] = c
		}
	}
	each(j.Site.Narrow(j.Policy, j.Own).Knobs, j.Own)
	return out
}

// Progress is how the replayed jobs report that an epoch ended.
const Progress = `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

// rule puts a job under a stanza that lets it be moved by some knobs, with the defaults of
// every other key. The site is that given, but that jobs are moved and none is kept untuned.
func (in PlanInput) rule(j *Job, knobs []tuning.Knob) {
	s, p := &j.Site, &j.Policy
	*s, *p = tuning.DefaultSite(), tuning.DefaultPolicy()
	if in.Site != nil {
		*s = *in.Site
	}
	s.MaxMode, s.Control, s.DryRun, s.AboveRequest = tuning.Apply, 0, false, s.AboveRequest || in.Above
	p.Mode, p.Objective, p.Weight, p.MaxSlowdown = tuning.Apply, in.Objective, in.Weight, in.MaxSlowdown
	p.Knobs, p.Budget.Probes, p.Budget.Returns = knobs, in.Probes, in.Tries
	p.Progress = tuning.Progress{Pattern: Progress}
	// The longest grace that a stanza may give: recorded jobs save when they were asked to.
	p.Checkpoint = &tuning.Checkpoint{Signal: tuning.DefaultSignal, Grace: time.Hour, Exit: 85}
	measured := slices.Concat(slices.Collect(maps.Values(j.cells))...)
	if p.Tariff = s.Tariff; slices.ContainsFunc(measured, func(c tuning.Spent) bool { return !(c.Joules > 0) }) {
		p.Tariff = p.Tariff.WithoutEnergy()
	}
}

// Drawn is a job with its own luck. One without a length is as long as a recorded run.
func (j Job) Drawn(seed int) Job {
	j.Seed = seed
	if n := len(j.lengths); j.Epochs == 0 && n > 0 {
		j.Epochs = j.lengths[seed%n]
	}
	j.Epochs = cmp.Or(j.Epochs, Recorded)
	return j
}

// Plan replays the jobs of every table.
func Plan(ctx context.Context, in PlanInput, progress evaluate.Progress) (evaluate.Report, error) {
	all, skipped, err := in.Jobs()
	if err != nil {
		return evaluate.Report{}, err
	}
	rep := evaluate.Report{Command: "evaluate plan", Data: in.Files()}
	stories := make([][]story, len(all))
	err = rep.Fill(ctx, len(all), progress, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		var err error
		if stories[i], err = in.play(ctx, all[i]); err != nil {
			return "", nil, err
		}
		return all[i].title(), []evaluate.Line{in.row(stories[i])}, nil
	})
	if err != nil {
		return rep, err
	}
	rep.Summary = in.summary(rep.Rows, stories).With(evaluate.Line{"skipped": skipped})
	return rep, nil
}

// story is how one job went, and how the same job goes otherwise.
type story struct {
	job      Job
	course   Course
	ratio    float64 // cost of the whole job over that of never moving it
	never    float64 // of the same controller when it may only look
	always   float64 // of a tuner that goes to the best it saw
	slower   bool    // it ends slower than allowed, in expectation
	returned []story // the runs that came after it
}

func (in PlanInput) play(ctx context.Context, job Job) ([]story, error) {
	out := make([]story, in.Seeds)
	stages, moving := reconcile.DefaultStages(), reconcile.DefaultStages()
	moving.Choose, moving.Explain = goToBest, func(_ tuning.State, d tuning.Decision) tuning.Decision { return d }
	for seed := range out {
		j := job.Drawn(seed)
		own, _ := j.Expected(j.Own)
		var knows site
		var err error // of the first that failed: what follows is not played
		play := func(j Job, s reconcile.Stages, at *site) story {
			var c Course
			if err == nil {
				c, err = replay(ctx, j, s, at)
			}
			if err != nil {
				return story{}
			}
			return story{job: j, course: c, ratio: j.ratio(c)}
		}
		s := play(j, stages, &knows)
		for n := 1; n <= in.Returns; n++ { // each of another length and luck
			again := job.Drawn(seed + n*in.Seeds)
			again.begins = time.Duration(n) * between
			s.returned = append(s.returned, play(again, stages, &knows))
		}
		s.always = play(j, moving, &site{}).ratio
		j.Policy.Mode = tuning.Observe
		s.never = play(j, stages, &site{}).ratio
		if err != nil {
			return nil, err
		}
		end, _ := j.Expected(s.course.Under[len(s.course.Under)-1])
		s.slower = in.MaxSlowdown > 0 && end.Seconds > in.MaxSlowdown*own.Seconds*(1+tolerance)
		out[seed] = s
	}
	return out, nil
}

// between is after what time a job comes again.
const between = 7 * 24 * time.Hour

// goToBest decides for a tuner that tries what the search proposes, goes to the best that it
// saw, and never asks whether that pays.
func goToBest(s tuning.State) tuning.Decision {
	d := tuning.Decision{Action: tuning.Hold, At: s.Now}
	switch {
	case s.Pending:
		d.Reason = tuning.ReasonFirstSeen
	case s.Measured != tuning.ReasonNone:
		d.Reason = s.Measured
	case s.NextReason == tuning.ReasonNone && s.Probes < s.Policy.Budget.Probes && !s.Next.Equal(s.Current):
		d.Action, d.Reason, d.Settings = tuning.Probe, tuning.ReasonUnknownProbe, s.Next
	default:
		d.Reason = tuning.ReasonAlreadyBest
		if best := bestSeen(s); !best.Equal(s.Current) {
			d.Action, d.Reason, d.Settings = tuning.Move, tuning.ReasonProbeWon, best
		}
	}
	return d
}

// bestSeen are the settings that measured best, the owner's among them.
func bestSeen(s tuning.State) tuning.Settings {
	own, _ := tuning.Reference(s.Trials)
	if s.Best != nil {
		if gain, ok := s.Best.LogRatio(own, s.Policy.Measure()); ok && gain < 0 {
			return s.Best.Settings
		}
	}
	return s.Own
}
