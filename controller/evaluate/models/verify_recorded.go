package models

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

const (
	fewestPairs = 8 // a null has to offer: fewer never bring a verdict
	fewestAfter = 4 // epochs that a job has to have after its move to be looked at
)

// alike are runs of one workload on one machine under one setting, or, where settings
// stand for inputs that are unknown, under any.
type alike struct {
	workload string
	runs     [][]measured // epochs of each; a whole run counts as one
}

// keyed is a run, and what it has in common with those that it is compared with.
type keyed struct {
	key, workload string
	run           []measured
}

// alikeOf gathers runs by their key.
func alikeOf(runs []keyed) []alike {
	var out []alike
	for _, same := range evaluate.Split(runs, func(k keyed) string { return k.key }) {
		one := alike{workload: same[0].workload}
		for _, k := range same {
			one.runs = append(one.runs, k.run)
		}
		out = append(out, one)
	}
	return out
}

// forEach makes a null of what was measured for each objective that verdicts are asked
// about, where there is enough.
func forEach(list []alike, nulls func(tuning.Objective, []alike) []null) []null {
	var out []null
	for _, o := range []tuning.Objective{tuning.Time, tuning.Energy} {
		of := list
		if o == tuning.Energy {
			of = nil
			for _, s := range list {
				s.runs = slices.DeleteFunc(slices.Clone(s.runs), func(run []measured) bool {
					return slices.ContainsFunc(run, func(m measured) bool { return m.joules <= 0 })
				})
				of = append(of, s)
			}
		}
		out = append(out, nulls(o, of)...)
	}
	return slices.DeleteFunc(out, func(n null) bool { return len(n.workloads) == 0 })
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
// settings stand for inputs that are unknown.
func (in VerifyInput) fromTrials(t evaluate.Table) []null {
	var repeats, mixed []keyed
	for _, r := range t.Rows {
		seconds, ok := r.Outcome("seconds")
		if !ok {
			continue // a run that did not do all its work is not compared
		}
		m := measured{seconds: seconds}
		m.joules, _ = r.Outcome("joules")
		repeats = append(repeats, keyed{settingOf(r), place(r), []measured{m}})
		mixed = append(mixed, keyed{place(r), place(r), []measured{m}})
	}
	out := in.pairsOf(t.File, "repeats of one setting", alikeOf(repeats))
	return append(out, in.pairsOf(t.File, "any settings, as unknown inputs", alikeOf(mixed))...)
}

// pairsOf makes nulls of pairs. Workloads that have enough pairs are kinds of jobs by
// themselves; all of them together are what the line of a report shows that sums up all
// kinds.
func (in VerifyInput) pairsOf(file, name string, list []alike) []null {
	return forEach(list, func(o tuning.Objective, list []alike) []null {
		kinds, count := map[string][]alike{}, map[string]int{}
		const all = "all workloads"
		for _, s := range list {
			if n := len(s.runs) / 2; n > 0 {
				kinds[s.workload], kinds[all] = append(kinds[s.workload], s), append(kinds[all], s)
				count[s.workload] += n
				count[all] += n
			}
		}
		var names []string
		for _, w := range slices.Sorted(maps.Keys(kinds)) {
			if w != all && count[w] >= fewestPairs {
				names = append(names, w)
			}
		}
		if len(kinds) > 2 && count[all] >= fewestPairs {
			names = append(names, all)
		}
		return []null{{
			comparison: Pairs, name: name, source: Recorded, data: file, objective: o, workloads: names,
			draw: func(rng *rand.Rand, w int) replay { return in.drawPairs(rng, kinds[names[w]]) },
		}}
	})
}

// drawPairs uses each run at most once, and lets chance say which one of a pair is tuned.
func (in VerifyInput) drawPairs(rng *rand.Rand, list []alike) replay {
	var out [][2][]measured
	for _, s := range list {
		order := rng.Perm(len(s.runs))
		for i := 0; i+1 < len(order); i += 2 {
			out = append(out, [2][]measured{s.runs[order[i]], s.runs[order[i+1]]})
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
	runs, pieces := evaluate.Runs(t.Rows), map[string]int{} // slices of each setting
	for _, rows := range runs {
		key := settingOf(rows[0])
		n := min(len(rows)/2, in.Untuned+in.Epochs)
		if have, ok := pieces[key]; !ok || n < have {
			pieces[key] = n
		}
	}
	for _, rows := range runs {
		key := settingOf(rows[0])
		if n := pieces[key]; n >= in.Untuned+fewestAfter {
			if run := sliced(rows, n); run != nil {
				repeats = append(repeats, keyed{key, rows[0].Workload, run})
			}
		}
	}
	list := alikeOf(repeats)
	out := forEach(list, func(o tuning.Objective, list []alike) []null {
		return []null{
			in.job(t.File, "repeats as attempts, slices of equal work in random order", o, "", list, 2, in.drawAttempts),
			in.job(t.File, "slices of equal work of one run in their order", o, limitDrift, list, 1, in.drawStretch),
		}
	})
	return append(out, in.pairsOf(t.File, "repeats of one setting at matching slices", list)...)
}

// sliced cuts a run into n slices of equally many instructions, or cycles where those are
// missing. Nil: neither was counted throughout, or the time does not go on.
func sliced(rows []evaluate.Row, n int) []measured {
	for _, column := range []string{"instructions", "cycles"} {
		if out, ok := slicedBy(rows, column, n); ok {
			return out
		}
	}
	return nil
}

func slicedBy(rows []evaluate.Row, column string, n int) ([]measured, bool) {
	total := 0.0
	for _, r := range rows {
		v, ok := r.Float(column)
		if !ok || v < 0 {
			return nil, false
		}
		total += v
	}
	if total <= 0 {
		return nil, false
	}
	out := make([]measured, n)
	at, done, energetic := 0.0, 0.0, true
	for _, r := range rows {
		until, ok := r.Float("t_seconds")
		if !ok || until <= at {
			return nil, false
		}
		work, _ := r.Float(column)
		watts, ok := r.Float("watts")
		energetic = energetic && ok && watts > 0
		// The interval is shared among the slices that its work falls into.
		for left := work; left > 0; {
			i := min(int(done/total*float64(n)*(1+1e-12)), n-1)
			space := total*float64(i+1)/float64(n) - done
			if i == n-1 || space <= 0 {
				space = left
			}
			part := min(left, space)
			seconds := (until - at) * part / work
			out[i].seconds += seconds
			out[i].joules += seconds * watts
			done += part
			left -= part
		}
		at = until
	}
	for i := range out {
		if !energetic {
			out[i].joules = 0
		}
	}
	return out, !slices.ContainsFunc(out, func(m measured) bool { return m.seconds <= 0 })
}

// job makes a null of runs, whose workloads take turns.
func (in VerifyInput) job(file, name string, o tuning.Objective, limit string, list []alike, least int, draw func(*rand.Rand, alike) replay) null {
	n := null{comparison: Job, name: name, source: Recorded, data: file, objective: o, limit: limit}
	of := map[string][]alike{}
	for _, s := range list {
		if len(s.runs) < least {
			continue
		}
		if of[s.workload] == nil {
			n.workloads = append(n.workloads, s.workload)
		}
		of[s.workload] = append(of[s.workload], s)
	}
	n.draw = func(rng *rand.Rand, w int) replay {
		these := of[n.workloads[w]]
		return draw(rng, these[rng.IntN(len(these))])
	}
	return n
}

// drawAttempts takes one run for the attempt before the move and another for that after
// it.
func (in VerifyInput) drawAttempts(rng *rand.Rand, s alike) replay {
	order := rng.Perm(len(s.runs))
	before, after := slices.Clone(s.runs[order[0]]), slices.Clone(s.runs[order[1]])
	for _, list := range [][]measured{before, after} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return replay{before: before[:in.Untuned], after: after[:min(len(after), in.Epochs)]}
}

// drawStretch takes a run as it went on, from a random epoch.
func (in VerifyInput) drawStretch(rng *rand.Rand, s alike) replay {
	run := s.runs[rng.IntN(len(s.runs))]
	run = run[rng.IntN(len(run)-in.Untuned-fewestAfter+1):]
	return replay{before: run[:in.Untuned], after: run[in.Untuned:min(len(run), in.Untuned+in.Epochs)]}
}

// fromCurves takes the epochs of each run, from one change of the job to the next, in
// their order. The first epoch of a run is warm-up. Workloads whose epochs grow or shrink
// as they go on stand by themselves: that is a drift.
func (in VerifyInput) fromCurves(t evaluate.Table) []null {
	var runs []keyed
	for _, rows := range evaluate.Runs(t.Rows) {
		for _, stretch := range unchanged(evaluate.InOrder(rows)) {
			if len(stretch) >= in.Untuned+fewestAfter {
				runs = append(runs, keyed{place(rows[0]), place(rows[0]), stretch})
			}
		}
	}
	const name = "epochs of one run in their order"
	steady := slices.DeleteFunc(alikeOf(runs), alike.drifts)
	drifting := slices.DeleteFunc(alikeOf(runs), func(s alike) bool { return !s.drifts() })
	out := []null{
		in.job(t.File, name, tuning.Time, "", steady, 1, in.drawStretch),
		in.job(t.File, name, tuning.Time, limitDrift, drifting, 1, in.drawStretch),
	}
	return slices.DeleteFunc(out, func(n null) bool { return len(n.workloads) == 0 })
}

// drifts reports whether the last third of the runs' epochs usually takes longer or shorter
// than the first by more than what a verdict takes for no effect.
func (s alike) drifts() bool {
	seconds := func(epochs []measured) float64 {
		sum := 0.0
		for _, m := range epochs {
			sum += m.seconds
		}
		return sum
	}
	var trends []float64
	for _, run := range s.runs {
		third := max(len(run)/3, 1)
		trends = append(trends, math.Log(seconds(run[len(run)-third:])/seconds(run[:third])))
	}
	slices.Sort(trends)
	return math.Abs(trends[len(trends)/2]) > math.Log1p(verify.Margin)
}

// unchanged are the stretches of a run in which nothing was changed.
func unchanged(rows []evaluate.Row) [][]measured {
	out := [][]measured{nil}
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
			out = append(out, nil) // not measured: what follows stands by itself
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], measured{seconds: seconds})
	}
	return out
}
