package replay

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// recorded is what jobs of one piece cost and report.
type recorded struct {
	piece
	own     tuning.Settings // of the knobs
	knobs   []tuning.Knob   // that may move
	cells   map[string][]tuning.Spent
	lengths []int     // epochs that runs under the owner's settings took; none: unknown
	noise   []float64 // of the epochs of recorded curves, over the mean of their run
	busy    float64   // cores at work under the owner's settings: cpu_seconds over seconds; 0: unknown
	stories [][]Epoch // what runs under the owner's settings reported, by epoch
}

// movable reports whether a knob changes what an epoch costs and not what it does.
func movable(name string) bool {
	return slices.Contains([]string{tuning.Cores, tuning.Threads, tuning.PowerLimit, "frequency", "nodes", "replicas", "placement"}, unitless(name))
}

// minute is how long an epoch takes under the owner's settings where a table has only
// rates: as many samples as they do in a minute.
const minute = 60.0

// recordedOf makes cells of the rows that differ from the owner's settings only in what may
// move. Runs that failed are none: the controller is not sent to settings whose cost is
// unknown.
func (in PlanInput) recordedOf(t evaluate.Table, p piece) recorded {
	out := recorded{piece: p, cells: map[string][]tuning.Spent{}}
	all := tuning.Each(p.Rows, func(r evaluate.Row) tuning.Settings { return r.Knobs })
	own := all[nearest(all, p.wanted, t.Knobs(), evaluate.Indices(all))]
	free := slices.DeleteFunc(t.Knobs(), func(name string) bool {
		if len(in.Knobs) > 0 {
			return !slices.Contains(in.Knobs, name)
		}
		return !movable(name)
	})
	rated, _ := tuning.First(p.Rows, func(r evaluate.Row) bool {
		_, ok := r.Float("samples_per_second")
		return ok && r.Knobs.Equal(own)
	})
	rate, _ := rated.Float("samples_per_second")
	var rows []evaluate.Row
	var costs []tuning.Spent
	var points []tuning.Settings
	for _, r := range p.Rows {
		one, why := measured(r, t.Has("epochs"), minute*rate)
		fixed := slices.ContainsFunc(own.Diff(r.Knobs), func(name string) bool { return !slices.Contains(free, name) })
		if why == "" && !fixed && !one.failed && one.epoch.Seconds > 0 {
			rows, costs, points = append(rows, r), append(costs, one.epoch), append(points, r.Knobs)
		}
	}
	free = independent(free, points)
	only := func(s tuning.Settings) tuning.Settings {
		return s.Only(func(name string) bool { return slices.Contains(free, name) })
	}
	out.own = only(own)
	var cells []tuning.Settings
	for i, r := range rows {
		s := only(r.Knobs)
		if out.cells[s.Key()] == nil {
			cells = append(cells, s)
		}
		out.cells[s.Key()] = append(out.cells[s.Key()], costs[i])
		if !s.Equal(out.own) {
			continue
		}
		if n, ok := r.Float("epochs"); ok && n >= 1 {
			out.lengths = append(out.lengths, int(math.Round(n)))
		}
		if cpu, ok := r.Float("cpu_seconds"); ok {
			if seconds, ok := r.Float("seconds"); ok && seconds > 0 {
				out.busy = cpu / seconds
			}
		}
	}
	out.knobs = complete(free, out.own, cells)
	for _, c := range in.Curves {
		out.learn(own, c)
	}
	return out
}

// independent are the knobs that vary, without those that another one decides.
func independent(names []string, points []tuning.Settings) []string {
	var out []string
	for i, name := range names {
		varies := slices.ContainsFunc(points, func(s tuning.Settings) bool { return s[name] != points[0][name] })
		decided := false
		for j, other := range names {
			decided = decided || i != j && decides(points, other, name) && (j < i || !decides(points, name, other))
		}
		if varies && !decided {
			out = append(out, name)
		}
	}
	return out
}

// complete makes knobs of settings, every combination of whose values was recorded: the
// value that misses the most is left out until none is missed. The owner's stay.
func complete(names []string, own tuning.Settings, settings []tuning.Settings) []tuning.Knob {
	for {
		var out []tuning.Knob
		product := 1
		for _, name := range names {
			k := tuning.Knob{Name: name, Quality: tuning.QualitySame}
			if name != tuning.Cores {
				k.Env = "KNOB_" + strings.ToUpper(name)
			}
			k.Values = tuning.Each(settings, func(s tuning.Settings) tuning.Value { return s[name] })
			slices.SortFunc(k.Values, func(a, b tuning.Value) int {
				return cmp.Or(cmp.Compare(a.Float(), b.Float()), cmp.Compare(a.String(), b.String()))
			})
			k.Values = slices.Compact(k.Values)
			product *= len(k.Values)
			out = append(out, k)
		}
		if product == len(settings) {
			return slices.DeleteFunc(out, func(k tuning.Knob) bool { return len(k.Values) < 2 })
		}
		worst, least := "", math.Inf(1)
		var drop tuning.Value
		for _, k := range out {
			for _, v := range k.Values {
				n := len(evaluate.Only(settings, func(s tuning.Settings) bool { return s[k.Name] == v }))
				if share := float64(n*len(k.Values)) / float64(product); v != own[k.Name] && share < least {
					worst, least, drop = k.Name, share, v
				}
			}
		}
		if worst == "" { // not even the owner's settings
			return nil
		}
		settings = slices.DeleteFunc(slices.Clone(settings), func(s tuning.Settings) bool { return s[worst] == drop })
	}
}

// learn takes from curves how epochs vary, and what runs under the owner's settings report.
func (t *recorded) learn(own tuning.Settings, curves evaluate.Table) {
	for _, run := range evaluate.Runs(curves.Rows) {
		first := run[0]
		input := t.Input != "" && first.Input() != "" && first.Input() != t.Input
		if first.Workload != t.Workload || input || first.Machine != "" && first.Machine != t.Machine {
			continue
		}
		var lengths []float64
		sum := 0.0
		for i := 1; i < len(run); i++ { // the first epoch warms up
			from, ok := run[i-1].Float("seconds")
			to, too := run[i].Float("seconds")
			if ok && too && to > from {
				lengths, sum = append(lengths, to-from), sum+to-from
			}
		}
		for _, v := range lengths {
			t.noise = append(t.noise, v*float64(len(lengths))/sum)
		}
		if distance(first.Knobs, own) > 0 {
			continue
		}
		t.stories = append(t.stories, tuning.Each(run, func(r evaluate.Row) (out Epoch) {
			if v, ok := r.Float("loss"); ok {
				out.Loss = &v
			}
			if v, ok := r.Float("quality"); ok {
				out.Quality = &v
			}
			return out
		}))
	}
}
