package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// returns lets runs of one piece happen. Only it knows what was recorded.
type returns struct {
	piece
	goal     recurring.Goal
	space    recurring.Space
	cells    []cell  // by point
	longest  float64 // epochs that a run takes at most
	absent   int     // settings that lack a number which the goal needs
	replaced bool    // the default asked for does not reach its end: the nearest that does
	rng      *rand.Rand
	luck     float64 // of the present run: which of the repeats it is
}

// cell is one point: its repeats, in the order of the table.
type cell struct {
	epoch   tuning.Spent // the mean over the repeats that ran; NaN: unknown
	repeats []run        // whose epochs are all like epoch where epochs are counted
	failed  bool         // no repeat ran at all
}

// cellOf works out what the repeats of one setting say together.
func cellOf(rows []evaluate.Row, counted bool) cell {
	all := tuning.Each(rows, func(r evaluate.Row) run {
		one, _ := measured(r, counted, 1)
		return one
	})
	ran := evaluate.Only(all, func(r run) bool { return !r.failed })
	c := cell{failed: len(ran) == 0, repeats: all}
	if c.failed {
		ran = all
	}
	c.epoch = tuning.Spent{
		Seconds: float64(evaluate.Mean(tuning.Each(ran, func(r run) float64 { return r.epoch.Seconds }))),
		Joules:  float64(evaluate.Mean(tuning.Each(ran, func(r run) float64 { return r.epoch.Joules }))),
	}
	for i := range all {
		one := &all[i].epoch
		if counted {
			*one = c.epoch
		}
		one.Seconds, one.Joules = firstOf(one.Seconds, c.epoch.Seconds), firstOf(one.Joules, c.epoch.Joules)
	}
	return c
}

func (c cell) reaches() bool { return slices.ContainsFunc(c.repeats, run.ends) }

func (w *returns) reliable(point int) bool {
	return !slices.ContainsFunc(w.cells[point].repeats, func(r run) bool { return !r.ends() })
}

// lacks names what a goal needs of a cost and is unknown; empty: all is known.
func lacks(g recurring.Goal, c tuning.Spent) string {
	switch {
	case !(c.Seconds > 0):
		return "seconds"
	case g.Attain == 0 && g.MaxJoules > 0 && !(c.Joules > 0), !g.Least() && !evaluate.Figure(g.Score(c, 1)).Known():
		return "joules"
	}
	return ""
}

// returnsOf gathers the rows of a piece by setting. Settings that lack a number which the
// goal needs are absent. Where nothing is left there are no cells.
func returnsOf(p piece, goal recurring.Goal, left *evaluate.LeftOut) *returns {
	w := &returns{piece: p, goal: goal}
	counted := p.table.Has("epochs")
	rows := usable(p.Group, left, func(r evaluate.Row) string {
		_, why := measured(r, counted, 1)
		if why == "" && goal.Least() && !(withCores(r.Knobs)[tuning.Cores].Float() > 0) {
			return "its setting names no cores or threads, which the objective counts"
		}
		return why
	})
	if len(rows) == 0 {
		if goal.Least() {
			left.Add(p.Group, nil, "no knob of cores or threads, which the objective counts")
		}
		return w
	}
	var points []tuning.Settings
	var cells []cell
	settings := evaluate.Split(rows, evaluate.Setting)
	for _, same := range settings {
		points, cells = append(points, withCores(same[0].Knobs)), append(cells, cellOf(same, counted))
	}
	order := names(p.knobs(points))
	may := evaluate.Only(evaluate.Indices(cells), func(i int) bool { return cells[i].reaches() && lacks(goal, cells[i].epoch) == "" })
	if len(may) == 0 {
		left.Add(p.Group, nil, "no setting reaches its end and has what the objective needs")
		return w
	}
	own := nearest(points, p.wanted, order, may)
	w.replaced = own != nearest(points, p.wanted, order, evaluate.Indices(points))
	var kept []int
	for i := range points {
		missing := lacks(goal, cells[i].epoch)
		if missing != "" && cells[i].reaches() {
			w.absent++
			left.Add(p.Group, settings[i], "no "+missing+", which the objective needs")
			continue
		}
		if missing != "" {
			cells[i].epoch = tuning.Spent{Seconds: math.NaN(), Joules: math.NaN()} // it costs what the owner's does
		}
		kept = append(kept, i)
	}
	w.cells, w.space = cells, recurring.Space{Points: points, Own: own}
	w.keep(kept)
	w.space.Knobs = p.knobs(w.space.Points)
	return w
}

// keep leaves out the other points. A run takes at most as many epochs as a target says, else
// as the longest that was recorded.
func (w *returns) keep(points []int) {
	all, cells := w.space.Points, w.cells
	w.space.Points = tuning.Each(points, func(p int) tuning.Settings { return all[p] })
	w.cells = tuning.Each(points, func(p int) cell { return cells[p] })
	w.space.Own = slices.Index(points, w.space.Own)
	w.longest = numberOf(w.target, "max_epochs")
	if math.IsNaN(w.longest) {
		all := slices.Concat(tuning.Each(w.cells, func(c cell) []run { return c.repeats })...)
		_, longest := evaluate.Range(tuning.Each(all, func(r run) float64 { return r.epochs }))
		w.longest = float64(max(longest, 1))
	}
}

// withCores lets threads count as cores where no knob is called that.
func withCores(s tuning.Settings) tuning.Settings {
	if v, ok := s[tuning.Threads]; ok && v.IsNumber() && !s[tuning.Cores].IsNumber() {
		return s.With(tuning.Cores, v)
	}
	return s
}

