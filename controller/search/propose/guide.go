package propose

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Scores are how good trials are among each other, in standard deviations: less is better. They depend
// on the order of the losses alone. The first rung orders all trials that came to it. Each further rung
// orders those that came so far again, and leaves them the mean and the spread that they had: a trial
// that ended early stays comparable with one that went on.
func Scores(trials []Trial) (at []int, scores []float64) {
	var there []Trial
	for _, t := range trials {
		if len(t.Losses) > 0 {
			there, at = append(there, t), append(at, t.At)
		}
	}
	scores = make([]float64, len(there))
	for rung := 0; ; rung++ {
		var index []int
		var losses, before []float64
		for i, t := range there {
			if len(t.Losses) > rung {
				index, losses, before = append(index, i), append(losses, t.Losses[rung]), append(before, scores[i])
			}
		}
		if len(index) == 0 {
			return at, scores
		}
		mean, spread := 0.0, 1.0
		if rung > 0 {
			if mean, spread = stat.MeanStdDev(before, nil); !(spread > 0) {
				continue
			}
		}
		for k, z := range Normal(losses) {
			scores[index[k]] = mean + spread*z
		}
	}
}

// Normal are the scores of a normal distribution at the Ranks of values.
func Normal(values []float64) []float64 {
	out := Ranks(values)
	for i, r := range out {
		out[i] = distuv.UnitNormal.Quantile(r)
	}
	return out
}

// Ranks are the ranks of values, from 0 to 1; NaN ranks last, and equal values share their mean rank.
func Ranks(values []float64) []float64 {
	order, out := Ascending(values), make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && cmp.Compare(values[order[to]], values[order[from]]) == 0 {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to) / 2 / float64(len(order))
		}
		from = to
	}
	return out
}

// Ascending are the places of values, the least first and NaN last.
func Ascending(values []float64) []int {
	out := make([]int, len(values))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(i, j int) int {
		return -cmp.Compare(-values[i], -values[j]) // to which NaN is the least
	})
	return out
}

const (
	unguided = 5    // trials with a score before the process is asked, without earlier jobs
	learned  = 30   // trials that a process is fitted to: the best half, and of the others evenly many
	looked   = 256  // candidates that are looked at for a trial
	scatter  = 0.05 // usual variance of the noise of a score
	surprise = 1    // standard deviation of the factor that an earlier job must be stretched by, 1 on average
	coarse   = 0.4  // step of a parameter: a finer one changes little and takes longer
)

// improvement begins the candidate that is expected to improve most on the best so far.
type improvement struct {
	*Candidates
	expected [][]float64                           // of each candidate by each earlier job, up to a constant
	outcomes func([]Trial) (at []int, y []float64) // that the process is fitted to
	few      int                                   // outcomes without which Next is -1
	looked   int                                   // candidates that are looked at for a trial
	ahead    bool                                  // a trial under way counts as if its outcome were what is expected of it

	doubt, noise, finest float64 // see data and fit
}

// byCandidate is what each of some jobs lets expect, by candidate.
func (c *Candidates) byCandidate(jobs [][]float64) [][]float64 {
	out := make([][]float64, len(c.Points))
	for _, job := range jobs {
		for i, e := range job {
			out[i] = append(out[i], e)
		}
	}
	return out
}

// Gaussian begins with a few evenly spread candidates and then asks a Gaussian process over the
// losses at the lowest rung. expected is from a History; nil: none.
func (c *Candidates) Gaussian(expected []float64, rng *rand.Rand) Method {
	few, jobs := 3, [][]float64{expected}
	if expected == nil { // enough to tell the axes apart
		few = max(few, (len(c.Axes)+3)/2)
	}
	return Then{Listed(c.latin(few, rng)), c.improve(jobs)}
}

func (c *Candidates) improve(jobs [][]float64) improvement {
	return improvement{
		Candidates: c, expected: c.byCandidate(jobs), outcomes: Outcomes, looked: len(c.Points), doubt: trendSD, noise: usualNoise, finest: fine,
	}
}

