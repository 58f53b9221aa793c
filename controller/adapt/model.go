package adapt

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"pitchpipe/controller/tuning"
)

// Run is the course and outcome of a run that took actions.
type Run struct {
	Kind    string         // runs of a kind are of one program
	Actions []tuning.Taken // in order, at least one
	Gain    float64        // how much better it ended than undisturbed, as a share of the undisturbed quality
}

// Model expects what actions bring: a sum of terms for acting at all, for each action, for each
// two of them, and for what comes first. All but the last change with the time left. A kind has
// its own terms on top of those of all kinds. It is a Bayesian linear regression around no
// effect, whose prior the runs choose (Bishop, Pattern Recognition and Machine Learning, 3.5).
type Model struct {
	runs   []Run
	at     map[term]int // column of a term
	x      *mat.Dense
	xx     mat.SymDense
	scale  float64       // prior variance of a main term of all kinds and one, in units of the noise
	common float64       // share of it that all kinds have in common
	chol   mat.Cholesky  // of the precision of the weights, in units of the noise
	weight *mat.VecDense // nil: there are no runs
	noise  float64       // variance of a run
}

type term struct {
	kind  string // empty: of all kinds
	name  string
	inter bool // of two actions, or of their order
	slope bool // changes with the time left
}

// What is believed before any runs.
const (
	usualNoise   = 0.02     // standard deviation of the gain of a run
	noiseRuns    = 2        // how many runs that belief counts for
	interactions = 1.0 / 16 // variance of what two actions do together, over that of what one does
	widest       = 64.0     // bound of the scale, and of its inverse
)

func (m *Model) variance(t term) float64 {
	v := m.scale * m.common
	if t.kind != "" {
		v = m.scale - v
	}
	if t.inter {
		v *= interactions
	}
	return v
}

// features adds the terms of a run to a row, by a factor.
func features(kind string, taken []tuning.Taken, add func(term, float64)) {
	both := func(t term, v float64) {
		add(t, v)
		t.kind = kind
		add(t, v)
	}
	timed := func(t term, left float64) {
		both(t, 1)
		t.slope = true
		both(t, 4*(1-math.Pow(max(left, 1), -0.25))) // nothing at the last epoch: almost as likely as log, more careful beyond the times seen
	}
	for p, a := range taken {
		if p == 0 {
			timed(term{name: "acting"}, a.Left)
		}
		timed(term{name: "one " + a.Name}, a.Left)
		timed(term{name: "any"}, a.Left)
		both(term{name: "later " + a.Name, inter: true}, float64(p))
		for _, b := range taken[:p] {
			if a.Name == b.Name {
				timed(term{name: "again", inter: true}, a.Left)
			}
			timed(term{name: fmt.Sprintf("both %q %q", min(a.Name, b.Name), max(a.Name, b.Name)), inter: true}, a.Left)
		}
	}
}

// Learn fits a model to runs. Without any it expects nothing of any action.
func Learn(runs []Run) *Model {
	m := &Model{runs: runs, at: map[term]int{}, scale: 1, common: 0.9, noise: usualNoise * usualNoise}
	if len(runs) == 0 {
		return m
	}
	for _, r := range runs {
		features(r.Kind, r.Actions, func(t term, _ float64) {
			if _, ok := m.at[t]; !ok {
				m.at[t] = len(m.at)
			}
		})
	}
	m.x = mat.NewDense(len(runs), len(m.at), nil)
	for i, r := range runs {
		features(r.Kind, r.Actions, func(t term, v float64) { m.x.Set(i, m.at[t], m.x.At(i, m.at[t])+v) })
	}
	m.xx.SymOuterK(1, m.x.T())
	best, most := *m, math.Inf(-1)
	for _, m.common = range []float64{0.9, 0.5, 0.1} { // the first where a single kind says nothing about it
		for m.scale = 1 / widest; m.scale <= widest; m.scale *= 2 {
			if likely := m.condition(); likely > most+1e-6 {
				best, most = *m, likely
			}
		}
	}
	best.condition()
	return &best
}

// condition finds the weights and returns the logarithm of how likely the runs were.
func (m *Model) condition() float64 {
	var xy mat.VecDense
	y := mat.NewVecDense(len(m.runs), nil)
	for i, r := range m.runs {
		y.SetVec(i, r.Gain)
	}
	xy.MulVec(m.x.T(), y)
	a := mat.NewSymDense(len(m.at), nil)
	a.CopySym(&m.xx)
	logs := make([]float64, len(m.at))
	for t, i := range m.at {
		v := m.variance(t)
		a.SetSym(i, i, a.At(i, i)+1/v)
		logs[i] = math.Log(v)
	}
	if !m.chol.Factorize(a) {
		return math.Inf(-1)
	}
	m.weight = mat.NewVecDense(len(m.at), nil)
	_ = m.chol.SolveVecTo(m.weight, &xy) // a badly conditioned answer is still the best there is
	n := float64(len(m.runs)) + noiseRuns
	m.noise = (mat.Dot(y, y) - mat.Dot(m.weight, &xy) + noiseRuns*usualNoise*usualNoise) / n
	return -n/2*math.Log(m.noise) - (floats.Sum(logs)+m.chol.LogDet())/2
}

// Expect is the gain of a run that takes these actions over one that takes those, and its
// standard deviation without the noise of the runs themselves.
func (m *Model) Expect(kind string, these, those []tuning.Taken) (gain, sd float64) {
	x, variance := mat.NewVecDense(max(len(m.at), 1), nil), 0.0
	var unseen []term
	var amounts []float64
	for _, side := range []struct {
		taken []tuning.Taken
		sign  float64
	}{{these, 1}, {those, -1}} {
		features(kind, side.taken, func(t term, v float64) {
			if i, ok := m.at[t]; ok {
				x.SetVec(i, x.AtVec(i)+side.sign*v)
				return
			}
			i := slices.Index(unseen, t)
			if i < 0 {
				i, unseen, amounts = len(unseen), append(unseen, t), append(amounts, 0)
			}
			amounts[i] += side.sign * v
		})
	}
	for i, t := range unseen {
		variance += m.variance(t) * amounts[i] * amounts[i]
	}
	if m.weight != nil {
		var s mat.VecDense
		_ = m.chol.SolveVecTo(&s, x) // as above
		gain, variance = mat.Dot(x, m.weight), variance+mat.Dot(x, &s)
	}
	return gain, math.Sqrt(variance * m.noise)
}