// knobs are those whose values differ, without those that an earlier one decides.
func (p piece) knobs(points []tuning.Settings) []recurring.Knob {
	var out []recurring.Knob
	for _, name := range p.table.Knobs() {
		varies := slices.ContainsFunc(points, func(s tuning.Settings) bool { return s[name] != points[0][name] })
		if varies && !slices.ContainsFunc(out, func(k recurring.Knob) bool { return propose.Tells(points, k.Name, name) > 0 }) {
			// A system knob changes what an epoch costs and not how many there are.
			system := tuning.IsSystem(unitless(name)) || unitless(name) == "frequency"
			out = append(out, recurring.Knob{Name: name, System: system || !p.table.Has("epochs")})
		}
	}
	slices.SortStableFunc(out, recurring.CoresFirst)
	return out
}

func names(knobs []recurring.Knob) []string {
	return tuning.Each(knobs, func(k recurring.Knob) string { return k.Name })
}

// unitless is the name of a knob whose recorded name carries its unit.
func unitless(name string) string {
	for _, unit := range []string{"_watts", "_gib", "_mhz"} {
		name = strings.TrimSuffix(name, unit)
	}
	return name
}

// only is the world of the points that differ from the owner's in one knob alone.
func (w *returns) only(knob string) *returns {
	sub, is := *w, func(k recurring.Knob) bool { return k.Name == knob }
	sub.keep(w.within(is))
	sub.space.Knobs = evaluate.Only(w.space.Knobs, is)
	return &sub
}

// within returns the points that differ from the owner's only in some knobs.
func (w *returns) within(may func(recurring.Knob) bool) []int {
	own := w.space.Points[w.space.Own]
	return slices.DeleteFunc(evaluate.Indices(w.cells), func(p int) bool {
		return slices.ContainsFunc(w.space.Knobs, func(k recurring.Knob) bool { return !may(k) && w.space.Points[p][k.Name] != own[k.Name] })
	})
}

// seed draws the luck of one replay; policies that are compared have the same.
func (w *returns) seed(n int) {
	w.rng = rand.New(rand.NewPCG(hash(w.title()), uint64(n))) //nolint:gosec // an index
}

// begin draws which of the repeats the next run is.
func (w *returns) begin() { w.luck = w.rng.Float64() }

// drawn is which of a point's repeats the present run is.
func (w *returns) drawn(point int) run {
	repeats := w.cells[point].repeats
	return repeats[min(int(w.luck*float64(len(repeats))), len(repeats)-1)]
}

// epochs is how many a run under one point takes by the luck of the present run.
func (w *returns) epochs(point int) float64 { return w.drawn(point).epochs }

// cost is that of an epoch of the present run: what is paid is what is shown.
func (w *returns) cost(point int) tuning.Spent {
	if w.cells[point].epoch.Seconds > 0 {
		return w.drawn(point).epoch
	}
	return w.usual(point)
}

// usual is the mean cost of an epoch. A point that did not run costs what the owner's does.
func (w *returns) usual(point int) tuning.Spent {
	if c := w.cells[point].epoch; c.Seconds > 0 {
		return c
	}
	return w.cells[w.space.Own].epoch
}

func (w *returns) cores(point int) float64 {
	if v, ok := w.space.Points[point][tuning.Cores]; ok && v.IsNumber() {
		return v.Float()
	}
	return 1
}

// expected is the mean cost of a run under one point; one that never reaches its end costs
// as long as it may take.
func (w *returns) expected(point int) tuning.Spent {
	sum := 0.0
	for _, r := range w.cells[point].repeats {
		if !r.ends() {
			r.epochs = w.longest
		}
		sum += r.epochs / float64(len(w.cells[point].repeats))
	}
	return w.usual(point).Times(sum)
}

func (w *returns) constant() bool {
	first := fmt.Sprint(w.expected(0)) // NaN is like NaN
	return !slices.ContainsFunc(evaluate.Indices(w.cells), func(p int) bool { return !w.reliable(p) || fmt.Sprint(w.expected(p)) != first })
}

func (w *returns) score(c tuning.Spent, point int) float64 { return w.goal.Score(c, w.cores(point)) }

// share compares the expected cost of one point with that of the owner's.
func (w *returns) share(point int) float64 {
	own := w.space.Own
	if w.goal.Attain > 0 {
		return w.cores(point) / w.cores(own)
	}
	return math.Exp(w.score(w.expected(point), point) - w.score(w.expected(own), own))
}

// keeps reports whether a point keeps the limits in expectation.
func (w *returns) keeps(point int) bool {
	if w.goal.Attain > 0 {
		_, fastest := evaluate.Least(evaluate.Only(evaluate.Indices(w.cells), w.reliable), func(p int) float64 { return w.expected(p).Seconds })
		return w.reliable(point) && w.expected(point).Seconds*w.goal.Attain <= fastest
	}
	return point == w.space.Own || w.reliable(point) && w.goal.Excess(w.expected(point), w.expected(w.space.Own)) <= tolerance
}

// oracle is the best point in expectation that keeps the limits, among the given ones; the
// owner's where none does.
func (w *returns) oracle(points []int) int {
	best, least := evaluate.Least(evaluate.Only(points, func(p int) bool { return w.keeps(p) && w.reliable(p) }), w.share)
	if math.IsInf(least, 1) {
		return w.space.Own
	}
	return best
}

func (w *returns) chosen(p int) string {
	return w.space.Points[p].Only(func(name string) bool { return slices.Contains(names(w.space.Knobs), name) }).Key()
}

// step is the place of a point's core count among those of the table.
func (w *returns) step(p int) float64 {
	counts := slices.Sorted(slices.Values(tuning.Each(evaluate.Indices(w.cells), w.cores)))
	return float64(slices.Index(slices.Compact(counts), w.cores(p)))
}
