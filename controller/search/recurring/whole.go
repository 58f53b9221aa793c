package recurring

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

const (
	// leastGain is the smallest gain that is worth a word, in natural logarithms.
	leastGain = 0.03

	// effectSD is how much an untried point may differ from the best of its course.
	effectSD = 0.15

	// wholeAllowance is the share of all runs that may be lost: nothing stops a whole run.
	wholeAllowance = 0.1

	// dearer is what an untried point is taken to cost more at least.
	dearer = 0.05
)

// Whole are the returns of a job that runs as a whole under one point.
type Whole struct {
	Space  Space
	Goal   Goal
	Runs   []Run
	Failed []int  // points under which a run failed, once for each
	Barred []bool // by point: never to be run, nor called best; nil: none

	Unproven []bool // by point: may be run, and is not called best; nil: none
}

// Advice is what past runs say about the next one.
type Advice struct {
	Measured bool // the owner's point was; until then it is the one to run

	// Next is worth a run although nothing shows yet that it is better: Trying; or else it is
	// Best.
	Next   Standing
	Trying bool

	// Best was measured, runs of its course reached their end, it keeps the limits, and its
	// gain is clear of what runs differ by. The owner's where there is none.
	Best Standing

	Between float64 // standard deviation of the score between runs under one point

	Standings []Standing // of the measured points except the owner's, ascending
	Degrees   float64    // of freedom behind their errors
}

// Standing is what runs showed of a point, as logarithms against the owner's: of what is
// minimised, with its standard error, and of the seconds.
type Standing struct {
	Point, Runs        int
	Ratio, SE, Seconds float64
}

// Next returns what the next return should run under. A goal of least cores is found by breaking
// its limits, which costs a whole run: it stays with the owner's.
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
	w.judge(t, score)
	v := t.weighed
	out.Measured, out.Between, out.Degrees = true, math.Sqrt(score.between.Variance()), score.between.Degrees
	for p := range w.Space.Points {
		if st, ok := v.of[p]; ok && p != own {
			out.Standings = append(out.Standings, st)
		}
	}
	out.Best.Runs = v.of[own].Runs
	lead := t.leader()
	if lead.point < 0 {
		out.Next = out.Best
		return out, nil
	}
	beyond := Beyond(score.between.Degrees, len(out.Standings))
	for _, st := range out.Standings {
		if ratio, _ := t.expected(lead, st.Point); w.clear(t, st, beyond) && ratio < out.Best.Ratio {
			out.Best = st
			out.Best.Ratio = ratio
		}
	}
	p := t.Epoch(t.Course())
	next := Standing{Point: p, Runs: v.of[p].Runs, Seconds: v.of[p].Seconds}
	next.Ratio, next.SE = t.expected(lead, p)
	worth := next.Ratio <= -leastGain && next.Ratio < out.Best.Ratio
	if next.Runs == 0 { // by what tries lost so far
		worth = v.lost+max(math.Expm1(next.Ratio), dearer) <= wholeAllowance*float64(v.all+1)
	}
	out.Trying = worth && !t.cells[p].closed && p != own && p != out.Best.Point
	out.Next = out.Best
	if out.Trying {
		out.Next = next
	}
	return out, nil
}

func (w Whole) clear(t *Tuner, st Standing, beyond float64) bool {
	a := t.arms[t.of[st.Point]]
	return st.Ratio <= -leastGain && st.Ratio < -beyond*st.SE && !a.barred && !a.unknown && !t.cells[st.Point].closed &&
		(w.Unproven == nil || !w.Unproven[st.Point]) && t.choiceAt(st.Point, t.expectedEpochs(t.of[st.Point])).excess == 0
}

// verdicts is what whole runs say about the points of a tuner.
type verdicts struct {
	of    map[int]Standing // by point measured, the owner's included
	noise float64          // variance of the score between runs of one point
	all   int              // runs
	lost  float64          // what all runs cost more than the owner's, in those
}

