package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// ErrInput is wrapped by what is wrong with an Input.
var ErrInput = errors.New("not a replay")

// Input is what is asked for.
type Input struct {
	Files       []string
	Goal        recur.Goal
	Recurrences int             // 0: as many as the reference had, else Recurrences
	Probes      int             // settings besides the owner's that the tuner may try; 0: no limit
	Seeds       int             // replays, each with other luck
	Default     tuning.Settings // the owner's settings where no targets.csv stands beside the data; nil: the most of everything
}

// Recurrences is how often a job returns where nothing else is said.
const Recurrences = 20

// Run replays every table of the files.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	if err := in.check(); err != nil {
		return Report{}, err
	}
	var all []table
	for _, file := range in.Files {
		t, err := records.Read(file, records.Trials)
		if err != nil {
			return Report{}, err
		}
		made, err := tables(t, in)
		if err != nil {
			return Report{}, err
		}
		all = append(all, made...)
	}
	rep := Report{Command: "evaluate tuner", Data: in.Files, Rows: []Row{}}
	for i, t := range all {
		progress(i, len(all), "tables; next "+t.name())
		if err := ctx.Err(); err != nil {
			return Report{}, fmt.Errorf("evaluate tuner: %w", err)
		}
		r, ok, err := in.rowOf(t)
		if err != nil {
			return Report{}, fmt.Errorf("evaluate tuner: %s: %w", t.name(), err)
		}
		if ok {
			rep.Rows = append(rep.Rows, r)
		}
	}
	progress(len(all), len(all), "tables")
	rep.Summary = in.summary(rep.Rows)
	rep.Summary.Skipped = len(all) - len(rep.Rows)
	return rep, nil
}

func (in Input) check() error {
	g := in.Goal
	switch {
	case in.Seeds < 1:
		return fmt.Errorf("%w: %d seeds: want at least 1", ErrInput, in.Seeds)
	case in.Recurrences < 0 || in.Probes < 0:
		return fmt.Errorf("%w: recurrences and probes cannot be negative", ErrInput)
	case !(g.Weight >= 0 && g.Weight <= 1):
		return fmt.Errorf("%w: weight %g: want a share from 0 to 1", ErrInput, g.Weight)
	case !(g.Attain >= 0 && g.Attain <= 1):
		return fmt.Errorf("%w: attain %g: want a share of full speed, above 0 and at most 1", ErrInput, g.Attain)
	case limit(g.MaxSlowdown) || limit(g.MaxJoules):
		return fmt.Errorf("%w: limits of %g in time and %g in joules: want at least 1, or 0 for none", ErrInput, g.MaxSlowdown, g.MaxJoules)
	}
	return nil
}

func limit(v float64) bool { return v != 0 && !(v >= 1) || math.IsInf(v, 1) }

func (t table) name() string {
	name := t.workload
	if t.machine != "" {
		name += " on " + t.machine
	}
	if t.part != "" {
		name += " with " + t.part
	}
	return name
}

// rowOf replays one table. False: there is nothing to choose, since all settings cost the
// same or there is but one, or the table lacks the numbers that the objective needs.
func (in Input) rowOf(t table) (Row, bool, error) {
	n := in.Recurrences
	if n == 0 && t.reference != nil {
		n = t.reference.recurrences
	}
	if n == 0 {
		n = Recurrences
	}
	w := &world{table: t, goal: in.Goal}
	if len(t.cells) < 2 || w.constant() || !w.measured() {
		return Row{}, false, nil
	}
	r := Row{Workload: t.workload, Machine: t.machine, Part: t.part, Settings: len(t.cells), Recurrences: n, Seeds: in.Seeds}
	oracle := w.oracle(w.all())
	r.OracleRatio, r.Oracle = w.share(oracle), w.chosen(oracle)
	r.Default = w.chosen(t.space.Own)
	r.SystemKnobOracle = w.share(w.oracle(w.systemOnly()))
	if t.reference != nil {
		r.ReferenceCumulativeEnergy = &t.reference.cumulativeEnergy
		r.ReferenceFinalEnergy, r.ReferenceFinalTime = &t.reference.finalEnergy, &t.reference.finalTime
	}
	energy, joules := 0.0, true
	steps := 0.0
	for seed := range in.Seeds {
		w.rng = rngOf(t, seed)
		tuner, err := recur.New(t.space, in.Goal, in.Probes)
		if err != nil {
			return Row{}, false, err
		}
		sum, final := w.replay(tuner, n)
		own := w.expected(t.space.Own).Times(float64(n))
		share := 1 / float64(in.Seeds)
		r.CumulativeRatio += share * w.ratio(sum, float64(n))
		r.CumulativeTimeRatio += share * sum.Seconds / own.Seconds
		energy += share * sum.Joules / own.Joules
		joules = joules && sum.Joules > 0 && own.Joules > 0
		r.FinalRatio += share * w.share(final)
		r.FinalTimeRatio += share * w.expected(final).Seconds / w.expected(t.space.Own).Seconds
		if !w.keeps(final) {
			r.LimitsBroken += share
		}
		steps += share * w.stepsAbove(final, oracle)
		if seed == 0 {
			r.Final = w.chosen(final)
		}
	}
	if joules {
		r.CumulativeEnergyRatio = &energy
	}
	if in.Goal.Attain > 0 {
		r.StepsAbove = &steps
	}
	if err := in.fillWhole(&r, w, n); err != nil {
		return Row{}, false, err
	}
	return r, true, in.compare(&r, w, n)
}

