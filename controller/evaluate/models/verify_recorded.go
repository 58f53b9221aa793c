package models

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/interp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

const (
	fewestPairs = 8 // a null has to offer: fewer never bring a verdict
	fewestAfter = 4 // epochs that a job has to have after its move to be looked at
)

// keyed is a run, and what it shares with the runs that it is compared with: its workload,
// machine and setting. The setting is left out where it stands for an unknown input.
type keyed struct {
	key, workload string
	epochs        []tuning.Spent // a whole run counts as one
}

// kind are the groups of runs that are alike, of one workload or all of them.
type kind struct {
	workload string
	groups   [][]keyed
}

// kindsOf sorts the groups of at least so many runs by workload.
func kindsOf(groups [][]keyed, least int) []kind {
	groups = evaluate.Only(groups, func(g []keyed) bool { return len(g) >= least })
	same := evaluate.Split(groups, func(g []keyed) string { return g[0].workload })
	return tuning.Each(same, func(of [][]keyed) kind { return kind{of[0][0].workload, of} })
}

// forEach makes nulls of the groups of runs that are alike, for each objective that verdicts
// are asked about, where there is enough.
func forEach(runs []keyed, nulls func(tuning.Objective, [][]keyed) []null) []null {
	measured := evaluate.Only(runs, func(r keyed) bool {
		return !slices.ContainsFunc(r.epochs, func(m tuning.Spent) bool { return m.Joules <= 0 })
	})
	alike := func(runs []keyed) [][]keyed { return evaluate.Split(runs, func(r keyed) string { return r.key }) }
	out := append(nulls(tuning.Time, alike(runs)), nulls(tuning.Energy, alike(measured))...)
	return slices.DeleteFunc(out, func(n null) bool { return len(n.kinds) == 0 })
}

func settingOf(r evaluate.Row) string {
	return strings.Join([]string{r.Workload, r.Machine, r.Input(), r.Knobs.Key()}, "\x00")
}

func place(r evaluate.Row) string {
	if r.Machine == "" {
		return r.Workload
	}
	return r.Workload + " on " + r.Machine
}

// fromTrials makes pairs of whole runs: of repeats of one setting, and of runs whose
// settings stand for unknown inputs.
func (in VerifyInput) fromTrials(t evaluate.Table) []null {
	var repeats, mixed []keyed
	for _, r := range t.Rows {
		seconds, ok := r.Outcome("seconds")
		if !ok {
			continue // a run that did not do all its work is not compared
		}
		m := tuning.Spent{Seconds: seconds}
		m.Joules, _ = r.Outcome("joules")
		repeats = append(repeats, keyed{settingOf(r), place(r), []tuning.Spent{m}})
		mixed = append(mixed, keyed{place(r), place(r), []tuning.Spent{m}})
	}
	out := in.pairsOf(t.File, "repeats of one setting", repeats)
	return append(out, in.pairsOf(t.File, "any settings, as unknown inputs", mixed)...)
}

// pairsOf makes nulls of pairs. Workloads that have enough pairs are kinds of jobs by
// themselves; all of them together are what the line of a report shows that sums up all
// kinds.
func (in VerifyInput) pairsOf(file, name string, runs []keyed) []null {
	return forEach(runs, func(o tuning.Objective, list [][]keyed) []null {
		kinds := kindsOf(list, 2)
		slices.SortFunc(kinds, func(a, b kind) int { return cmp.Compare(a.workload, b.workload) })
		if len(kinds) > 1 {
			kinds = append(kinds, kind{"all workloads", list})
		}
		return []null{{
			names: named(Pairs, name, Recorded, file, o, ""),
			kinds: evaluate.Only(kinds, func(k kind) bool { return k.pairs() >= fewestPairs }), draw: in.drawPairs,
		}}
	})
}

func (k kind) pairs() int {
	return tuning.Sum(k.groups, func(g []keyed) int { return len(g) / 2 })
}