// expected is what is believed of a point against the owner's: as measured, less what the other
// courses make doubtful.
func (t *Tuner) expected(l *belief, p int) (ratio, se float64) {
	if p == t.Own {
		return 0, 0
	}
	course := t.of[p]
	mean, variance := l.at(t.courses[course].at)
	measured, ok := t.weighed.of[p]
	at := slices.IndexFunc(l.known, func(s standing) bool { return s.course == course && s.point >= 0 })
	if !ok || at < 0 {
		return mean, math.Sqrt(variance + effectSD*effectSD)
	}
	return measured.Ratio + mean - l.known[at].score, math.Sqrt(variance)
}

func (w Whole) judge(t *Tuner, score evidence) {
	own := w.Space.Own
	v := &verdicts{of: map[int]Standing{}, noise: score.between.Variance()}
	t.weighed = v
	lengths := lengthsOf(w.Runs, t.of, own)
	runs := map[int]int{} // by point
	for _, r := range w.Runs {
		of := map[int]bool{} // courses
		for _, p := range r.Parts {
			if _, ok := score.mean[p.Point]; ok && p.Epochs > 0 {
				runs[p.Point]++
				of[t.of[p.Point]] = true
			}
		}
		v.all += min(len(of), 1)
		for c := range of {
			longer, _, known := lengths.longer(c)
			t.arms[c].unknown = !known
			t.Reached(t.courses[c].points[0], math.Exp(longer))
		}
	}
	seconds, _ := weigh(w.Runs, own, func(p Part) float64 { return math.Log(p.Cost.Seconds) })
	joules, _ := weigh(w.Runs, own, func(p Part) float64 { return math.Log(p.Cost.Joules) })
	powers := t.goal.Degree()
	if len(t.courses) > 1 {
		v.noise += powers * powers * lengths.variance()
	}
	for p := range w.Space.Points {
		t.cells[p].closed = w.Barred != nil && w.Barred[p] && p != own
		if runs[p] == 0 {
			continue
		}
		longer, doubt, _ := lengths.longer(t.of[p])
		v.of[p] = Standing{p, runs[p], score.mean[p] + powers*longer, math.Sqrt(score.variance[p] + powers*powers*doubt), seconds.mean[p] + longer}
		v.lost += float64(runs[p]) * math.Expm1(v.of[p].Ratio)
		// The score of tuning.Cost is that of its price; no other score asks for one.
		cost := tuning.Spent{Seconds: math.Exp(seconds.mean[p]), Joules: math.NaN(), Price: math.Exp(score.mean[p])}
		if m, ok := joules.mean[p]; ok {
			cost.Joules = math.Exp(m)
		}
		t.Measured(p, cost)
	}
	w.close(t)
}

// close takes out what is never to be run.
func (w Whole) close(t *Tuner) {
	own := t.of[w.Space.Own]
	for _, p := range w.Failed {
		if p == w.Space.Own {
			continue
		}
		t.Failed(p)
		t.cells[p].closed = true
		if c := t.of[p]; c != own {
			t.Missed(p)
			t.arms[c].barred = t.arms[c].barred || t.arms[c].reached == 0
		}
		t.weighed.all++
		t.weighed.lost += Beta
	}
	open := func(p int) bool { return !t.cells[p].closed }
	for c, course := range t.courses {
		if c != own && !slices.ContainsFunc(course.points, open) {
			t.arms[c].barred = true
		}
	}
	for p, of := range t.lines {
		for i, line := range of {
			t.lines[p][i] = slices.DeleteFunc(line, func(q int) bool { return q != p && !open(q) && !t.cells[q].known() })
		}
	}
}

// lengths are how many epochs the runs of a course took to their end, in logarithms.
type lengths struct {
	own int // the owner's course
	of  map[int][]float64
}

// How many epochs runs take is their course's, not that of the system knobs.
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

func (l lengths) variance() float64 {
	spread := Usual(priorSD, priorDegrees)
	for _, c := range slices.Sorted(maps.Keys(l.of)) {
		spread.Add(l.of[c])
	}
	return spread.Variance()
}

// longer is how much longer the runs of a course are than the owner's, with its variance.
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
