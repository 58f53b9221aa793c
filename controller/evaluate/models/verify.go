package models

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

// VerifyInput is what Verify measures. Without any table the simulated nulls stand alone.
type VerifyInput struct {
	records.Set
	Seeds      int     // replays of each null
	Seed       uint64  // of the first
	Level      float64 // share of false verdicts that is allowed
	Untuned    int     // epochs of a job before its move
	Epochs     int     // epochs after it, each of which is looked at
	Pairs      int     // pairs of jobs, each of which is looked at
	Candidates int     // settings that were tried with the same untuned epochs; 0 and 1: one
}

// DefaultVerify has the defaults.
func DefaultVerify() VerifyInput {
	return VerifyInput{Seeds: 300, Seed: 1, Level: 0.05, Untuned: tuning.DefaultEpochs, Epochs: 40, Pairs: 32, Candidates: 1}
}

// Comparison says what is compared with what.
type Comparison string

// The comparisons that the controller makes.
const (
	Job   Comparison = "job"   // one job: its epochs before and after its move
	Pairs Comparison = "pairs" // jobs of which chance left one untuned, inputs unknown
)

// Recorded and Simulated are where a null comes from.
const (
	Recorded  = "recorded"
	Simulated = "simulated"
)

// VerifyRow is one null with one effect put in. Shares are plain fractions of the replays;
// null: there is nothing to say.
type VerifyRow struct {
	Comparison    Comparison       `json:"comparison" about:"job or pairs" col:"COMPARED"`
	Null          string           `json:"null" about:"what has no effect" col:"WITHOUT EFFECT"`
	Source        string           `json:"source" about:"recorded or simulated"`
	Data          string           `json:"data" about:"the file; empty where simulated" col:"DATA"`
	Objective     tuning.Objective `json:"objective" about:"time or energy" col:"MEASURE"`
	Effect        result.Figure    `json:"effect" about:"by how much the tuned side is less: 0.1 is a tenth"`
	Workloads     int              `json:"workloads" about:"workloads that the replays are dealt to in turn"`
	Replays       int              `json:"replays" about:"of the row"`
	Looks         result.Figure    `json:"looks_mean" about:"epochs or pairs of a replay, each looked at" col:"LOOKS|0"`
	FalseVerdicts result.Figure    `json:"false_verdicts" about:"the share whose verdict was wrong at any look: a claim where there is no effect, a regression where there is an improvement, or neutral where the effect is above the margin" col:"FALSE"`
	Power         result.Figure    `json:"power" about:"share whose first verdict was an improvement; null without an effect"`
	Neutral       result.Figure    `json:"neutral" about:"share whose first verdict was neutral"`
	Inconclusive  result.Figure    `json:"inconclusive" about:"share without a verdict at the end"`
	ToVerdict     result.Figure    `json:"to_verdict_median" about:"epochs or pairs until the first right verdict, of those that had one"`
	ToVerdict90   result.Figure    `json:"to_verdict_p90" about:"the same, at nine tenths of them"`
	Coverage      result.Figure    `json:"coverage" about:"share whose interval held the truth at every look" col:"COVERED"`
	CoverageLast  result.Figure    `json:"coverage_last" about:"share whose last interval held it"`
	Worst         string           `json:"worst_workload,omitempty" about:"of several: that of most false verdicts"`
	WorstFalse    result.Figure    `json:"worst_false_verdicts" about:"the share of that workload"`
	Found         string           `json:"-" about:"for each effect, the share that found it and the median of looks until then" col:"FOUND"`
	Limit         string           `json:"limit,omitempty" about:"what the null breaks of what the interval relies on" col:"LIMIT"`
}

// VerifyPower is a mean over the rows of one comparison and effect that have no limit.
type VerifyPower struct {
	Comparison Comparison    `json:"comparison" about:"job or pairs" col:"COMPARED"`
	Source     string        `json:"source" about:"recorded or simulated" col:"SOURCE"`
	Effect     result.Figure `json:"effect" about:"that was put in" col:"EFFECT|2"`
	Rows       int           `json:"rows" about:"over which the mean is" col:"ROWS"`
	Power      result.Figure `json:"power" about:"mean share that found it" col:"POWER|2"`
	ToVerdict  result.Figure `json:"to_verdict_median" about:"median of the rows' medians" col:"AFTER|0"`
}

