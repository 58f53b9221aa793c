package verify

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
	mind "pitchpipe/controller/verify"
)

// fewestPairs is how many pairs a null has to offer: fewer never bring a verdict.
const fewestPairs = 8

// stratum are runs of one workload on one machine under one setting, or, where settings
// are taken for inputs that nobody knows, under any.
type stratum struct {
	workload string
	runs     [][]measured // epochs of each; a whole run counts as one
}

// mayPair is how many pairs of different runs there are.
func (s stratum) mayPair() int { return len(s.runs) / 2 }

// measuredFor are the runs that were measured for an objective.
func measuredFor(o tuning.Objective, list []stratum) []stratum {
	var out []stratum
	for _, s := range list {
		if o == tuning.Energy {
			s.runs = slices.DeleteFunc(slices.Clone(s.runs), func(run []measured) bool {
				return slices.ContainsFunc(run, func(m measured) bool { return m.joules <= 0 })
			})
		}
		if len(s.runs) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// objectives are those that verdicts are asked about.
func objectives() []tuning.Objective { return []tuning.Objective{tuning.Time, tuning.Energy} }

// strata gathers runs by a key, in the order of their first rows.
type strata struct {
	at   map[string]int
	list []stratum
}

func (s *strata) add(key, workload string, run []measured) {
	if s.at == nil {
		s.at = map[string]int{}
	}
	i, ok := s.at[key]
	if !ok {
		i, s.at[key] = len(s.list), len(s.list)
		s.list = append(s.list, stratum{workload: workload})
	}
	s.list[i].runs = append(s.list[i].runs, run)
}

func settingOf(r records.Row) string {
	return strings.Join([]string{r.Workload, r.Machine, r.Input(), r.Knobs.Key()}, "\x00")
}

// fromTrials makes pairs of whole runs: of repeats of one setting, and of runs whose
// settings are taken for inputs that nobody knows.
func (in Input) fromTrials(t records.Table) []null {
	var repeats, mixed strata
	for _, r := range t.Rows {
		seconds, ok := r.Outcome("seconds")
		if !ok {
			continue // a run that did not do all its work is not compared
		}
		m := measured{seconds: seconds}
		m.joules, _ = r.Outcome("joules")
		repeats.add(settingOf(r), place(r), []measured{m})
		mixed.add(place(r), place(r), []measured{m})
	}
	out := in.pairsOf(t.File, "repeats of one setting", repeats.list)
	return append(out, in.pairsOf(t.File, "any settings, as inputs that nobody knows", mixed.list)...)
}

func place(r records.Row) string {
	if r.Machine == "" {
		return r.Workload
	}
	return r.Workload + " on " + r.Machine
}

// pairsOf makes nulls of pairs within strata. Workloads that have enough pairs are kinds
// of jobs by themselves; all of them together are what the line of a report shows that
// sums up all kinds.
func (in Input) pairsOf(file, name string, list []stratum) []null {
	var out []null
	for _, objective := range objectives() {
		if n := in.pairsFor(objective, file, name, measuredFor(objective, list)); len(n.workloads) > 0 {
			out = append(out, n)
		}
	}
	return out
}

func (in Input) pairsFor(objective tuning.Objective, file, name string, list []stratum) null {
	list = slices.DeleteFunc(list, func(s stratum) bool { return s.mayPair() == 0 })
	kinds := map[string][]stratum{}
	count := map[string]int{}
	for _, s := range list {
		kinds[s.workload] = append(kinds[s.workload], s)
		count[s.workload] += s.mayPair()
	}
	var names []string
	all := 0
	for _, w := range slices.Sorted(maps.Keys(kinds)) {
		if count[w] >= fewestPairs {
			names = append(names, w)
		}
		all += count[w]
	}
	if len(kinds) > 1 && all >= fewestPairs {
		names = append(names, "all workloads")
		kinds["all workloads"] = list
	}
	return null{
		comparison: Pairs, name: name, source: Recorded, data: file, objective: objective, workloads: names,
		draw: func(rng *rand.Rand, w int) replay { return replay{pairs: in.drawPairs(rng, kinds[names[w]])} },
	}
}

// drawPairs uses each run at most once, and lets chance say which one of a pair is tuned.
func (in Input) drawPairs(rng *rand.Rand, list []stratum) []couple {
	var out []couple
	for _, s := range list {
		order := rng.Perm(len(s.runs))
		for i := 0; i+1 < len(order); i += 2 {
			out = append(out, couple{tuned: s.runs[order[i]], untuned: s.runs[order[i+1]]})
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), in.Pairs)]
}

// fewestAfter is how many epochs a job has to have after its move to be looked at.
const fewestAfter = 4

// fromSamples cuts each run into slices of equal work, which stand for epochs. Repeats
// are attempts of one job, whose slices come in random order since programs have phases;
// one run in its order shows what these do. And repeats are pairs, compared at matching
// slices.
func (in Input) fromSamples(t records.Table) []null {
	var repeats strata
	pieces := map[string]int{} // slices of each setting
	var runs [][]records.Row
	for _, rows := range records.Runs(t.Rows) {
		key := settingOf(rows[0])
		n := min(len(rows)/2, in.Untuned+in.Epochs)
		if had, ok := pieces[key]; !ok || n < had {
			pieces[key] = n
		}
		runs = append(runs, rows)
	}
	for _, rows := range runs {
		if n := pieces[settingOf(rows[0])]; n >= in.Untuned+fewestAfter {
			if run := sliced(rows, n); run != nil {
				repeats.add(settingOf(rows[0]), rows[0].Workload, run)
			}
		}
	}
	var out []null
	for _, objective := range objectives() {
		list := measuredFor(objective, repeats.list)
		out = append(out,
			in.job(t.File, "repeats as attempts, slices of equal work in random order", objective, "", list, 2, in.drawAttempts),
			in.job(t.File, "slices of equal work of one run in their order", objective, limitDrift, list, 1, in.drawStretch))
	}
	out = slices.DeleteFunc(out, func(n null) bool { return len(n.workloads) == 0 })
	return append(out, in.pairsOf(t.File, "repeats of one setting at matching slices", repeats.list)...)
}

// sliced cuts a run into n slices of equally many instructions, or cycles where those are
// missing. Nil: neither was counted throughout, or the time does not go on.
func sliced(rows []records.Row, n int) []measured {
	for _, column := range []string{"instructions", "cycles"} {
		if out, ok := slicedBy(rows, column, n); ok {
			return out
		}
	}
	return nil
}

func slicedBy(rows []records.Row, column string, n int) ([]measured, bool) {
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
			room := total*float64(i+1)/float64(n) - done
			if i == n-1 || room <= 0 {
				room = left
			}
			part := min(left, room)
			seconds := (until - at) * part / work
			out[i].seconds += seconds
			out[i].joules += seconds * watts
			done += part
			left -= part
		}
		at = until
	}
	if !energetic {
		for i := range out {
			out[i].joules = 0
		}
	}
	return out, !slices.ContainsFunc(out, func(m measured) bool { return m.seconds <= 0 })
}

