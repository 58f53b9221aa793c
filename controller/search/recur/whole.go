package recur

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

const (
	// leastGain is the smallest gain that is worth a word, in natural logarithms: below it
	// a setting is neither run again to make sure nor called best.
	leastGain = 0.03

	// levelOfClear is the share of the error that all settings tried are allowed together
	// before one of them is called best (Bonferroni).
	levelOfClear = 0.05

	// lostCause is by how many of its standard errors a point must look worse than the
	// owner's to be left for good.
	lostCause = 1
)

// Whole are the returns of a job that runs as a whole under one point, since it cannot be
// moved, or is to be compared from its beginning.
type Whole struct {
	Space  Space
	Goal   Goal
	Runs   []Run
	Failed []int  // points under which a run failed, once for each
	Barred []bool // by point: never to be run, nor called best; nil: none
}

// Advice is what past runs say about the next one.
type Advice struct {
	Measured bool // the owner's point was; until then it is the one to run

	// Point is worth a run although nothing shows yet that it is better: Trying; or else
	// it is Best.
	Point  int
	Trying bool
	Runs   int // that were measured under Point
	// Ratio and SE are what is expected of Point, as a logarithm against the owner's.
	Ratio, SE float64

	// Best is the point that is known to be better than the owner's: it was measured, runs
	// of its course reached their end, it keeps the limits, and its gain is clear of what
	// runs differ by. The owner's where there is none.
	Best              int
	BestRuns          int
	BestRatio, BestSE float64
	BestSeconds       float64 // logarithm of its seconds against the owner's

	Between float64 // standard deviation of the score between runs under one point
}

// Next looks at all that was measured and says what the next return should run under. For
// a goal of least cores it is the owner's: such a goal is found by breaking its limits,
// which costs an epoch within a run, and a whole run here.
func (w Whole) Next() (Advice, error) {
	systemless := w.Space
	systemless.Knobs = slices.Clone(w.Space.Knobs)
	for i := range systemless.Knobs {
		systemless.Knobs[i].System = false
	}
	t, err := New(systemless, w.Goal, 0)
	if err != nil {
		return Advice{}, err
	}
	own := w.Space.Own
	out := Advice{Point: own, Best: own}
	if w.Goal.Least() {
		return out, nil
	}
	score, ok := weigh(w.Runs, own, func(p Part) float64 { return w.Goal.Score(p.Cost, 1) })
	if !ok {
		return out, nil
	}
	out.Measured = true
	out.Between = math.Sqrt(score.between)
	v := w.judge(t, score)
	out.Runs = v.runs[own]

	lead := t.leader()
	if lead.point < 0 || lead.belief == nil {
		return out, nil
	}
	expected := func(p int) (ratio, se float64) {
		m, s := lead.belief.at(t.courses[t.of[p]].at)
		o, _ := lead.belief.at(t.courses[t.of[own]].at)
		return m - o, math.Sqrt(s)
	}
	for _, p := range v.clear {
		if ratio, _ := expected(p); ratio < out.BestRatio {
			out.Best, out.BestRatio, out.BestRuns = p, ratio, v.runs[p]
			out.BestSE, out.BestSeconds = math.Sqrt(v.variance[t.of[p]]), v.seconds[p]
		}
	}
	out.Point, out.Runs, out.Ratio, out.SE = out.Best, v.runs[out.Best], out.BestRatio, out.BestSE
	p := t.Course()
	ratio, se := expected(p)
	again := v.runs[p] > 0
	if p == own || p == out.Best || again && (ratio > -leastGain || ratio >= out.BestRatio) {
		return out, nil
	}
	out.Point, out.Trying, out.Runs, out.Ratio, out.SE = p, true, v.runs[p], ratio, se
	return out, nil
}

// verdicts is what whole runs say of the courses of a tuner, which have one point each.
type verdicts struct {
	between  float64   // variance of the score between runs
	variance []float64 // of the score against the owner's, by course
	bar      []bool    // by course: not to be run
	unknown  []bool    // by course: nobody saw the end of a run of it
	runs     map[int]int
	ratio    map[int]float64 // of the score, by point measured
	seconds  map[int]float64 // their logarithm against the owner's
	clear    []int           // points that are better beyond doubt, ascending
}

func (v *verdicts) barred(course int) bool { return v != nil && v.bar[course] }
func (v *verdicts) unfit(course int) bool {
	return v != nil && (v.bar[course] || v.unknown[course])
}

