package recur

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// verdicts is what whole runs say of the points of a tuner.
type verdicts struct {
	of      map[int]Standing // by point measured, the owner's included
	between float64          // variance of the score between runs of one point
	longer  float64          // that which comes from how many epochs they take, between runs of one course
	bar     []bool           // by course: not to be run
	unknown []bool           // by course: the end of a run of it is unknown
	clear   []int            // points that are better beyond doubt, ascending
	all     int              // runs
	lost    float64          // what all runs cost more than the owner's, in those
}

func (v *verdicts) barred(course int) bool { return v != nil && v.bar[course] }
func (v *verdicts) unfit(course int) bool {
	return v != nil && (v.bar[course] || v.unknown[course])
}

const (
	// effectSD is by how much an untried point of a course may differ from the best of it.
	effectSD = 0.15

	// wholeAllowance is the share of all runs that may be lost before an untried point is
	// run: nothing stops a whole run.
	wholeAllowance = 0.1

	// dearer is by how much an untried point is taken to cost more at least.
	dearer = 0.05
)

// expected is what is believed of a point, as a logarithm against the owner's, with its
// standard error: as it was measured, but for what the other courses make doubtful of its
// course.
func (t *Tuner) expected(l lead, p int) (ratio, se float64) {
	if p == t.Own {
		return 0, 0
	}
	course := t.of[p]
	mean, variance := l.belief.at(t.courses[course].at)
	measured, ok := t.weighed.of[p]
	at := slices.IndexFunc(l.known, func(s standing) bool { return s.course == course && s.point >= 0 })
	if !ok || at < 0 {
		return mean, math.Sqrt(variance + effectSD*effectSD)
	}
	return measured.Ratio + mean - l.known[at].score, math.Sqrt(variance)
}

func (t *Tuner) isClosed(p int) bool { return t.closed != nil && t.closed[p] }

// leaveOut takes the points that are never to be run, and of which nothing is known, out
// of the lines that are searched.
func (t *Tuner) leaveOut() {
	for p, of := range t.lines {
		for i, line := range of {
			t.lines[p][i] = slices.DeleteFunc(line, func(q int) bool { return q != p && t.closed[q] && !t.cells[q].known() })
		}
	}
}

// affordable reports whether an untried point may be run, by what tries lost so far.
func (t *Tuner) affordable(ratio float64) bool {
	return t.weighed.lost+max(math.Expm1(ratio), dearer) <= wholeAllowance*float64(t.weighed.all+1)
}

// judge tells the tuner what the runs say.
func (w Whole) judge(t *Tuner, score evidence) *verdicts {
	n := len(t.courses)
	v := &verdicts{of: map[int]Standing{}, between: score.between.Variance(), bar: make([]bool, n), unknown: make([]bool, n)}
	t.weighed, t.led, t.closed = v, nil, make([]bool, len(w.Space.Points))
	for p := range t.closed {
		t.closed[p] = w.Barred != nil && w.Barred[p] && p != w.Space.Own
	}
	lengths := lengthsOf(w.Runs, t.of, w.Space.Own)
	w.measure(t, v, score, lengths, w.count(t, v, score, lengths))
	w.fail(t, v)
	for c := range t.courses { // one of which every point is closed
		v.bar[c] = v.bar[c] || c != t.of[w.Space.Own] && !slices.ContainsFunc(t.courses[c].points, func(p int) bool { return !t.closed[p] })
	}
	t.leaveOut()
	w.distinguish(t, v, score.between.Degrees)
	return v
}

// count tells how often each point and each course was run.
func (w Whole) count(t *Tuner, v *verdicts, score evidence, l lengths) map[int]int {
	runs := map[int]int{}
	for _, r := range w.Runs {
		of := map[int]bool{}
		for _, p := range r.Parts {
			if _, ok := score.mean[p.Point]; ok && p.Epochs > 0 {
				runs[p.Point]++
				of[t.of[p.Point]] = true
			}
		}
		v.all += min(len(of), 1)
		for c := range of {
			longer, _, known := l.longer(c)
			v.unknown[c] = !known
			t.Reached(t.courses[c].points[0], math.Exp(longer))
		}
	}
	return runs
}

// measure tells what an epoch cost under each point, against the owner's.
func (w Whole) measure(t *Tuner, v *verdicts, score evidence, l lengths, runs map[int]int) {
	seconds, _ := weigh(w.Runs, w.Space.Own, func(p Part) float64 { return math.Log(p.Cost.Seconds) })
	joules, hasJoules := weigh(w.Runs, w.Space.Own, func(p Part) float64 { return math.Log(p.Cost.Joules) })
	powers := t.goal.Degree()
	if len(t.courses) > 1 {
		v.longer = powers * powers * l.variance()
	}
	for p := range w.Space.Points {
		if runs[p] == 0 {
			continue
		}
		longer, doubt, _ := l.longer(t.of[p])
		st := Standing{p, runs[p], score.mean[p] + powers*longer, math.Sqrt(score.variance[p] + powers*powers*doubt), seconds.mean[p] + longer}
		v.of[p] = st
		v.lost += float64(st.Runs) * math.Expm1(st.Ratio)
		// The score of tuning.Cost is that of its price; no other score asks for one.
		cost := tuning.Spent{Seconds: math.Exp(seconds.mean[p]), Joules: math.NaN(), Price: math.Exp(score.mean[p])}
		if m, ok := joules.mean[p]; ok && hasJoules {
			cost.Joules = math.Exp(m)
		}
		t.Measured(p, cost)
	}
}

// fail closes the points under which runs failed, and the courses of which none ever
// reached its end.
func (w Whole) fail(t *Tuner, v *verdicts) {
	own := w.Space.Own
	for _, p := range w.Failed {
		if p == own {
			continue
		}
		t.Failed(p)
		t.closed[p] = true
		if c := t.of[p]; c != t.of[own] {
			t.Missed(p)
			v.bar[c] = v.bar[c] || t.arms[c].reached == 0
		}
		v.all++
		v.lost += Beta
	}
}

// distinguish finds what is better than the owner's point beyond doubt.
func (w Whole) distinguish(t *Tuner, v *verdicts, degrees float64) {
	tried := len(v.of) - 1
	if tried < 1 {
		return
	}
	beyond := Beyond(degrees, tried)
	for p := range w.Space.Points {
		st, measured := v.of[p]
		if !measured || p == w.Space.Own || w.Unproven != nil && w.Unproven[p] {
			continue
		}
		c := t.of[p]
		if st.Ratio <= -leastGain && st.Ratio < -beyond*st.SE && !v.unfit(c) && !t.closed[p] && t.choiceAt(p, t.expectedEpochs(c)).excess == 0 {
			v.clear = append(v.clear, p)
		}
	}
}