// VerifySummary is over all rows. Rows with a limit count only where that is said.
type VerifySummary struct {
	Level        result.Figure `json:"level" about:"allowed share of false verdicts"`
	Seed         uint64        `json:"seed" about:"of everything random"`
	Replays      int           `json:"replays" about:"of each row"`
	Rows         int           `json:"rows" about:"rows without effect and without limit"`
	FalseMax     result.Figure `json:"false_verdicts_max" about:"greatest share of a row without effect and without limit"`
	FalseOf      string        `json:"false_verdicts_max_of" about:"which row that is"`
	Over         []string      `json:"over" about:"the rows whose share is above the level, and further than chance takes it: two and a half standard deviations of so many replays"`
	CoverageMin  result.Figure `json:"coverage_min" about:"least coverage of a row without limit, effects included"`
	LimitedRows  int           `json:"limited_rows" about:"rows without effect that have a limit"`
	LimitedFalse result.Figure `json:"limited_false_verdicts" about:"greatest share of false verdicts of these"`
	LimitedOf    string        `json:"limited_of,omitempty" about:"which row that is"`
	Power        []VerifyPower `json:"power" about:"means over the rows without limit, by comparison, source and effect"`
	LeftOut      []string      `json:"left_out" about:"files without a null, and why"`
}

// Detail reports that the row without an effect shows what was found under this one.
func (r VerifyRow) Detail() bool { return r.Effect > 0 }

// VerifyReport is the result of Verify.
type VerifyReport = result.Report[VerifyRow, VerifySummary]

// Effects are the shares by which the tuned side is made shorter.
func Effects() []float64 { return []float64{0, 0.02, 0.05, 0.10, 0.20} }

// null is a source of replays in which nothing has an effect.
type null struct {
	comparison Comparison
	name       string
	source     string
	data       string
	objective  tuning.Objective
	limit      string
	workloads  []string // replays are dealt to them in turn; at least one
	draw       func(rng *rand.Rand, workload int) replay
}

// replay is one story without an effect: of a job, or of pairs of jobs in the order in
// which they ended.
type replay struct {
	before, after []measured
	pairs         [][2][]measured // tuned and untuned
}

// measured is one epoch, or a whole run that counts as one.
type measured struct {
	seconds float64
	joules  float64 // 0: not measured
}

// verdicts is what became of one replay.
type verdicts struct {
	looks        int
	wrong        bool // at any look
	covered      bool // at every look
	last         bool // at the last
	first        tuning.Verdict
	right        bool // the first verdict
	toFirst      int
	inconclusive bool // at the last look
}

func (n null) title() string {
	if n.source == Simulated {
		return fmt.Sprintf("%s, %s, %s", n.comparison, n.name, n.source)
	}
	return fmt.Sprintf("%s, %s, %s, %s", n.comparison, n.name, n.objective, n.data)
}

// Verify replays every null with every effect and asks for the controller's verdict after
// every epoch and every pair.
func Verify(ctx context.Context, in VerifyInput, progress result.Progress) (VerifyReport, error) {
	switch {
	case in.Seeds < 1:
		return VerifyReport{}, result.Invalid("%d seeds: want 1 or more", in.Seeds)
	case !(in.Level > 0 && in.Level < 1):
		return VerifyReport{}, result.Invalid("level %g: want a share above 0 and below 1", in.Level)
	case in.Untuned < 1 || in.Epochs < 1 || in.Pairs < 1:
		return VerifyReport{}, result.Invalid("%d untuned epochs, %d epochs, %d pairs: want 1 or more of each", in.Untuned, in.Epochs, in.Pairs)
	case in.Candidates < 0:
		return VerifyReport{}, result.Invalid("%d candidates: want 0 or more", in.Candidates)
	}
	nulls, left := in.simulated(), []string{}
	for _, kind := range []struct {
		tables []records.Table
		nulls  func(VerifyInput, records.Table) []null
	}{{in.Trials, VerifyInput.fromTrials}, {in.Samples, VerifyInput.fromSamples}, {in.Curves, VerifyInput.fromCurves}} {
		for _, t := range kind.tables {
			found := kind.nulls(in, t)
			if len(found) == 0 {
				left = append(left, t.File+": no two runs or epochs that nothing was changed between, or too few")
			}
			nulls = append(nulls, found...)
		}
	}
	rows := make([][]VerifyRow, len(nulls))
	err := result.Each(ctx, len(nulls), progress, func(ctx context.Context, i int) (string, error) {
		var err error
		rows[i], err = in.rows(ctx, nulls[i])
		return nulls[i].title(), err
	})
	if err != nil {
		return VerifyReport{}, fmt.Errorf("evaluate verify: %w", err)
	}
	report := VerifyReport{Command: "evaluate verify", Data: in.Files(), Rows: slices.Concat(rows...)}
	report.Summary = in.summary(report.Rows)
	report.Summary.LeftOut = left
	return report, nil
}

