package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// TunerInput is what Tuner replays.
type TunerInput struct {
	evaluate.Set
	Goal        recurring.Goal
	Recurrences int             // 0: as many as the reference had, else Recurrences
	Probes      int             // settings besides the owner's that may be tried; 0: no limit
	Seeds       int             // replays, each with other luck
	Default     tuning.Settings // the owner's settings, instead of those that come with the data
}

// Recurrences is how often a job returns by default.
const Recurrences = 20

const (
	tolerance = 1e-9 // of ratios that are to be equal
	near      = 1.03 // of the oracle's cost: a setting that is as good as it
)

// Tuner replays every table as a job that returns.
func Tuner(ctx context.Context, in TunerInput, progress evaluate.Progress) (evaluate.Report, error) {
	rep := evaluate.Report{Command: "evaluate tuner", Data: in.Files()}
	if err := in.check(); err != nil {
		return rep, err
	}
	var tables []*returns
	var left evaluate.LeftOut
	skipped := 0
	all, err := pieces(in.Trials, in.Default)
	if err != nil {
		return rep, err
	}
	for _, p := range all {
		w := returnsOf(p, in.Goal, &left)
		if len(w.cells) < 2 || w.constant() {
			skipped++ // there is nothing to choose
			continue
		}
		tables = append(tables, w)
	}
	if len(tables) == 0 && len(left) > 0 {
		return rep, unusable(left)
	}
	err = rep.Fill(ctx, len(tables), progress, func(_ context.Context, i int) (string, []evaluate.Line, error) {
		row, err := in.row(tables[i])
		return tables[i].title(), []evaluate.Line{row}, err
	})
	if err != nil {
		return rep, err
	}
	rep.Summary = in.summary(rep.Rows).With(evaluate.Line{"tables": len(tables), "skipped": skipped, "left_out": []evaluate.Line(left)})
	return rep, nil
}

// unusable is the error of tables in which nothing can be used: what is wrong with the
// first that cannot be used as a whole, else with the first of the rows.
func unusable(left []evaluate.Line) error {
	l := left[max(0, slices.IndexFunc(left, func(l evaluate.Line) bool { return l["rows"] == nil }))]
	line, _ := l["line"].(int)
	return fmt.Errorf("%w: %s:%d:1: of %s nothing can be used: %s", evaluate.ErrInvalid, l["data"], max(line, 1), l["workload"], l["why"])
}

func (in TunerInput) check() error {
	g := in.Goal
	limit := func(v float64) bool { return v == 0 || v >= 1 && !math.IsInf(v, 1) }
	return cmp.Or(
		evaluate.Want(in.Seeds >= 1, "%d seeds: want at least 1", in.Seeds),
		evaluate.Want(in.Recurrences >= 0 && in.Probes >= 0, "recurrences and probes cannot be negative"),
		evaluate.Want(g.Weight >= 0 && g.Weight <= 1, "weight %g: want a share from 0 to 1", g.Weight),
		evaluate.Want(g.Attain >= 0 && g.Attain <= 1, "attain %g: want a share of full speed, above 0 and at most 1", g.Attain),
		evaluate.Want(limit(g.MaxSlowdown) && limit(g.MaxJoules), "limits of %g in time and %g in joules: want at least 1, or 0 for none", g.MaxSlowdown, g.MaxJoules),
	)
}

