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
	rep := Report{Command: "evaluate tuner", Data: in.Files, Rows: []Row{}}
	left := []evaluate.LeftOut{}
	for _, file := range in.Files {
		t, err := records.Read(file, records.Trials)
		if err != nil {
			return Report{}, err
		}
		made, lost, err := tablesOf(t, in)
		if err != nil {
			return Report{}, err
		}
		all, left = append(all, made...), append(left, lost...)
	}
	if len(all) == 0 {
		return Report{}, nothing(left)
	}
	for i, t := range all {
		progress(i, len(all), "tables; next "+t.name())
		if err := ctx.Err(); err != nil {
			return Report{}, fmt.Errorf("evaluate tuner: %w", err)
		}
		r, why, err := in.rowOf(t)
		if err != nil {
			return Report{}, fmt.Errorf("evaluate tuner: %s: %w", t.name(), err)
		}
		if why != "" {
			rep.Summary.Skipped++
			continue
		}
		rep.Rows = append(rep.Rows, r)
	}
	progress(len(all), len(all), "tables")
	skipped := rep.Summary.Skipped
	for _, l := range left {
		if l.Rows == 0 { // a whole table
			skipped++
		}
	}
	rep.Summary = in.summary(rep.Rows)
	rep.Summary.Skipped, rep.Summary.LeftOut = skipped, left
	return rep, nil
}

// nothing is the error of files in which nothing can be used: what is wrong with the
// first of it.
func nothing(left []evaluate.LeftOut) error {
	if len(left) == 0 {
		return fmt.Errorf("%w: no row", records.ErrInvalid)
	}
	l := left[0]
	for _, whole := range left {
		if whole.Rows == 0 { // what is wrong with all of a table says more
			l = whole
			break
		}
	}
	return fmt.Errorf("%w: %s:%d:1: of %s nothing can be used: %s", records.ErrInvalid, l.Data, max(l.Line, 1), l.Workload, l.Why)
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
	name := records.Group{Workload: t.workload, Input: t.input}.Name()
	if t.machine != "" {
		name += " on " + t.machine
	}
	if t.part != "" {
		name += " with " + t.part
	}
	return name
}

// rowOf replays one table, or says why there is nothing to replay: all settings cost the
// same, or there is but one.
func (in Input) rowOf(t table) (Row, string, error) {
	n := in.Recurrences
	if n == 0 && t.reference != nil {
		n = t.reference.recurrences
	}
	if n <= 0 {
		n = Recurrences
	}
	w := &world{table: t, goal: in.Goal}
	if len(t.cells) < 2 || w.constant() {
		return Row{}, "there is nothing to choose", nil
	}
	r := Row{
		Workload: t.workload, Machine: t.machine, Input: t.input, Part: t.part, Settings: len(t.cells), Absent: t.absent,
		Recurrences: n, Seeds: in.Seeds, DefaultReplaced: t.replaced,
	}
	oracle := w.oracle(w.all())
	r.OracleRatio, r.Oracle = w.share(oracle), w.chosen(oracle)
	r.Default = w.chosen(t.space.Own)
	r.SystemKnobOracle = w.share(w.oracle(w.systemOnly()))
	if t.reference != nil {
		r.ReferenceCumulativeEnergy = t.reference.cumulativeEnergy
		r.ReferenceFinalEnergy, r.ReferenceFinalTime = t.reference.finalEnergy, t.reference.finalTime
	}
	energy, joules := 0.0, true
	steps, within := 0.0, 0
	for seed := range in.Seeds {
		w.rng = rngOf(t, seed)
		tuner, err := recur.New(t.space, in.Goal, in.Probes)
		if err != nil {
			return Row{}, "", err
		}
		sum, final := w.replay(tuner, n)
		own := w.expected(t.space.Own).Times(float64(n))
		share := 1 / float64(in.Seeds)
		r.CumulativeRatio += share * w.ratio(sum, float64(n))
		r.CumulativeTimeRatio += share * sum.Seconds / own.Seconds
		energy += share * sum.Joules / own.Joules
		joules = joules && sum.Joules > 0 && own.Joules > 0
		cost, kept := w.share(final), w.keeps(final)
		r.FinalRatio += share * cost
		r.FinalTimeRatio += share * w.expected(final).Seconds / w.expected(t.space.Own).Seconds
		switch {
		case !kept: // what was saved by breaking a limit is not saved
			r.LimitsBroken += share
			cost = max(cost, 1)
		case cost <= near*r.OracleRatio:
			within++
		}
		r.FinalKept += share * cost
		steps += share * w.stepsAbove(final, oracle)
		if seed == 0 {
			r.Final = w.chosen(final)
		}
	}
	r.WithinOracle = float64(within) / float64(in.Seeds)
	if joules {
		r.CumulativeEnergyRatio = &energy
	}
	if in.Goal.Attain > 0 {
		r.StepsAbove = &steps
	}
	if err := in.fillWhole(&r, w, n); err != nil {
		return Row{}, "", err
	}
	return r, "", in.compare(&r, w, n)
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

// constant tells whether all settings of a table cost the same.
func (w *world) constant() bool {
	for p := range w.cells {
		if !w.reliable(p) || w.expected(p) != w.expected(0) && !same(w.expected(p), w.expected(0)) {
			return false
		}
	}
	return true
}

func same(a, b tuning.Spent) bool {
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