// drawPairs uses each run at most once, and lets chance say which one of a pair is tuned.
func (in VerifyInput) drawPairs(rng *rand.Rand, of kind) replay {
	var out [][2][]tuning.Spent
	for _, s := range of.groups {
		order := rng.Perm(len(s))
		for i := 0; i+1 < len(order); i += 2 {
			out = append(out, [2][]tuning.Spent{s[order[i]].epochs, s[order[i+1]].epochs})
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return replay{pairs: out[:min(len(out), in.Pairs)]}
}

// fromSamples cuts each run into slices of equal work, which stand for epochs. Repeats
// are attempts of one job, whose slices come in random order since programs have phases;
// one run in its order shows what these do. And repeats are pairs, compared at matching
// slices.
func (in VerifyInput) fromSamples(t evaluate.Table) []null {
	var repeats []keyed
	for _, same := range evaluate.Split(evaluate.Runs(t.Rows), func(run []evaluate.Row) string { return settingOf(run[0]) }) {
		n := in.Untuned + in.Epochs // slices of each run
		for _, run := range same {
			n = min(n, len(run)/2)
		}
		for _, run := range same {
			if n < in.Untuned+fewestAfter {
				break
			}
			if epochs := sliced(run, n); epochs != nil {
				repeats = append(repeats, keyed{settingOf(run[0]), run[0].Workload, epochs})
			}
		}
	}
	out := forEach(repeats, func(o tuning.Objective, list [][]keyed) []null {
		return []null{
			in.job(t.File, "repeats as attempts, slices of equal work in random order", o, "", list, 2, in.drawAttempts),
			in.job(t.File, "slices of equal work of one run in their order", o, limitDrift, list, 1, in.drawStretch),
		}
	})
	return append(out, in.pairsOf(t.File, "repeats of one setting at matching slices", repeats)...)
}

// sliced cuts a run into n slices of equally many instructions, or cycles where those are
// missing. Nil: neither was counted throughout, or the time does not go on.
func sliced(rows []evaluate.Row, n int) []tuning.Spent {
	for _, column := range []string{"instructions", "cycles"} {
		if out, ok := slicedBy(rows, column, n); ok {
			return out
		}
	}
	return nil
}

// slicedBy reads the seconds and joules so far at equal steps of the work so far.
func slicedBy(rows []evaluate.Row, column string, n int) ([]tuning.Spent, bool) {
	work, seconds, joules := []float64{0}, []float64{0}, []float64{0}
	began, energetic := 0.0, true
	for _, r := range rows {
		done, counted := r.Float(column)
		until, timed := r.Float("t_seconds")
		if !counted || done < 0 || !timed || until <= began {
			return nil, false
		}
		watts, ok := r.Float("watts")
		energetic = energetic && ok && watts > 0
		if sum := tuning.Last(work) + done; sum > tuning.Last(work) { // else the interval is in no slice
			work, seconds = append(work, sum), append(seconds, tuning.Last(seconds)+until-began)
			joules = append(joules, tuning.Last(joules)+(until-began)*watts)
		}
		began = until
	}
	if len(work) < 2 {
		return nil, false
	}
	var clock, meter interp.PiecewiseLinear
	_, _ = clock.Fit(work, seconds), meter.Fit(work, joules) // which never fail where the work grows
	out := make([]tuning.Spent, n)
	for i, steps := 0, floats.Span(make([]float64, n+1), 0, tuning.Last(work)); i < n; i++ {
		out[i].Seconds = clock.Predict(steps[i+1]) - clock.Predict(steps[i])
		if energetic {
			out[i].Joules = meter.Predict(steps[i+1]) - meter.Predict(steps[i])
		}
	}
	return out, !slices.ContainsFunc(out, func(m tuning.Spent) bool { return m.Seconds <= 0 })
}

// job makes a null of runs, whose workloads take turns.
func (in VerifyInput) job(file, name string, o tuning.Objective, limit string, list [][]keyed, least int, draw func(*rand.Rand, []keyed) replay) null {
	return null{
		names: named(Job, name, Recorded, file, o, limit), kinds: kindsOf(list, least),
		draw: func(rng *rand.Rand, of kind) replay { return draw(rng, of.groups[rng.IntN(len(of.groups))]) },
	}
}

// drawAttempts takes one run for the attempt before the move and another for that after
// it.
func (in VerifyInput) drawAttempts(rng *rand.Rand, s []keyed) replay {
	order := rng.Perm(len(s))
	before, after := slices.Clone(s[order[0]].epochs), slices.Clone(s[order[1]].epochs)
	for _, list := range [][]tuning.Spent{before, after} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return replay{before: before[:in.Untuned], after: after[:min(len(after), in.Epochs)]}
}

// drawStretch takes a run as it went on, from a random epoch.
func (in VerifyInput) drawStretch(rng *rand.Rand, s []keyed) replay {
	run := s[rng.IntN(len(s))].epochs
	run = run[rng.IntN(len(run)-in.Untuned-fewestAfter+1):]
	return replay{before: run[:in.Untuned], after: run[in.Untuned:min(len(run), in.Untuned+in.Epochs)]}
}

// fromCurves takes the epochs of each run, from one change of the job to the next, in
// their order. The first epoch of a run is warm-up. Workloads whose epochs grow or shrink as
// they go on are listed by themselves: that is a drift.
func (in VerifyInput) fromCurves(t evaluate.Table) []null {
	var runs []keyed
	for _, rows := range evaluate.Runs(t.Rows) {
		enough := evaluate.Only(unchanged(evaluate.InOrder(rows)), func(s []tuning.Spent) bool { return len(s) >= in.Untuned+fewestAfter })
		runs = append(runs, tuning.Each(enough, func(s []tuning.Spent) keyed { return keyed{place(rows[0]), place(rows[0]), s} })...)
	}
	return forEach(runs, func(o tuning.Objective, list [][]keyed) []null {
		const name = "epochs of one run in their order"
		steady, drifting := slices.DeleteFunc(slices.Clone(list), drifts), evaluate.Only(list, drifts)
		return []null{
			in.job(t.File, name, o, "", steady, 1, in.drawStretch), in.job(t.File, name, o, limitDrift, drifting, 1, in.drawStretch),
		}
	})
}

// drifts reports whether the last third of the runs' epochs usually takes longer or shorter
// than the first by more than what a verdict takes for no effect.
func drifts(runs []keyed) bool {
	seconds := func(epochs []tuning.Spent) float64 {
		return tuning.Sum(epochs, func(m tuning.Spent) float64 { return m.Seconds })
	}
	var trends []float64
	for _, r := range runs {
		run := r.epochs
		third := max(len(run)/3, 1)
		trends = append(trends, math.Log(seconds(run[len(run)-third:])/seconds(run[:third])))
	}
	slices.Sort(trends)
	return math.Abs(trends[len(trends)/2]) > math.Log1p(verify.Margin)
}

// unchanged are the stretches of a run in which nothing was changed.
func unchanged(rows []evaluate.Row) [][]tuning.Spent {
	out := [][]tuning.Spent{nil}
	for i, r := range rows {
		if action := r.Text("action"); action != "" && action != "none" {
			out = append(out, nil)
			continue
		}
		if i == 0 {
			continue
		}
		seconds, ok := r.Float("epoch_seconds")
		if !ok {
			until, known := r.Float("seconds")
			from, knew := rows[i-1].Float("seconds")
			seconds, ok = until-from, known && knew
		}
		if !ok || seconds <= 0 {
			out = append(out, nil) // not measured: the slices after it have no sum
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], tuning.Spent{Seconds: seconds})
	}
	return out
}
