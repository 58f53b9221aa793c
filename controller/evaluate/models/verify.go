package models

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

// VerifyInput is what Verify measures. Without any table it measures only the simulated nulls.
type VerifyInput struct {
	evaluate.Set
	Seeds      int     // replays of each null
	Seed       uint64  // of the first
	Level      float64 // share of false verdicts that is allowed
	Untuned    int     // epochs of a job before its move
	Epochs     int     // epochs after it, all judged
	Pairs      int     // pairs of jobs, all judged
	Candidates int     // settings that were tried with the same untuned epochs; 0 and 1: one
}

// DefaultVerify has the defaults.
func DefaultVerify() VerifyInput {
	return VerifyInput{Seeds: 300, Seed: 1, Level: 0.05, Untuned: tuning.DefaultEpochs, Epochs: 40, Pairs: 32, Candidates: 1}
}

// The comparisons that the controller makes.
const (
	Job   = "job"   // one job: its epochs before and after its move
	Pairs = "pairs" // jobs, one left untuned by chance; inputs unknown
)

// Recorded and Simulated are where a null comes from.
const (
	Recorded  = "recorded"
	Simulated = "simulated"
)

// Effects are the shares that the tuned side is made shorter by.
func Effects() []float64 { return []float64{0, 0.02, 0.05, 0.10, 0.20} }

// null is a source of replays in which nothing has an effect.
type null struct {
	names evaluate.Line // in its rows
	kinds []kind        // replays are dealt to them in turn; at least one
	draw  func(*rand.Rand, kind) replay
}

func named(comparison, name, source, data string, o tuning.Objective, limit string) evaluate.Line {
	return evaluate.Line{"comparison": comparison, "null": name, "source": source, "data": data, "objective": string(o), "limit": limit}
}

// replay is one story without an effect: of a job, or of pairs of jobs in the order in
// which they ended.
type replay struct {
	before, after []tuning.Spent      // each an epoch, or a whole run that counts as one; joules 0: not measured
	pairs         [][2][]tuning.Spent // tuned and untuned
}

func title(l evaluate.Line) string {
	if l["source"] == Simulated {
		return fmt.Sprintf("%s, %s, %s", l["comparison"], l["null"], l["source"])
	}
	return fmt.Sprintf("%s, %s, %s, %s", l["comparison"], l["null"], l["objective"], l["data"])
}

// Verify replays every null with every effect and asks for the controller's verdict after
// every epoch and every pair.
func Verify(ctx context.Context, in VerifyInput, progress evaluate.Progress) (evaluate.Report, error) {
	out := evaluate.Report{Command: "evaluate verify", Data: in.Files(), Hidden: hasEffect}
	err := cmp.Or(
		evaluate.Want(in.Seeds >= 1, "%d seeds: want 1 or more", in.Seeds),
		evaluate.Want(in.Level > 0 && in.Level < 1, "level %g: want a share above 0 and below 1", in.Level),
		evaluate.Want(in.Untuned >= 1 && in.Epochs >= 1 && in.Pairs >= 1, "%d untuned epochs, %d epochs, %d pairs: want 1 or more of each", in.Untuned, in.Epochs, in.Pairs),
		evaluate.Want(in.Candidates >= 0, "%d candidates: want 0 or more", in.Candidates),
	)
	if err != nil {
		return out, err
	}
	nulls, left := in.simulated(), []string{}
	for _, kind := range []struct {
		tables []evaluate.Table
		nulls  func(VerifyInput, evaluate.Table) []null
	}{{in.Trials, VerifyInput.fromTrials}, {in.Samples, VerifyInput.fromSamples}, {in.Curves, VerifyInput.fromCurves}} {
		for _, t := range kind.tables {
			found := kind.nulls(in, t)
			if len(found) == 0 {
				left = append(left, t.File+": no two runs or epochs that nothing was changed between, or too few")
			}
			nulls = append(nulls, found...)
		}
	}
	err = out.Fill(ctx, len(nulls), progress, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		rows, err := in.rows(ctx, nulls[i])
		return title(nulls[i].names), rows, err
	})
	if err != nil {
		return out, err
	}
	out.Summary = in.summary(out.Rows).With(evaluate.Line{"left_out": left})
	return out, nil
}