// job makes a null of strata, whose workloads take turns.
func (in Input) job(
	file, name string, objective tuning.Objective, limit string, list []stratum, least int,
	draw func(*rand.Rand, stratum) replay,
) null {
	n := null{comparison: Job, name: name, source: Recorded, data: file, objective: objective, limit: limit}
	of := map[string][]stratum{}
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
func (in Input) drawAttempts(rng *rand.Rand, s stratum) replay {
	order := rng.Perm(len(s.runs))
	before, after := slices.Clone(s.runs[order[0]]), slices.Clone(s.runs[order[1]])
	for _, list := range [][]measured{before, after} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return replay{before: before[:in.Untuned], after: after[:min(len(after), in.Epochs)]}
}

// drawStretch takes a run as it went on, from a random epoch.
func (in Input) drawStretch(rng *rand.Rand, s stratum) replay {
	run := s.runs[rng.IntN(len(s.runs))]
	run = run[rng.IntN(len(run)-in.Untuned-fewestAfter+1):]
	return replay{before: run[:in.Untuned], after: run[in.Untuned:min(len(run), in.Untuned+in.Epochs)]}
}

// fromCurves takes the epochs of each run, from one change of the job to the next, in
// their order. The first epoch of a run is warm-up. Workloads whose epochs grow or shrink
// as they go on stand by themselves: that is a drift.
func (in Input) fromCurves(t records.Table) []null {
	var runs strata
	for _, rows := range records.Runs(t.Rows) {
		for _, stretch := range undisturbed(records.InOrder(rows)) {
			if len(stretch) >= in.Untuned+fewestAfter {
				runs.add(place(rows[0]), place(rows[0]), stretch)
			}
		}
	}
	const name = "epochs of one run in their order"
	steady := slices.DeleteFunc(slices.Clone(runs.list), stratum.drifts)
	drifting := slices.DeleteFunc(runs.list, func(s stratum) bool { return !s.drifts() })
	out := []null{
		in.job(t.File, name, tuning.Time, "", steady, 1, in.drawStretch),
		in.job(t.File, name, tuning.Time, limitDrift, drifting, 1, in.drawStretch),
	}
	return slices.DeleteFunc(out, func(n null) bool { return len(n.workloads) == 0 })
}

// drifts tells whether the last third of the runs' epochs usually takes longer or shorter
// than the first by more than what a verdict takes for no effect.
func (s stratum) drifts() bool {
	var trends []float64
	for _, run := range s.runs {
		third := max(len(run)/3, 1)
		trends = append(trends, math.Log(sum(run[len(run)-third:])/sum(run[:third])))
	}
	slices.Sort(trends)
	return math.Abs(trends[len(trends)/2]) > math.Log1p(mind.Margin)
}

func sum(epochs []measured) float64 {
	out := 0.0
	for _, m := range epochs {
		out += m.seconds
	}
	return out
}

// undisturbed are the stretches of a run in which nothing was changed.
func undisturbed(rows []records.Row) [][]measured {
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
