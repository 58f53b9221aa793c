package recur

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// leastGain is the smallest gain that is worth a word, in natural logarithms: below it
// a setting is neither run again to make sure nor called best.
const leastGain = 0.03

// Whole are the returns of a job that runs as a whole under one point, since it cannot be
// moved, or is to be compared from its beginning.
type Whole struct {
	Space  Space
	Goal   Goal
	Runs   []Run
	Failed []int  // points under which a run failed, once for each
	Barred []bool // by point: never to be run, nor called best; nil: none

	// Unproven are the points of which it is not known that what they lead to is good enough.
	// They may be run, and are not called best; nil: none.
	Unproven []bool
}

// Advice is what past runs say about the next one.
type Advice struct {
	Measured bool // the owner's point was; until then it is the one to run

	// Next is worth a run although nothing shows yet that it is better: Trying; or else it is
	// Best.
	Next   Standing
	Trying bool

	// Best is what is expected of the point that is known to be better than the owner's: it was
	// measured, runs of its course reached their end, it keeps the limits, and its gain is
	// clear of what runs differ by. The owner's where there is none.
	Best Standing

	Between float64 // standard deviation of the score between runs under one point

	Standings []Standing // of the points that were measured, but for the owner's, ascending
	Degrees   float64    // of freedom behind their errors
}

// Standing is what runs showed of a point, as logarithms against the owner's: of what is
// minimised, with its standard error, and of the seconds.
type Standing struct {
	Point, Runs        int
	Ratio, SE, Seconds float64
}

// Next looks at all that was measured and says what the next return should run under. For
// a goal of least cores it is the owner's: such a goal is found by breaking its limits,
// which costs an epoch within a run, and a whole run here.
func (w Whole) Next() (Advice, error) {
	t, err := New(w.Space, w.Goal, 0)
	if err != nil {
		return Advice{}, err
	}
	own := w.Space.Own
	out := Advice{Next: Standing{Point: own}, Best: Standing{Point: own}}
	if w.Goal.Least() {
		return out, nil
	}
	score, ok := weigh(w.Runs, own, func(p Part) float64 { return w.Goal.Score(p.Cost, 1) })
	if !ok {
		return out, nil
	}
	v := w.judge(t, score)
	out.Measured, out.Between, out.Degrees = true, math.Sqrt(score.between.Variance()), score.between.Degrees
	for p := range w.Space.Points {
		if st, ok := v.of[p]; ok && p != own {
			out.Standings = append(out.Standings, st)
		}
	}
	out.Best.Runs = v.of[own].Runs
	out.Next = out.Best
	lead := t.leader()
	if lead.point < 0 || lead.belief == nil {
		return out, nil
	}
	for _, p := range v.clear {
		if ratio, _ := t.expected(lead, p); ratio < out.Best.Ratio {
			out.Best = v.of[p]
			out.Best.Ratio = ratio
		}
	}
	p := t.Epoch(t.Course())
	next := Standing{Point: p, Runs: v.of[p].Runs, Seconds: v.of[p].Seconds}
	next.Ratio, next.SE = t.expected(lead, p)
	again := next.Runs > 0
	switch {
	case t.closed[p], p == own, p == out.Best.Point:
	case again && (next.Ratio > -leastGain || next.Ratio >= out.Best.Ratio):
	case !again && !t.affordable(next.Ratio):
	default:
		out.Next, out.Trying = next, true
		return out, nil
	}
	out.Next = out.Best
	return out, nil
}

// lengths are how many epochs the runs of a course took to their end, in logarithms.
type lengths struct {
	own int // the owner's course
	of  map[int][]float64
}

// lengthsOf looks at the runs that reached their end under one course throughout. How
// many epochs they take is their course's, not that of the system knobs.
func lengthsOf(runs []Run, course []int, own int) lengths {
	out := lengths{course[own], map[int][]float64{}}
	for _, r := range runs {
		if !(r.Epochs > 0) || len(r.Parts) == 0 {
			continue
		}
		c := course[r.Parts[0].Point]
		if !slices.ContainsFunc(r.Parts, func(p Part) bool { return course[p.Point] != c }) {
			out.of[c] = append(out.of[c], math.Log(r.Epochs))
		}
	}
	return out
}

// variance is that between runs of one course.
func (l lengths) variance() float64 {
	spread := Usual(priorSD, priorDegrees)
	for _, c := range slices.Sorted(maps.Keys(l.of)) {
		spread.Add(l.of[c])
	}
	return spread.Variance()
}

// longer is by how much the runs of a course are longer than the owner's, with its variance.
// Not known: no run of it reached its end, or none of the owner's did.
func (l lengths) longer(course int) (longer, variance float64, known bool) {
	its, own := l.of[course], l.of[l.own]
	if course == l.own {
		return 0, 0, true
	}
	if len(its) == 0 || len(own) == 0 {
		return 0, 0, false
	}
	return stat.Mean(its, nil) - stat.Mean(own, nil), l.variance() * (1/float64(len(its)) + 1/float64(len(own))), true
}

// GoalOf is what a policy asks for.
func GoalOf(p tuning.Policy) Goal {
	return Goal{Measure: p.Measure(), MaxSlowdown: p.MaxSlowdown}
}