// compare fills in what simpler policies reach.
func (in Input) compare(r *Row, w *world, n int) error {
	share := 1 / float64(in.Seeds)
	for seed := range in.Seeds {
		for _, b := range []struct {
			next              order
			cumulative, final *float64
		}{
			{random, &r.RandomCumulative, &r.RandomFinal},
			{grid, &r.GridCumulative, &r.GridFinal},
			{halving(), &r.HalvingCumulative, &r.HalvingFinal},
		} {
			w.rng = rngOf(w.table, seed)
			sum, final := w.follow(b.next, n)
			*b.cumulative += share * w.ratio(sum, float64(n))
			*b.final += share * w.share(final)
		}
	}
	r.SingleKnobCumulative = math.Inf(1)
	for _, k := range w.space.Knobs {
		sub, _ := w.only(k.Name)
		cumulative, final := 0.0, 0.0
		v := &world{table: sub, goal: w.goal}
		for seed := range in.Seeds {
			v.rng = rngOf(w.table, seed)
			tuner, err := recur.New(sub.space, in.Goal, in.Probes)
			if err != nil {
				return err
			}
			sum, best := v.replay(tuner, n)
			cumulative += share * v.ratio(sum, float64(n))
			final += share * v.share(best)
		}
		if cumulative < r.SingleKnobCumulative {
			r.SingleKnobCumulative, r.SingleKnobFinal = cumulative, final
		}
	}
	return nil
}

// rngOf is the luck of one replay; policies that are compared have the same.
func rngOf(t table, seed int) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(t.name()) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, uint64(seed)))
}

// measured tells whether the owner's settings have all numbers that the goal needs.
func (w *world) measured() bool {
	own := w.expected(w.space.Own)
	score := w.goal.Score(own, 1)
	return !math.IsInf(score, 0) && own.Seconds > 0 && (w.goal.Attain > 0 || w.goal.MaxJoules == 0 || own.Joules > 0)
}

// constant tells whether all settings of a table cost the same.
func (w *world) constant() bool {
	for p := range w.cells {
		if w.cells[p].failed || w.expected(p) != w.expected(0) && !same(w.expected(p), w.expected(0)) {
			return false
		}
	}
	return true
}

func same(a, b recur.Cost) bool {
	return a.Seconds == b.Seconds && (a.Joules == b.Joules || math.IsNaN(a.Joules) && math.IsNaN(b.Joules))
}

// systemOnly are the points that differ from the owner's in system knobs alone.
func (w *world) systemOnly() []int {
	own := w.space.Points[w.space.Own]
	return slices.DeleteFunc(w.all(), func(p int) bool {
		return slices.ContainsFunc(w.space.Knobs, func(k recur.Knob) bool {
			return !k.System && w.space.Points[p][k.Name] != own[k.Name]
		})
	})
}

// chosen prints the values of the knobs that are searched.
func (w *world) chosen(p int) string {
	return w.space.Points[p].Only(func(name string) bool {
		return slices.ContainsFunc(w.space.Knobs, func(k recur.Knob) bool { return k.Name == name })
	}).Key()
}

// stepsAbove is how many of the table's core counts lie between two points.
func (w *world) stepsAbove(p, q int) float64 {
	var counts []float64
	for i := range w.cells {
		counts = append(counts, w.cores(i))
	}
	slices.Sort(counts)
	counts = slices.Compact(counts)
	return float64(slices.Index(counts, w.cores(p)) - slices.Index(counts, w.cores(q)))
}