// hasEffect reports whether an effect was put in. The row without one shows what was found.
func hasEffect(row evaluate.Line) bool { return row.Figure("effect") > 0 }

// rows replays one null: a row for each effect, all with the same luck.
func (in VerifyInput) rows(ctx context.Context, n null) ([]evaluate.Line, error) {
	h := fnv.New64a()
	workloads := tuning.Each(n.kinds, func(k kind) string { return k.workload })
	_, _ = fmt.Fprint(h, n.names["comparison"], n.names["null"], n.names["objective"], workloads) // never fails; not the path of the file
	seen := make([][]evaluate.Line, len(Effects()))
	for nth := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := n.draw(rand.New(rand.NewPCG(h.Sum64()^in.Seed, uint64(nth))), n.kinds[nth%len(n.kinds)]) //nolint:gosec // an index
		for e, effect := range Effects() {
			seen[e] = append(seen[e], in.judge(n, r, effect))
		}
	}
	var out []evaluate.Line
	var found strings.Builder
	for e, effect := range Effects() {
		row := n.row(effect, seen[e])
		out = append(out, row)
		if effect > 0 {
			fmt.Fprintf(&found, "%g %%: %s @%s  ", 100*effect, row.Figure("power").Print(2), row.Figure("to_verdict_median").Print(0))
		}
	}
	out[0]["found"] = found.String()
	return out, nil
}

