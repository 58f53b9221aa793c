package recurring

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"pitchpipe/controller/search/propose"
)

// What is taken to be usual before anything was measured. The spread of ln(epochs)
// between runs of one course counts as much as priorDegrees runs.
const (
	priorSD      = 0.1
	priorDegrees = 4

	// few are the runs that are expected still to come where none was seen.
	few = 4

	// severity is how much a broken limit weighs between courses. What breaks a limit is never
	// best.
	severity = 3

	// stride is how many octaves an untried course may lie from one that reached its end.
	stride = 1
)

// How the score varies over courses, in natural logarithms: about a level, a slope per octave, what
// departs from both smoothly, and what is a course's own. Costs bend upwards the further from the
// owner's.
const (
	levelSD  = 1
	slopeSD  = 0.3
	bendSD   = 0.25
	bendSpan = 1.5 // octaves
	ownSD    = 0.08
	bowl     = 0.08 // per octave squared
)

// spread is the variance of ln(epochs) between runs of one course, or of the score of whole runs.
func (t *Tuner) spread() float64 {
	if t.weighed != nil {
		return t.weighed.noise
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

func (t *Tuner) standings() []standing {
	var out []standing
	noise := t.spread()
	powers := t.goal.Degree()
	least := math.Inf(1)
	for c, a := range t.arms {
		if a.reached == 0 {
			continue
		}
		p := t.pick(c, a.mean())
		p.score += severity * p.excess
		if p.point < 0 || math.IsInf(p.score, 1) {
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

// belief is the standing of the best course, and a Gaussian process over courses.
type belief struct {
	standing
	known []standing
	xs    [][]float64
	level float64
	chol  mat.Cholesky
	alpha *mat.VecDense
}

// The score of the best is that of what is believed of its course: one lucky run makes no course
// the best.
func (t *Tuner) leader() *belief {
	if t.led != nil {
		return t.led
	}
	b := &belief{standing: standing{choice: none()}, known: t.standings()}
	t.led = b
	n := len(b.known)
	if n == 0 {
		return b
	}
	if t.weighed == nil { // else that of the owner's, whose cost is 1
		b.level = b.known[0].score
	}
	k, y := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, s := range b.known {
		b.xs = append(b.xs, t.courses[s.course].at)
		y.SetVec(i, s.score-b.level-prior(b.xs[i]))
		for j := range i + 1 {
			k.SetSym(i, j, covariance(b.xs[i], b.xs[j]))
		}
		k.SetSym(i, i, k.At(i, i)+s.variance+1e-9)
	}
	b.alpha = mat.NewVecDense(n, nil)
	if b.chol.Factorize(k) {
		_ = b.chol.SolveVecTo(b.alpha, y) // a badly conditioned answer is still the best there is
	}
	for _, s := range b.known {
		if a := t.arms[s.course]; s.point < 0 || a.barred || a.unknown {
			continue
		}
		s.score, _ = b.at(t.courses[s.course].at)
		if b.point < 0 || s.before(b.choice) {
			b.standing = s
		}
	}
	return b
}

func (b *belief) at(x []float64) (mean, variance float64) {
	k := mat.NewVecDense(len(b.xs), nil)
	for i, z := range b.xs {
		k.SetVec(i, covariance(x, z))
	}
	w := mat.NewVecDense(len(b.xs), nil)
	_ = b.chol.SolveVecTo(w, k) // as above
	return b.level + prior(x) + mat.Dot(k, b.alpha), max(covariance(x, x)-mat.Dot(k, w), 0)
}

func prior(x []float64) float64 { return bowl * floats.Dot(x, x) / 2 }

func covariance(a, b []float64) float64 {
	d := floats.Distance(a, b, 2)
	v := levelSD*levelSD + slopeSD*slopeSD*floats.Dot(a, b) + bendSD*bendSD*math.Exp(-d*d/(2*bendSpan*bendSpan))
	if d == 0 {
		v += ownSD * ownSD
	}
	return v
}

// Course returns a point of the course for the next run.
func (t *Tuner) Course() int {
	own := t.arms[t.of[t.Own]]
	if own.reached == 0 || t.goal.Least() || len(t.courses) == 1 {
		return t.Own
	}
	best := t.leader()
	if best.point < 0 {
		return t.Own
	}
	if t.goal.Limited() && float64(own.reached) < 1+math.Log2(float64(1+t.runs)) {
		return t.Own // what the limits are measured by is to be known as well
	}
	if c := t.worthwhile(best); c >= 0 {
		return t.courses[c].points[0]
	}
	return best.point
}

// worthwhile is the course that is worth a run although another one is expected to be the best.
// Below 0: none is.
func (t *Tuner) worthwhile(best *belief) int {
	noise := t.spread()
	reach, within := t.reach()
	at, most := -1, 0.0
	for c, a := range t.arms {
		far := a.runs() == 0 && reach[c] > within
		if c == best.course || a.barred || far || t.exhausted() && t.pick(c, 1).point < 0 {
			continue
		}
		m, v := best.at(t.courses[c].at)
		// How far the mean may move by one run: the knowledge gradient.
		s := v / math.Sqrt(v+noise)
		gap := m - best.score
		dearer := min(math.Exp(gap+v/2), Beta+1) - 1
		gain := t.horizon()*propose.Improvement(gap, s) - dearer
		if gain > most+1e-9 { // of two that promise the same the first, which has less
			at, most = c, gain
		}
	}
	return at
}

func (t *Tuner) horizon() float64 { return few + float64(t.runs) }

// reach is the distance of each course from the nearest one that reached its end, and how far an
// untried one may be.
func (t *Tuner) reach() (reach []float64, within float64) {
	reach, within = make([]float64, len(t.courses)), math.Inf(1)
	for c, course := range t.courses {
		reach[c] = math.Inf(1)
		for d, a := range t.arms {
			if a.reached > 0 {
				reach[c] = min(reach[c], floats.Distance(course.at, t.courses[d].at, 2))
			}
		}
		if a := t.arms[c]; a.runs() == 0 && !a.barred {
			within = min(within, reach[c])
		}
	}
	return reach, max(within, stride)
}