// judge tells the tuner what the runs say.
func (w Whole) judge(t *Tuner, score evidence) *verdicts {
	n := len(t.courses)
	v := &verdicts{
		between: score.between, variance: make([]float64, n), bar: make([]bool, n), unknown: make([]bool, n),
		runs: map[int]int{}, ratio: map[int]float64{}, seconds: map[int]float64{},
	}
	t.weighed, t.led = v, nil
	own := w.Space.Own
	seconds, _ := weigh(w.Runs, own, func(p Part) float64 { return math.Log(p.Cost.Seconds) })
	joules, hasJoules := weigh(w.Runs, own, func(p Part) float64 { return math.Log(p.Cost.Joules) })
	wj, ws := t.weights()
	course := w.Space.courses()
	lengths := lengthsOf(w.Runs, course, own)
	for _, r := range w.Runs {
		for _, p := range r.Parts {
			if _, ok := score.mean[p.Point]; ok && p.Epochs > 0 {
				v.runs[p.Point]++
			}
		}
	}
	for p := range w.Space.Points {
		c := t.of[p]
		v.bar[c] = w.Barred != nil && w.Barred[p] && p != own
		if v.runs[p] == 0 {
			continue
		}
		longer, doubt, known := lengths.of(course[p])
		v.unknown[c] = !known
		v.seconds[p] = seconds.mean[p] + longer
		cost := Cost{Seconds: math.Exp(v.seconds[p]), Joules: math.NaN()}
		if m, ok := joules.mean[p]; ok && hasJoules {
			cost.Joules = math.Exp(m + longer)
		}
		v.variance[c] = score.variance[p] + (wj+ws)*(wj+ws)*doubt
		t.Measured(p, cost)
		for range v.runs[p] {
			t.Reached(p, 1)
		}
		v.ratio[p] = score.mean[p] + (wj+ws)*longer
	}
	for _, p := range w.Failed {
		if p != own {
			v.bar[t.of[p]] = true
			t.Failed(p)
			t.Missed(p)
		}
	}
	w.distinguish(t, v, score.degrees)
	return v
}

// distinguish finds what is better than the owner's point beyond doubt, and leaves for
// good what looks worse.
func (w Whole) distinguish(t *Tuner, v *verdicts, degrees float64) {
	tried := len(v.ratio) - 1
	if tried < 1 {
		return
	}
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile(1 - levelOfClear/float64(tried))
	for p := range w.Space.Points {
		ratio, measured := v.ratio[p]
		if !measured || p == w.Space.Own {
			continue
		}
		c := t.of[p]
		se := math.Sqrt(v.variance[c])
		switch {
		case ratio > lostCause*se:
			v.bar[c] = true
		case ratio <= -leastGain && ratio < -quantile*se && !v.unfit(c) && t.choiceAt(p, 1).excess == 0:
			v.clear = append(v.clear, p)
		}
	}
}

// courses numbers the course of each point: what it has besides the system knobs.
func (s Space) courses() []int {
	out, byKey := make([]int, len(s.Points)), map[string]int{}
	for i, p := range s.Points {
		key := p.Only(func(name string) bool {
			return slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == name && !k.System })
		}).Key()
		if _, ok := byKey[key]; !ok {
			byKey[key] = len(byKey)
		}
		out[i] = byKey[key]
	}
	return out
}

// lengths is how many epochs the runs of a course take to their end, in logarithms.
type lengths struct {
	own    int // the owner's course
	n      map[int]float64
	mean   map[int]float64
	spread float64
}

// lengthsOf looks at the runs that reached their end under one course throughout. How
// many epochs they take is their course's, not that of the system knobs.
func lengthsOf(runs []Run, course []int, own int) lengths {
	out := lengths{own: course[own], n: map[int]float64{}, mean: map[int]float64{}}
	squares, degrees := priorDegrees*priorSD*priorSD, float64(priorDegrees)
	for _, r := range runs {
		if !(r.Epochs > 0) || len(r.Parts) == 0 {
			continue
		}
		c := course[r.Parts[0].Point]
		if slices.ContainsFunc(r.Parts, func(p Part) bool { return course[p.Point] != c }) {
			continue
		}
		out.n[c]++
		d := math.Log(r.Epochs) - out.mean[c]
		out.mean[c] += d / out.n[c]
		squares += d * (math.Log(r.Epochs) - out.mean[c])
		if out.n[c] > 1 {
			degrees++
		}
	}
	out.spread = squares / degrees
	return out
}

// of is by how much the runs of a course are longer than the owner's, with its variance.
// Not known: no run of it reached its end, or none of the owner's did.
func (l lengths) of(course int) (longer, variance float64, known bool) {
	if course == l.own {
		return 0, 0, true
	}
	if l.n[course] == 0 || l.n[l.own] == 0 {
		return 0, 0, false
	}
	return l.mean[course] - l.mean[l.own], l.spread * (1/l.n[course] + 1/l.n[l.own]), true
}

// GoalOf is what a policy asks for.
func GoalOf(p tuning.Policy) Goal {
	return Goal{Objective: p.Objective, Weight: p.Weight, MaxSlowdown: p.MaxSlowdown}
}