// row replays one table with each seed. Its figures are the means over the seeds.
func (in TunerInput) row(w *returns) (evaluate.Line, error) {
	n := in.Recurrences
	if published := numberOf(w.reference, "recurrences"); n == 0 && published > 0 {
		n = int(published)
	}
	n = cmp.Or(n, Recurrences)
	oracle := w.oracle(evaluate.Indices(w.cells))
	fixed := w.Line().With(evaluate.Line{
		"part": w.part, "settings": len(w.cells), "absent": w.absent, "recurrences": n, "seeds": in.Seeds,
		"oracle_ratio": evaluate.Figure(w.share(oracle)), "oracle": w.chosen(oracle), "default": w.chosen(w.space.Own), "default_replaced": w.replaced,
		"system_knob_oracle_ratio":          evaluate.Figure(w.share(w.oracle(w.within(func(k recurring.Knob) bool { return k.System })))),
		"reference_cumulative_energy_ratio": evaluate.Figure(numberOf(w.reference, "_cumulative_energy_ratio")),
		"reference_final_energy_ratio":      evaluate.Figure(numberOf(w.reference, "_last5_eta_ratio")),
		"reference_final_time_ratio":        evaluate.Figure(numberOf(w.reference, "_last5_tta_ratio")),
	})
	var rows []evaluate.Line
	for seed := range in.Seeds {
		one, err := in.once(w, seed, n, oracle)
		if err != nil {
			return nil, err
		}
		rows = append(rows, fixed.With(one))
	}
	best, err := in.singleKnob(w, n)
	return evaluate.Average(rows).With(best), err
}

// tune replays the tuner: what it paid, and what it ends with.
func (in TunerInput) tune(w *returns, seed, n int) (bill, int, error) {
	w.seed(seed)
	tuner, err := recurring.New(w.space, in.Goal, in.Probes)
	if err != nil {
		return bill{}, 0, err
	}
	t := &tuned{bill{returns: w}, tuner}
	final := follow(t, n)
	return t.bill, final, nil
}

// once replays the tuner and what it is compared with.
func (in TunerInput) once(w *returns, seed, n, oracle int) (evaluate.Line, error) {
	sum, final, err := in.tune(w, seed, n)
	if err != nil {
		return nil, err
	}
	own := w.expected(w.space.Own).Times(float64(n))
	ratio, kept := w.share(final), w.keeps(final)
	r := evaluate.Line{
		"cumulative_ratio": sum.ratio(n), "final_ratio": evaluate.Figure(ratio), "final_kept_ratio": evaluate.Figure(ratio),
		"cumulative_time_ratio":   evaluate.Figure(sum.Seconds / own.Seconds),
		"cumulative_energy_ratio": evaluate.Figure(sum.Joules / own.Joules), // of no joules: unknown
		"final_time_ratio":        evaluate.Figure(w.expected(final).Seconds / w.expected(w.space.Own).Seconds),
		"final":                   w.chosen(final),
		"limits_broken":           evaluate.Yes(!kept),
		"within_oracle":           evaluate.Yes(kept && ratio <= near*w.share(oracle)),
	}
	if !kept { // what was saved by breaking a limit is not saved
		r["final_kept_ratio"] = evaluate.Figure(max(ratio, 1))
	}
	if in.Goal.Attain > 0 {
		r["steps_above"] = evaluate.Figure(w.step(final) - w.step(oracle))
	}
	for name, next := range map[string]policy{"random": random, "grid": grid, "halving": halving()} {
		w.seed(seed)
		l := &ledger{bill: bill{returns: w}, policy: next, seen: make([]float64, len(w.cells)), costs: make([]tuning.Spent, len(w.cells))}
		final := follow(l, n)
		r[name+"_cumulative_ratio"], r[name+"_final_ratio"] = l.ratio(n), evaluate.Figure(w.share(final))
	}
	if in.Goal.Least() {
		return r, nil // has no whole runs to try, see recurring.Whole
	}
	w.seed(seed)
	past := whole{bill: bill{returns: w}, past: recurring.Whole{Space: w.space, Goal: w.goal}, tries: in.Probes}
	final = follow(&past, n)
	r["whole_cumulative_ratio"], r["whole_cumulative_energy_ratio"] = past.ratio(n), evaluate.Figure(past.Joules/own.Joules)
	r["whole_final_ratio"], r["whole_tried"], r["whole_limits_broken"] = evaluate.Figure(w.share(final)), evaluate.Figure(past.tried), evaluate.Yes(!w.keeps(final))
	return r, past.err
}

