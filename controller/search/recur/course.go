package recur

import (
	"math"

	"pitchpipe/controller/search/propose"
)

// What is taken to be usual before anything was measured. The spread of ln(epochs)
// between runs of one course counts as much as priorDegrees runs.
const (
	priorSD      = 0.1
	priorDegrees = 4

	// few are the runs that are expected still to come where none was seen.
	few = 4

	// severity is how much a broken limit counts between courses: one percent too slow
	// weighs like so many percent of cost. It steers the search; what breaks a limit is
	// never best.
	severity = 3

	// stride is how far an untried course may lie from one that reached its end, in
	// octaves, where there is a nearer one: the cost of what is far is anybody's guess.
	stride = 1
)

// spread is the variance of ln(epochs) between runs of one course; of the score of whole
// runs where those were weighed.
func (t *Tuner) spread() float64 {
	if t.weighed != nil {
		return t.weighed.between + t.weighed.longer
	}
	out := Usual(priorSD, priorDegrees)
	for _, a := range t.arms {
		out.Add(a.logs)
	}
	return out.Variance()
}

// standing is what the runs of a course say.
type standing struct {
	choice   // its best point, with failures and broken limits counted in
	course   int
	variance float64 // of the score
}

// standings are those of the courses that were run.
func (t *Tuner) standings() []standing {
	var out []standing
	noise := t.spread()
	powers := t.goal.Degree()
	least := math.Inf(1)
	for c, a := range t.arms {
		if a.reached == 0 {
			continue
		}
		p, ok := t.pick(c, a.mean())
		if !ok {
			continue
		}
		p.score += severity * p.excess
		if math.IsInf(p.score, 1) {
			continue
		}
		least = min(least, p.score)
		variance := powers * powers * noise / float64(a.reached)
		if t.weighed != nil {
			se := t.weighed.of[p.point].SE
			variance = se * se
		}
		out = append(out, standing{p, c, variance})
	}
	// A run that failed cost Beta times the best, and the best once more.
	loss := least + t.octave()*math.Log(Beta+1)/math.Log(Beta)
	for i, s := range out {
		if a := t.arms[s.course]; a.failed > 0 {
			q := float64(a.failed) / float64(a.runs())
			out[i].score += q * (loss - s.score)
		}
	}
	for c, a := range t.arms {
		if a.reached == 0 && a.failed > 0 {
			out = append(out, standing{choice{-1, loss, 0}, c, noise})
		}
	}
	return out
}

// best is the best point of the courses that reached their end, its score that of what
// is believed of its course: one lucky run does not make a course the best.
func (t *Tuner) best() (choice, bool) {
	l := t.leader()
	return l.choice, l.point >= 0
}

// lead is the standing of the best course, and what is believed of all; the point is
// below 0 where none reached its end.
type lead struct {
	standing
	belief *belief
	known  []standing
}

func (t *Tuner) leader() lead {
	if t.led == nil {
		l := t.findLeader()
		t.led = &l
	}
	return *t.led
}

func (t *Tuner) findLeader() lead {
	best := lead{standing: standing{choice: none()}}
	known := t.standings()
	if len(known) == 0 {
		return best
	}
	level := known[0].score
	if t.weighed != nil {
		level = 0 // the owner's, whose cost is 1
	}
	best.belief, best.known = newBelief(t.courses, known, level), known
	for _, s := range known {
		if s.point < 0 || t.weighed.unfit(s.course) {
			continue
		}
		s.score, _ = best.belief.at(t.courses[s.course].at)
		if best.point < 0 || s.before(best.choice) {
			best.standing = s
		}
	}
	return best
}

// Course is a point of the course that the next run takes.
func (t *Tuner) Course() int {
	own := t.of[t.Own]
	if t.arms[own].reached == 0 || t.goal.Least() || len(t.courses) == 1 {
		return t.Own
	}
	best := t.leader()
	if best.point < 0 {
		return t.Own
	}
	if t.goal.Limited() && float64(t.arms[own].reached) < 1+math.Log2(float64(1+t.runs)) {
		return t.Own // what the limits are measured by is to be known as well
	}
	if c, ok := t.worthwhile(best); ok {
		return t.courses[c].points[0]
	}
	return best.point
}

// worthwhile is the course that is worth a run although another one is expected to be
// the best: what it may turn out to save over the runs to come outweighs what it is
// expected to cost more now.
func (t *Tuner) worthwhile(best lead) (int, bool) {
	noise := t.spread()
	reach := t.reach()
	at, most := -1, 0.0
	for c := range t.courses {
		if c == best.course || t.weighed.barred(c) || !t.near(c, reach) || t.exhausted(c) {
			continue
		}
		m, v := best.belief.at(t.courses[c].at)
		// How far the mean may move by one run: the knowledge gradient.
		s := v / math.Sqrt(v+noise)
		gap := m - best.score
		dearer := min(math.Exp(gap+v/2), Beta+1) - 1
		gain := t.horizon()*propose.Improvement(gap, s) - dearer
		if gain > most+1e-9 { // of two that promise the same the first, which has less
			at, most = c, gain
		}
	}
	return at, at >= 0
}

// horizon is how many runs are expected still to come.
func (t *Tuner) horizon() float64 { return few + float64(t.runs) }

// near reports whether a course was run, or lies within a stride of one that reached its
// end, or nearer to them than all other untried ones.
func (t *Tuner) near(c int, reach []float64) bool {
	if t.arms[c].runs() > 0 || reach[c] <= stride {
		return true
	}
	for d := range t.courses {
		if t.arms[d].runs() == 0 && reach[d] < reach[c] && !t.weighed.barred(d) {
			return false
		}
	}
	return true
}

// reach is the distance of each course from the nearest one that reached its end.
func (t *Tuner) reach() []float64 {
	out := make([]float64, len(t.courses))
	for c := range t.courses {
		out[c] = math.Inf(1)
		for d, a := range t.arms {
			if a.reached > 0 {
				out[c] = min(out[c], distance(t.courses[c].at, t.courses[d].at))
			}
		}
	}
	return out
}

// exhausted reports whether a course cannot be run within the number of points that may be
// tried.
func (t *Tuner) exhausted(c int) bool {
	if t.limit == 0 || t.tried() < t.limit {
		return false
	}
	_, ok := t.pick(c, 1)
	return !ok
}