// Next is the candidate with the greatest expected improvement.
func (m improvement) Next(trials []Trial) (int, error) {
	at, y := m.outcomes(trials)
	if len(at) < m.few {
		return -1, nil
	}
	gain := func(i int) float64 { return -floats.Sum(m.expected[i]) } // nothing is known
	if len(at) > 0 {
		p, err := m.fit(m.data(at, y, m.expected, m.doubt), m.noise, noiseSD, m.finest)
		if err != nil {
			return -1, err
		}
		best := math.Inf(1)
		for i, x := range p.x {
			mean, _ := p.predict(x, p.expected[i])
			best = min(best, mean)
		}
		if m.ahead {
			p = p.believe(trials, m.expected)
		}
		gain = func(i int) float64 {
			mean, sd := p.predict(m.Points[i], m.expected[i])
			return logImprovement(mean, sd, best)
		}
	}
	begun := begun(trials)
	next, most, left := -1, math.Inf(-1), m.looked
	for k := range m.Points {
		i := (k + m.looked*len(trials)) % len(m.Points) // others each time, where there are many
		if begun[i] {
			continue
		}
		if v := gain(i); next < 0 || v > most {
			next, most = i, v
		}
		if left--; left == 0 {
			break
		}
	}
	return next, nil
}

// Guide asks a Gaussian process over Scores once a few trials have some; before, its Next is -1.
// expected is what earlier searches suggest for each candidate (only the order counts); nil: none.
func (c *Candidates) Guide(expected [][]float64) Method {
	m := improvement{
		Candidates: c, expected: c.byCandidate(expected), outcomes: telling, looked: looked, ahead: true, doubt: surprise, noise: scatter, finest: coarse,
	}
	if len(expected) == 0 {
		m.few = unguided
	}
	return m
}

// Recall is what each earlier job suggests for each candidate, in the unit of Scores; together they
// count as one. The better the jobs would have foretold the best settings of one another, the more is
// expected; where one of them would have been misled, nothing is: it is nil.
func (c *Candidates) Recall(past []Past) ([][]float64, error) {
	const (
		doubted = 0.2
		unasked = 0.5 // how far a single job is trusted
		recent  = 5   // jobs
	)
	var jobs []Past
	for _, job := range past {
		if len(job.Losses) > 2 && slices.Min(job.Losses) < slices.Max(job.Losses) {
			jobs = append(jobs, Past{job.Settings, Normal(job.Losses)})
		}
	}
	jobs = jobs[max(0, len(jobs)-recent):]
	trust := 1.0
	if len(jobs) < 2 {
		trust = unasked
	}
	for i := 0; i < len(jobs) && len(jobs) > 1; i++ {
		e, _, err := c.joint(slices.Delete(slices.Clone(jobs), i, i+1), c.Of(jobs[i].Settings))
		if err != nil {
			return nil, err
		}
		trust = min(trust, agreement(e, jobs[i].Losses))
	}
	if trust < doubted {
		return nil, nil
	}
	var out [][]float64
	for _, job := range jobs {
		e, _, err := c.joint([]Past{job}, c.Points)
		if err != nil {
			return nil, err
		}
		floats.Scale(trust/float64(len(jobs)), e)
		out = append(out, e)
	}
	return out, nil
}

// agreement is how good the tenth of settings is that is expected to be best, as a part of the best tenth.
func agreement(expected, scores []float64) float64 {
	picked, best := 0.0, 0.0
	asked, truth := Ascending(expected), Ascending(scores)
	for k := range max(len(scores)/10, 1) {
		picked, best = picked+scores[asked[k]], best+scores[truth[k]]
	}
	return picked / best
}

// telling are the scores that a process learns from.
func telling(trials []Trial) ([]int, []float64) {
	at, y := Scores(trials)
	if len(at) <= learned {
		return at, y
	}
	const best = learned / 2
	order := Ascending(y)
	keep := slices.Clone(order[:best])
	for k := range learned - best {
		keep = append(keep, order[best+k*(len(order)-best)/(learned-best)])
	}
	var someAt []int
	var someY []float64
	for _, i := range keep {
		someAt, someY = append(someAt, at[i]), append(someY, y[i])
	}
	return someAt, someY
}

// believe adds trials under way as if their outcomes were what is expected of them: nothing near them is
// tried before they tell.
func (p *process) believe(trials []Trial, expected [][]float64) *process {
	q := *p
	q.chol = mat.Cholesky{}
	q.data = data{slices.Clone(p.x), slices.Clone(p.y), slices.Clone(p.expected), p.doubt}
	for _, t := range trials {
		if i := t.At; t.Running && len(t.Losses) == 0 {
			mean, _ := p.predict(p.Points[i], expected[i])
			q.x, q.y, q.expected = append(q.x, p.Points[i]), append(q.y, mean), append(q.expected, expected[i])
		}
	}
	if len(q.y) == len(p.y) || math.IsInf(q.condition(p.pairs(q.x).covariance(p.kernel)), -1) {
		return p
	}
	q.signal, q.inv = p.signal, mat.SymDense{}
	_ = q.chol.InverseTo(&q.inv) // it was factored
	return &q
}
