package replay

import (
	"context"
	"fmt"
	"math"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// TunerInput is what Tuner replays.
type TunerInput struct {
	records.Set
	Goal        recurring.Goal
	Recurrences int             // 0: as many as the reference had, else Recurrences
	Probes      int             // settings besides the owner's that may be tried; 0: no limit
	Seeds       int             // replays, each with other luck
	Default     tuning.Settings // the owner's settings, in place of those that stand with the data
}

// Recurrences is how often a job returns by default.
const Recurrences = 20

const (
	tolerance = 1e-9 // of ratios that are to be equal
	near      = 1.03 // of the oracle's cost: a setting that is as good as it
)

// TunerRow is what one table showed. All ratios are costs in what the objective minimises,
// relative to the owner's settings, and means over the seeds; null: not known.
type TunerRow struct {
	Workload                  string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine                   string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Input                     string        `json:"input,omitempty" about:"which input of the workload, where the data tell inputs apart" col:"INPUT"`
	Part                      string        `json:"part,omitempty" about:"which part of the table, such as \"gpus=2\"" col:"PART"`
	Settings                  int           `json:"settings" about:"how many settings the table has"`
	Absent                    int           `json:"absent" about:"settings left out of it, since they lack a number that the objective needs"`
	Recurrences               int           `json:"recurrences" about:"returns of the job in one replay" col:"RUNS"`
	Seeds                     int           `json:"seeds" about:"replays, each with other luck"`
	OracleRatio               result.Figure `json:"oracle_ratio" about:"expected cost of the best setting that keeps the limits, over that of the default" col:"ORACLE"`
	FinalRatio                result.Figure `json:"final_ratio" about:"expected cost of the setting that the tuner ends with, over that of the default; mean over the seeds" col:"FINAL"`
	FinalKept                 result.Figure `json:"final_kept_ratio" about:"final_ratio, but that a seed that breaks a limit saves nothing"`
	FinalTimeRatio            result.Figure `json:"final_time_ratio" about:"seconds of the final setting, over those of the default"`
	WithinOracle              result.Figure `json:"within_oracle" about:"share of the seeds that keep the limits and cost at most 1.03 of the oracle's"`
	CumulativeRatio           result.Figure `json:"cumulative_ratio" about:"cost of all returns, exploration included, over that of as many under the default" col:"ALL RUNS"`
	CumulativeEnergyRatio     result.Figure `json:"cumulative_energy_ratio" about:"joules of all returns, likewise" col:"JOULES"`
	CumulativeTimeRatio       result.Figure `json:"cumulative_time_ratio" about:"seconds of all returns, likewise"`
	ReferenceCumulativeEnergy result.Figure `json:"reference_cumulative_energy_ratio" about:"joules of all returns as published, with its own blend of energy and time; null: unknown" col:"REFERENCE"`
	ReferenceFinalEnergy      result.Figure `json:"reference_final_energy_ratio" about:"joules of the last runs as published"`
	ReferenceFinalTime        result.Figure `json:"reference_final_time_ratio" about:"seconds of the last runs as published"`
	RandomCumulative          result.Figure `json:"random_cumulative_ratio" about:"cost of all returns, when settings are drawn at random" col:"RANDOM"`
	GridCumulative            result.Figure `json:"grid_cumulative_ratio" about:"cost of all returns, when settings are tried in turn" col:"GRID"`
	HalvingCumulative         result.Figure `json:"halving_cumulative_ratio" about:"cost of all returns, by successive halving" col:"HALVING"`
	SingleKnobCumulative      result.Figure `json:"single_knob_cumulative_ratio" about:"cost of all returns, by the better of the tuners of one knob alone" col:"ONE KNOB"`
	RandomFinal               result.Figure `json:"random_final_ratio" about:"the best setting that random found"`
	GridFinal                 result.Figure `json:"grid_final_ratio" about:"the best that the grid found"`
	HalvingFinal              result.Figure `json:"halving_final_ratio" about:"the best that halving found"`
	SingleKnobFinal           result.Figure `json:"single_knob_final_ratio" about:"the best that the tuner of one knob found"`
	SystemKnobOracle          result.Figure `json:"system_knob_oracle_ratio" about:"expected cost of the best system settings, everything else as the owner's"`
	WholeCumulative           result.Figure `json:"whole_cumulative_ratio" about:"of a job that cannot be moved while it runs, each return a whole run under one setting: cost of all returns; null where the goal is least cores" col:"WHOLE ALL"`
	WholeEnergy               result.Figure `json:"whole_cumulative_energy_ratio" about:"of whole runs: joules of all returns; null where they were not measured"`
	WholeFinal                result.Figure `json:"whole_final_ratio" about:"of whole runs: expected cost of the setting that they end with" col:"WHOLE FINAL"`
	WholeTried                result.Figure `json:"whole_tried" about:"of whole runs: returns that tried a setting"`
	WholeLimitsBroken         result.Figure `json:"whole_limits_broken" about:"of whole runs: share of the seeds that end with a broken limit"`
	LimitsBroken              result.Figure `json:"limits_broken" about:"share of the seeds that end with a setting that breaks a limit in expectation" col:"BROKEN|%"`
	StepsAbove                result.Figure `json:"steps_above" about:"where a share of speed is to be attained: core steps above the fewest that attain it"`
	Default                   string        `json:"default" about:"the owner's settings"`
	DefaultReplaced           bool          `json:"default_replaced,omitempty" about:"the default asked for never reaches its end: the nearest that does stands for it"`
	Oracle                    string        `json:"oracle" about:"the settings of the oracle"`
	Final                     string        `json:"final" about:"the settings that the first seed ends with" col:"SETTINGS"`
}

// TunerSummary is what the rows sum up to.
type TunerSummary struct {
	Objective         string           `json:"objective" about:"what was minimised, and under which limits"`
	Tables            int              `json:"tables" about:"how many were replayed"`
	Skipped           int              `json:"skipped" about:"tables with nothing to choose, or without the numbers that the objective needs"`
	WithinOracle      int              `json:"within_1_03_of_oracle" about:"tables whose final setting costs at most 1.03 of the oracle's, no seed breaking a limit"`
	WithinShare       result.Figure    `json:"within_1_03_of_oracle_share" about:"mean of within_oracle: share of all seeds of all tables"`
	OracleSaving      result.Figure    `json:"oracle_saving" about:"sum over tables of 1 - oracle_ratio"`
	SavingShare       result.Figure    `json:"saving_share" about:"sum of 1 - final_kept_ratio, over oracle_saving; null: there is nothing to save"`
	Broken            int              `json:"tables_with_broken_limits" about:"tables on which any seed breaks a limit"`
	Referenced        int              `json:"tables_with_reference" about:"tables with published numbers"`
	AtMostReference   int              `json:"at_most_reference" about:"tables whose joules are at or below the reference's"`
	NoWorseThanSystem int              `json:"final_at_most_system_oracle" about:"tables whose final setting costs at most what the best system settings do"`
	NoWorseThanSingle int              `json:"cumulative_at_most_single_knob" about:"tables whose returns all cost at most those of the tuner of one knob"`
	WorstCumulative   result.Figure    `json:"worst_cumulative_ratio" about:"greatest cumulative_ratio of a table"`
	WorstFinal        result.Figure    `json:"worst_final_ratio" about:"greatest final_ratio of a table"`
	WithinOneStep     *int             `json:"within_one_core_step" about:"tables within one step of the fewest cores, where a share of speed is to be attained; else null"`
	LeftOut           []result.LeftOut `json:"left_out" about:"rows and tables that could not be used"`
}

// TunerReport is the result of Tuner.
type TunerReport = result.Report[TunerRow, TunerSummary]

// Tuner replays every table as a job that returns.
func Tuner(ctx context.Context, in TunerInput, progress result.Progress) (TunerReport, error) {
	if err := in.check(); err != nil {
		return TunerReport{}, err
	}
	rep := TunerReport{Command: "evaluate tuner", Data: in.Files()}
	var tables []*returns
	skipped, left := 0, []result.LeftOut{}
	for _, t := range in.Trials {
		all, err := pieces(t, in.Default)
		if err != nil {
			return TunerReport{}, err
		}
		for _, p := range all {
			w, lost := returnsOf(t, p, in.Goal)
			left = append(left, lost...)
			if len(w.cells) < 2 || w.constant() {
				skipped++ // there is nothing to choose
				continue
			}
			tables = append(tables, w)
		}
	}
	if len(tables) == 0 && len(left) > 0 {
		return TunerReport{}, unusable(left)
	}
	rep.Rows = make([]TunerRow, len(tables))
	err := result.Each(ctx, len(tables), progress, func(_ context.Context, i int) (string, error) {
		var err error
		rep.Rows[i], err = in.row(tables[i])
		return tables[i].title(), err
	})
	if err != nil {
		return TunerReport{}, fmt.Errorf("evaluate tuner: %w", err)
	}
	rep.Summary = in.summary(rep.Rows)
	rep.Summary.Skipped, rep.Summary.LeftOut = skipped, left
	return rep, nil
}

// unusable is the error of tables in which nothing can be used: what is wrong with the
// first that cannot be used as a whole, else with the first of the rows.
func unusable(left []result.LeftOut) error {
	l := left[0]
	for _, whole := range left {
		if whole.Rows == 0 {
			l = whole
			break
		}
	}
	return fmt.Errorf("%w: %s:%d:1: of %s nothing can be used: %s", records.ErrInvalid, l.Data, max(l.Line, 1), l.Workload, l.Why)
}

func (in TunerInput) check() error {
	g := in.Goal
	limit := func(v float64) bool { return v != 0 && !(v >= 1) || math.IsInf(v, 1) }
	switch {
	case in.Seeds < 1:
		return result.Invalid("%d seeds: want at least 1", in.Seeds)
	case in.Recurrences < 0 || in.Probes < 0:
		return result.Invalid("recurrences and probes cannot be negative")
	case !(g.Weight >= 0 && g.Weight <= 1):
		return result.Invalid("weight %g: want a share from 0 to 1", g.Weight)
	case !(g.Attain >= 0 && g.Attain <= 1):
		return result.Invalid("attain %g: want a share of full speed, above 0 and at most 1", g.Attain)
	case limit(g.MaxSlowdown) || limit(g.MaxJoules):
		return result.Invalid("limits of %g in time and %g in joules: want at least 1, or 0 for none", g.MaxSlowdown, g.MaxJoules)
	}
	return nil
}

// row replays one table with each seed. Its figures are the means over the seeds.
func (in TunerInput) row(w *returns) (TunerRow, error) {
	n := in.Recurrences
	if published := w.reference.number("recurrences"); n == 0 && published > 0 {
		n = int(published)
	}
	if n == 0 {
		n = Recurrences
	}
	oracle := w.oracle(w.all())
	fixed := TunerRow{
		Workload: w.Workload, Machine: w.Machine, Input: w.Input, Part: w.part, Settings: len(w.cells), Absent: w.absent, Recurrences: n, Seeds: in.Seeds,
		OracleRatio: result.Figure(w.share(oracle)), Oracle: w.chosen(oracle), Default: w.chosen(w.space.Own), DefaultReplaced: w.replaced,
		SystemKnobOracle:          result.Figure(w.share(w.oracle(w.systemOnly()))),
		ReferenceCumulativeEnergy: result.Figure(w.reference.number("_cumulative_energy_ratio")),
		ReferenceFinalEnergy:      result.Figure(w.reference.number("_last5_eta_ratio")),
		ReferenceFinalTime:        result.Figure(w.reference.number("_last5_tta_ratio")),
		StepsAbove:                result.Unknown(),
		WholeCumulative:           result.Unknown(), WholeEnergy: result.Unknown(), WholeFinal: result.Unknown(), WholeTried: result.Unknown(), WholeLimitsBroken: result.Unknown(),
	}
	rows := make([]TunerRow, in.Seeds)
	for seed := range rows {
		rows[seed] = fixed
		if err := in.once(&rows[seed], w, seed, n, oracle); err != nil {
			return TunerRow{}, err
		}
	}
	r := result.Average(rows)
	return r, in.singleKnob(&r, w, n)
}

// once replays the tuner and what it is compared with.
func (in TunerInput) once(r *TunerRow, w *returns, seed, n, oracle int) error {
	w.seed(seed)
	tuner, err := recurring.New(w.space, in.Goal, in.Probes)
	if err != nil {
		return err
	}
	sum, final := w.replay(tuner, n)
	own := w.expected(w.space.Own).Times(float64(n))
	r.CumulativeRatio, r.FinalRatio = w.total(sum, n), result.Figure(w.share(final))
	r.CumulativeTimeRatio = result.Figure(sum.Seconds / own.Seconds)
	r.CumulativeEnergyRatio = result.Figure(sum.Joules / own.Joules) // of no joules: unknown
	r.FinalTimeRatio = result.Figure(w.expected(final).Seconds / w.expected(w.space.Own).Seconds)
	r.FinalKept, r.Final = r.FinalRatio, w.chosen(final)
	switch {
	case !w.keeps(final): // what was saved by breaking a limit is not saved
		r.LimitsBroken, r.FinalKept = 1, max(r.FinalRatio, 1)
	case r.FinalRatio <= near*r.OracleRatio:
		r.WithinOracle = 1
	}
	if in.Goal.Attain > 0 {
		r.StepsAbove = result.Figure(w.step(final) - w.step(oracle))
	}
	for _, b := range []struct {
		next              policy
		cumulative, final *result.Figure
	}{
		{random, &r.RandomCumulative, &r.RandomFinal},
		{grid, &r.GridCumulative, &r.GridFinal},
		{halving(), &r.HalvingCumulative, &r.HalvingFinal},
	} {
		w.seed(seed)
		sum, final := w.follow(b.next, n)
		*b.cumulative, *b.final = w.total(sum, n), result.Figure(w.share(final))
	}
	if in.Goal.Least() {
		return nil // has no whole runs to try, see recurring.Whole
	}
	w.seed(seed)
	sum, final, tried, err := w.wholeReplay(n, in.Probes)
	r.WholeCumulative, r.WholeEnergy = w.total(sum, n), result.Figure(sum.Joules/own.Joules)
	r.WholeFinal, r.WholeTried, r.WholeLimitsBroken = result.Figure(w.share(final)), result.Figure(tried), 0
	if !w.keeps(final) {
		r.WholeLimitsBroken = 1
	}
	return err
}

func (w *returns) total(sum paid, n int) result.Figure {
	return result.Figure(w.ratio(sum, float64(n)))
}

// singleKnob fills in what the best of the tuners of one knob alone reaches.
func (in TunerInput) singleKnob(r *TunerRow, w *returns, n int) error {
	r.SingleKnobCumulative = result.Figure(math.Inf(1))
	for _, k := range w.space.Knobs {
		v := w.only(k.Name)
		rows := make([]TunerRow, in.Seeds)
		for seed := range rows {
			v.seed(seed)
			tuner, err := recurring.New(v.space, in.Goal, in.Probes)
			if err != nil {
				return err
			}
			sum, best := v.replay(tuner, n)
			rows[seed].SingleKnobCumulative, rows[seed].SingleKnobFinal = v.total(sum, n), result.Figure(v.share(best))
		}
		if one := result.Average(rows); one.SingleKnobCumulative < r.SingleKnobCumulative {
			r.SingleKnobCumulative, r.SingleKnobFinal = one.SingleKnobCumulative, one.SingleKnobFinal
		}
	}
	return nil
}

func (in TunerInput) summary(rows []TunerRow) TunerSummary {
	s := TunerSummary{Objective: in.objective(), Tables: len(rows)}
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	saved, within, steps := result.Figure(0), []result.Figure{}, 0
	for _, r := range rows {
		s.OracleSaving += 1 - r.OracleRatio
		saved += 1 - r.FinalKept
		within = append(within, r.WithinOracle)
		s.WorstCumulative, s.WorstFinal = max(s.WorstCumulative, r.CumulativeRatio), max(s.WorstFinal, r.FinalRatio)
		count(&s.WithinOracle, r.LimitsBroken == 0 && r.FinalRatio <= near*r.OracleRatio)
		count(&s.Broken, r.LimitsBroken > 0)
		count(&s.NoWorseThanSystem, r.FinalRatio <= r.SystemKnobOracle+tolerance)
		count(&s.NoWorseThanSingle, r.CumulativeRatio <= r.SingleKnobCumulative+tolerance)
		count(&s.Referenced, r.ReferenceCumulativeEnergy.Known() && r.CumulativeEnergyRatio.Known())
		count(&s.AtMostReference, r.CumulativeEnergyRatio <= r.ReferenceCumulativeEnergy)
		if r.StepsAbove.Known() {
			count(&steps, r.StepsAbove <= 1 && r.LimitsBroken == 0)
			s.WithinOneStep = &steps
		}
	}
	s.WithinShare, s.SavingShare = result.Mean(within), result.Unknown()
	if s.OracleSaving > tolerance {
		s.SavingShare = saved / s.OracleSaving
	}
	return s
}

// objective names the goal in the words of the flags.
func (in TunerInput) objective() string {
	g := in.Goal
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