// rows replays one null: a row for each effect, all with the same luck.
func (in VerifyInput) rows(ctx context.Context, n null) ([]VerifyRow, error) {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, n.comparison, n.name, n.objective, n.workloads) // never fails; not the path of the file
	seen := make([][]verdicts, len(Effects()))
	for nth := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := n.draw(rand.New(rand.NewPCG(h.Sum64()^in.Seed, uint64(nth))), nth%len(n.workloads)) //nolint:gosec // an index
		for e, effect := range Effects() {
			seen[e] = append(seen[e], in.judge(n, r, effect))
		}
	}
	out := make([]VerifyRow, len(seen))
	for e, effect := range Effects() {
		out[e] = n.row(effect, seen[e])
		if effect > 0 {
			out[0].Found += fmt.Sprintf("%g %%: %s @%s  ", 100*effect, out[e].Power.Print(2), out[e].ToVerdict.Print(0))
		}
	}
	return out, nil
}

// judge asks for a verdict at every look.
func (in VerifyInput) judge(n null, r replay, effect float64) verdicts {
	truth := math.Log1p(-effect)
	v := verdicts{covered: true, first: tuning.Inconclusive}
	terms := verify.Input{Measure: tuning.Measure{Objective: n.objective}, Level: 1 - in.Level, Candidates: in.Candidates}
	look := func() {
		o := verify.Compare(terms)
		v.looks++
		wrong := isWrong(o.Verdict, effect)
		v.wrong = v.wrong || wrong
		v.last = o.Low <= truth && truth <= o.High
		v.covered = v.covered && v.last
		v.inconclusive = o.Verdict == tuning.Inconclusive
		if v.first == tuning.Inconclusive && !v.inconclusive {
			v.first, v.right, v.toFirst = o.Verdict, !wrong, v.looks
		}
	}
	if n.comparison == Job {
		terms.Before = epochsOf(r.before, 1, 1, 0)
		after := epochsOf(r.after, 1+len(r.before), 2, effect)
		for k := range after {
			terms.After = after[:k+1]
			look()
		}
		return v
	}
	for _, p := range r.pairs {
		terms.Pairs = append(terms.Pairs, verify.Pair{Tuned: epochsOf(p[0], 1, 1, effect), Untuned: epochsOf(p[1], 1, 1, 0)})
		look()
	}
	return v
}

// isWrong reports whether a verdict claims what is not so.
func isWrong(v tuning.Verdict, effect float64) bool {
	switch v {
	case tuning.Improved:
		return effect == 0
	case tuning.Regressed:
		return true
	case tuning.Neutral:
		return -math.Log1p(-effect) > math.Log1p(verify.Margin)
	default:
		return false
	}
}

// epochsOf makes epochs that follow each other, each less by the effect.
func epochsOf(list []measured, number, attempt int, effect float64) []tuning.Epoch {
	start := time.Unix(0, 0).UTC()
	out := make([]tuning.Epoch, len(list))
	for i, m := range list {
		end := start.Add(time.Duration((1 - effect) * m.seconds * float64(time.Second)))
		e := tuning.Epoch{Number: number + i, Attempt: attempt, Start: start, End: end}
		if m.joules > 0 {
			e.Joules, e.Source = new(tuning.Joules((1-effect)*m.joules)), tuning.Replayed
		}
		out[i], start = e, end
	}
	return out
}

