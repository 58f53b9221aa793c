package propose

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Trial is a candidate under way.
type Trial struct {
	At int // the candidate

	// Losses are what it reached at each rung, in order: less is better. They are compared
	// and modelled as they are, so give ratios as logarithms. NaN: it failed there.
	Losses []float64

	Running bool // to its next rung at this moment
}

// Method proposes.
type Method interface {
	// Next is the candidate to run, given all trials in the order in which they began: on to its
	// next rung, or from the beginning. -1: nothing is left.
	Next(trials []Trial) (at int, err error)
}

// listed begins candidates in an order that is fixed beforehand.
type listed []int

func (l listed) Next(trials []Trial) (int, error) {
	begun := begun(trials)
	for _, at := range l {
		if !begun[at] {
			return at, nil
		}
	}
	return -1, nil
}

func begun(trials []Trial) map[int]bool {
	out := make(map[int]bool, len(trials))
	for _, t := range trials {
		out[t.At] = true
	}
	return out
}

func (c *Candidates) inOrder(first []int, rng *rand.Rand) Method {
	return listed(append(first, rng.Perm(len(c.Points))...))
}

// Random tries candidates in random order.
func (c *Candidates) Random(rng *rand.Rand) Method { return c.inOrder(nil, rng) }

// Grid begins with at most n points of a full factorial, ends included, in random order.
func (c *Candidates) Grid(n int, rng *rand.Rand) Method {
	return c.inOrder(c.snap(grid(n, len(c.Axes), rng)), rng)
}

// LatinHypercube begins with n points that are spread evenly along every axis.
func (c *Candidates) LatinHypercube(n int, rng *rand.Rand) Method {
	return c.inOrder(c.latin(n, rng), rng)
}

func (c *Candidates) latin(n int, rng *rand.Rand) []int {
	return c.snap(latinHypercube(min(n, len(c.Points)), len(c.Axes), rng))
}

// Turns begins every so many-th of the first trials as One says, and all others as Other does.
type Turns struct {
	One, Other  Method
	Every, UpTo int
}

// Next is that of the method whose turn it is.
func (t Turns) Next(trials []Trial) (int, error) {
	if len(trials) < t.UpTo && len(trials)%t.Every == 0 {
		return t.One.Next(trials)
	}
	return t.Other.Next(trials)
}

// Outcomes are the losses at the first rung, failed ones at the worst of the others: nothing near
// them is worth a look.
func Outcomes(trials []Trial) (at []int, losses []float64) {
	for _, t := range trials {
		if len(t.Losses) > 0 {
			at, losses = append(at, t.At), append(losses, t.Losses[0])
		}
	}
	ran := slices.DeleteFunc(slices.Clone(losses), math.IsNaN)
	for i, loss := range losses {
		if math.IsNaN(loss) {
			losses[i] = 0
			if len(ran) > 0 {
				losses[i] = slices.Max(ran)
			}
		}
	}
	return at, losses
}

// Ladder runs the best of each rung on to the next one: asynchronous successive halving (ASHA; Li
// et al., "A System for Massively Parallel Hyperparameter Tuning", 2020).
type Ladder struct {
	Rungs  []int // epochs, ascending; the last is a full run
	Factor int   // a rung promotes the best of this many, at least 2
	Fresh  Method
}

// Climb makes rungs a factor apart down from the full run.
func Climb(full, least, factor int, fresh Method) Ladder {
	factor = max(factor, 2)
	l := Ladder{Rungs: []int{full}, Factor: factor, Fresh: fresh}
	for length := float64(full) / float64(factor); ; length /= float64(factor) {
		rung := int(math.Round(length))
		if rung < max(least, 1) || rung >= l.Rungs[len(l.Rungs)-1] {
			break
		}
		l.Rungs = append(l.Rungs, rung)
	}
	slices.Reverse(l.Rungs)
	return l
}

// Next prefers the trial that can run on to the highest rung.
func (l Ladder) Next(trials []Trial) (int, error) {
	if i := l.promote(trials); i >= 0 {
		return trials[i].At, nil
	}
	return l.Fresh.Next(trials)
}

// promote is the index of the trial that runs on, -1: none. Ties go to the earlier trial.
func (l Ladder) promote(trials []Trial) int {
	for rung := len(l.Rungs) - 2; rung >= 0; rung-- {
		var there []int
		reached := 0
		for i, t := range trials {
			if len(t.Losses) <= rung {
				continue
			}
			reached++
			if !math.IsNaN(t.Losses[rung]) {
				there = append(there, i)
			}
		}
		slices.SortStableFunc(there, func(i, j int) int { return cmp.Compare(trials[i].Losses[rung], trials[j].Losses[rung]) })
		for _, i := range there[:min(reached/l.Factor, len(there))] {
			if len(trials[i].Losses) == rung+1 && !trials[i].Running {
				return i
			}
		}
	}
	return -1
}