// singleKnob is what the best of the tuners of one knob alone reaches.
func (in TunerInput) singleKnob(w *returns, n int) (evaluate.Line, error) {
	const key = "single_knob_cumulative_ratio"
	best := evaluate.Line{key: evaluate.Figure(math.Inf(1))}
	for _, k := range w.space.Knobs {
		v := w.only(k.Name)
		var rows []evaluate.Line
		for seed := range in.Seeds {
			sum, final, err := in.tune(v, seed, n)
			if err != nil {
				return nil, err
			}
			rows = append(rows, evaluate.Line{key: sum.ratio(n), "single_knob_final_ratio": evaluate.Figure(v.share(final))})
		}
		if one := evaluate.Average(rows); one.Figure(key) < best.Figure(key) {
			best = one
		}
	}
	return best, nil
}

func (in TunerInput) summary(rows []evaluate.Line) evaluate.Line {
	s := evaluate.Line{"objective": objectiveOf(in.Goal)}
	type figures = func(key string) evaluate.Figure
	count := func(key string, yes func(figures) bool) {
		s[key] = len(evaluate.Only(rows, func(r evaluate.Line) bool { return yes(r.Figure) }))
	}
	count("within_1_03_of_oracle", func(f figures) bool { return f("limits_broken") == 0 && f("final_ratio") <= near*f("oracle_ratio") })
	count("tables_with_broken_limits", func(f figures) bool { return f("limits_broken") > 0 })
	count("final_at_most_system_oracle", func(f figures) bool { return f("final_ratio") <= f("system_knob_oracle_ratio")+tolerance })
	count("cumulative_at_most_single_knob", func(f figures) bool {
		return f("cumulative_ratio") <= f("single_knob_cumulative_ratio")+tolerance
	})
	count("tables_with_reference", func(f figures) bool {
		return f("reference_cumulative_energy_ratio").Known() && f("cumulative_energy_ratio").Known()
	})
	count("at_most_reference", func(f figures) bool { return f("cumulative_energy_ratio") <= f("reference_cumulative_energy_ratio") })
	if in.Goal.Attain > 0 && len(rows) > 0 {
		count("within_one_core_step", func(f figures) bool { return f("steps_above") <= 1 && f("limits_broken") == 0 })
	}
	saving := func(key string) evaluate.Figure {
		return evaluate.Figure(tuning.Sum(rows, func(r evaluate.Line) float64 { return 1 - float64(r.Figure(key)) }))
	}
	oracle, saved := saving("oracle_ratio"), saving("final_kept_ratio")
	s["within_1_03_of_oracle_share"], s["oracle_saving"] = evaluate.Mean(evaluate.Column(rows, "within_oracle")), oracle
	if oracle > tolerance {
		s["saving_share"] = saved / oracle
	}
	_, s["worst_cumulative_ratio"] = evaluate.Range(evaluate.Column(rows, "cumulative_ratio"))
	_, s["worst_final_ratio"] = evaluate.Range(evaluate.Column(rows, "final_ratio"))
	return s
}

// objectiveOf names what is minimised, and under which limits.
func objectiveOf(g recurring.Goal) string {
	name := string(g.Objective)
	if g.Least() {
		name = "cores"
	}
	if g.Attain > 0 {
		return fmt.Sprintf("%s, at least %g of full speed", name, g.Attain)
	}
	if g.Objective == tuning.Blend && !g.Least() {
		name += fmt.Sprintf(" of weight %g", g.Weight)
	}
	if g.MaxSlowdown > 0 {
		name += fmt.Sprintf(", time at most %g", g.MaxSlowdown)
	}
	if g.MaxJoules > 0 {
		name += fmt.Sprintf(", joules at most %g", g.MaxJoules)
	}
	return name
}