func (n null) row(effect float64, seen []verdicts) VerifyRow {
	r := VerifyRow{
		Comparison: n.comparison, Null: n.name, Source: n.source, Data: n.data, Objective: n.objective, Limit: n.limit,
		Effect: result.Figure(effect), Workloads: len(n.workloads), Replays: len(seen), Power: result.Unknown(),
	}
	share := func(of func(verdicts) bool) result.Figure {
		return result.Share(len(slices.DeleteFunc(slices.Clone(seen), func(v verdicts) bool { return !of(v) })), len(seen))
	}
	r.FalseVerdicts = share(func(v verdicts) bool { return v.wrong })
	r.Neutral = share(func(v verdicts) bool { return v.first == tuning.Neutral })
	r.Inconclusive = share(func(v verdicts) bool { return v.inconclusive })
	r.Coverage = share(func(v verdicts) bool { return v.covered })
	r.CoverageLast = share(func(v verdicts) bool { return v.last })
	if effect > 0 {
		r.Power = share(func(v verdicts) bool { return v.first == tuning.Improved })
	}
	var looks, waits []float64
	for _, v := range seen {
		looks = append(looks, float64(v.looks))
		if v.right {
			waits = append(waits, float64(v.toFirst))
		}
	}
	r.Looks, r.ToVerdict, r.ToVerdict90 = result.Mean(looks), quantile(waits, 0.5), quantile(waits, 0.9)
	if r.WorstFalse = r.FalseVerdicts; len(n.workloads) > 1 {
		r.Worst, r.WorstFalse = n.worst(seen)
	}
	return r
}

// worst is the workload of most false verdicts, of several the first.
func (n null) worst(seen []verdicts) (name string, share result.Figure) {
	for w, workload := range n.workloads {
		wrong, all := 0, 0
		for i := w; i < len(seen); i += len(n.workloads) {
			all++
			if seen[i].wrong {
				wrong++
			}
		}
		if s := result.Share(wrong, all); s.Known() && (name == "" || s > share) {
			name, share = workload, s
		}
	}
	return name, share
}

// quantile is the value that a share of them is at most, unknown where there are none.
func quantile[F ~float64](all []F, share float64) result.Figure {
	if len(all) == 0 {
		return result.Unknown()
	}
	return result.Figure(slices.Sorted(slices.Values(all))[max(0, int(math.Ceil(share*float64(len(all))))-1)])
}

func (in VerifyInput) summary(rows []VerifyRow) VerifySummary {
	s := VerifySummary{Level: result.Figure(in.Level), Seed: in.Seed, Replays: in.Seeds, Over: []string{}, CoverageMin: 1, Power: powers(rows)}
	for _, r := range rows {
		title := null{comparison: r.Comparison, name: r.Null, source: r.Source, data: r.Data, objective: r.Objective}.title()
		switch {
		case r.Limit != "" && r.Effect == 0:
			s.LimitedRows++
			if r.FalseVerdicts > s.LimitedFalse || s.LimitedOf == "" {
				s.LimitedFalse, s.LimitedOf = r.FalseVerdicts, title
			}
		case r.Limit == "" && r.Effect == 0:
			s.Rows++
			if r.FalseVerdicts > s.FalseMax || s.FalseOf == "" {
				s.FalseMax, s.FalseOf = r.FalseVerdicts, title
			}
			if float64(r.FalseVerdicts) > in.Level+2.5*math.Sqrt(in.Level*(1-in.Level)/float64(r.Replays)) {
				s.Over = append(s.Over, title)
			}
		}
		if r.Limit == "" {
			s.CoverageMin = min(s.CoverageMin, r.Coverage)
		}
	}
	return s
}

// powers are the means over rows without a limit.
func powers(rows []VerifyRow) []VerifyPower {
	out := []VerifyPower{}
	var found, waits [][]result.Figure
	for _, r := range rows {
		if r.Limit != "" || !r.Power.Known() {
			continue
		}
		i := slices.IndexFunc(out, func(p VerifyPower) bool {
			return p.Comparison == r.Comparison && p.Source == r.Source && p.Effect == r.Effect
		})
		if i < 0 {
			i = len(out)
			out, found, waits = append(out, VerifyPower{Comparison: r.Comparison, Source: r.Source, Effect: r.Effect}), append(found, nil), append(waits, nil)
		}
		found[i] = append(found[i], r.Power)
		if r.ToVerdict.Known() {
			waits[i] = append(waits[i], r.ToVerdict)
		}
	}
	for i := range out {
		out[i].Rows, out[i].Power, out[i].ToVerdict = len(found[i]), result.Mean(found[i]), quantile(waits[i], 0.5)
	}
	slices.SortStableFunc(out, func(a, b VerifyPower) int {
		return cmp.Or(cmp.Compare(a.Comparison, b.Comparison), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}