// judge asks for the verdict after every epoch or pair of a replay. Its figures are those
// that a row has the means of.
func (in VerifyInput) judge(n null, r replay, effect float64) evaluate.Line {
	objective := tuning.Objective(n.names.Text("objective"))
	terms := verify.Input{Measure: tuning.Measure{Objective: objective}, Level: 1 - in.Level, Candidates: in.Candidates}
	truth := math.Log1p(-effect)
	looks, wrong, within, covered := 0, false, false, true
	first, last, wait := tuning.Inconclusive, tuning.Inconclusive, evaluate.Unknown()
	look := func() {
		o := verify.Compare(terms)
		looks++
		claims := isWrong(o.Verdict, effect)
		wrong = wrong || claims
		within = o.Low <= truth && truth <= o.High
		covered = covered && within
		if last = o.Verdict; first == tuning.Inconclusive && last != first {
			if first = last; !claims {
				wait = evaluate.Figure(looks)
			}
		}
	}
	if n.names["comparison"] == Job {
		terms.Before = epochsOf(r.before, 1, 1, 0)
		after := epochsOf(r.after, 1+len(r.before), 2, effect)
		for k := range after {
			terms.After = after[:k+1]
			look()
		}
	}
	for _, p := range r.pairs {
		terms.Pairs = append(terms.Pairs, verify.Pair{Tuned: epochsOf(p[0], 1, 1, effect), Untuned: epochsOf(p[1], 1, 1, 0)})
		look()
	}
	return evaluate.Line{
		"looks_mean": evaluate.Figure(looks), "false_verdicts": evaluate.Yes(wrong), "coverage": evaluate.Yes(covered), "coverage_last": evaluate.Yes(within),
		"power": evaluate.Yes(first == tuning.Improved), "neutral": evaluate.Yes(first == tuning.Neutral),
		"inconclusive": evaluate.Yes(last == tuning.Inconclusive), "to_verdict_median": wait,
	}
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
func epochsOf(list []tuning.Spent, number, attempt int, effect float64) []tuning.Epoch {
	start := time.Unix(0, 0).UTC()
	out := make([]tuning.Epoch, len(list))
	for i, m := range list {
		end := start.Add(time.Duration((1 - effect) * m.Seconds * float64(time.Second)))
		e := tuning.Epoch{Number: number + i, Attempt: attempt, Start: start, End: end}
		if m.Joules > 0 {
			e.Joules, e.Source = new(tuning.Joules((1-effect)*m.Joules)), tuning.Replayed
		}
		out[i], start = e, end
	}
	return out
}

func (n null) row(effect float64, seen []evaluate.Line) evaluate.Line {
	waits := evaluate.Only(evaluate.Column(seen, "to_verdict_median"), evaluate.Figure.Known)
	r := n.names.With(evaluate.Average(seen), evaluate.Line{
		"effect": evaluate.Figure(effect), "workloads": len(n.kinds), "replays": len(seen),
		"to_verdict_median": quantile(waits, 0.5), "to_verdict_p90": quantile(waits, 0.9),
	})
	if effect == 0 {
		delete(r, "power")
	}
	if r["worst_false_verdicts"] = r["false_verdicts"]; len(n.kinds) > 1 {
		r["worst_workload"], r["worst_false_verdicts"] = n.worst(seen)
	}
	return r
}

// worst is the workload of most false verdicts, of several the first.
func (n null) worst(seen []evaluate.Line) (name string, share evaluate.Figure) {
	wrong := evaluate.Column(seen, "false_verdicts")
	for k, kind := range n.kinds {
		its := evaluate.Only(evaluate.Indices(seen), func(i int) bool { return i%len(n.kinds) == k })
		s := evaluate.Mean(tuning.Each(its, func(i int) evaluate.Figure { return wrong[i] }))
		if s.Known() && (name == "" || s > share) {
			name, share = kind.workload, s
		}
	}
	return name, share
}

// quantile is the value that a share of them is at most, unknown where there are none.
func quantile(all []evaluate.Figure, share float64) evaluate.Figure {
	if len(all) == 0 {
		return evaluate.Unknown()
	}
	return slices.Sorted(slices.Values(all))[max(0, int(math.Ceil(share*float64(len(all))))-1)]
}

func (in VerifyInput) summary(rows []evaluate.Line) evaluate.Line {
	found := func(limited, effect bool) []evaluate.Line {
		return evaluate.Only(rows, func(r evaluate.Line) bool { return (r.Text("limit") != "") == limited && hasEffect(r) == effect })
	}
	nulls, limited, effects := found(false, false), found(true, false), found(false, true)
	over := evaluate.Only(nulls, func(r evaluate.Line) bool {
		return float64(r.Figure("false_verdicts")) > in.Level+2.5*math.Sqrt(in.Level*(1-in.Level)/float64(r.Figure("replays")))
	})
	coverage, _ := evaluate.Range(evaluate.Column(slices.Concat(nulls, effects), "coverage"))
	s := evaluate.Line{
		"level": evaluate.Figure(in.Level), "seed": in.Seed, "replays": in.Seeds, "rows": len(nulls), "limited_rows": len(limited),
		"over": append([]string{}, tuning.Each(over, title)...), "coverage_min": min(coverage, 1), "power": powers(effects),
	}
	s["false_verdicts_max"], s["false_verdicts_max_of"] = mostFalse(nulls)
	s["limited_false_verdicts"], s["limited_of"] = mostFalse(limited)
	return s
}

func mostFalse(rows []evaluate.Line) (most evaluate.Figure, of string) {
	for _, r := range rows {
		if share := r.Figure("false_verdicts"); share > most || of == "" {
			most, of = share, title(r)
		}
	}
	return most, of
}

// powers are the means over rows with an effect and without a limit.
func powers(rows []evaluate.Line) []evaluate.Line {
	name := func(r evaluate.Line) string { return fmt.Sprint(r["comparison"], " ", r["source"], " ", r["effect"]) }
	var out []evaluate.Line
	for _, same := range evaluate.Split(rows, name) {
		waits := evaluate.Only(evaluate.Column(same, "to_verdict_median"), evaluate.Figure.Known)
		out = append(out, evaluate.Line{
			"comparison": same[0]["comparison"], "source": same[0]["source"], "effect": same[0]["effect"], "rows": len(same),
			"power": evaluate.Mean(evaluate.Column(same, "power")), "to_verdict_median": quantile(waits, 0.5),
		})
	}
	slices.SortStableFunc(out, func(a, b evaluate.Line) int { return cmp.Compare(name(a), name(b)) })
	return out
}
