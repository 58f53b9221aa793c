package propose

import (
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

// Listed begins candidates in an order that is fixed beforehand.
type Listed []int

// Next is the first candidate that did not begin yet.
func (l Listed) Next(trials []Trial) (int, error) {
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

func (c *Candidates) inOrder(first []int, rng *rand.Rand) Listed {
	return append(first, rng.Perm(len(c.Points))...)
}

// Random tries candidates in random order.
func (c *Candidates) Random(rng *rand.Rand) Listed { return c.inOrder(nil, rng) }

// Grid begins with at most n points of a full factorial, ends included, in random order.
func (c *Candidates) Grid(n int, rng *rand.Rand) Listed {
	return c.inOrder(c.snap(grid(n, len(c.Axes), rng)), rng)
}

// LatinHypercube begins with n points that are spread evenly along every axis.
func (c *Candidates) LatinHypercube(n int, rng *rand.Rand) Listed {
	return c.inOrder(c.latin(n, rng), rng)
}

func (c *Candidates) latin(n int, rng *rand.Rand) []int {
	return c.snap(latinHypercube(min(n, len(c.Points)), len(c.Axes), rng))
}

// Then begins what First has and goes on as Rest does.
type Then struct{ First, Rest Method }

// Next is that of First as long as it has one.
func (t Then) Next(trials []Trial) (int, error) {
	if at, err := t.First.Next(trials); at >= 0 || err != nil {
		return at, err
	}
	return t.Rest.Next(trials)
}

// Turns begins every so many-th trial as One says, and the others as Other does.
type Turns struct {
	One, Other Method
	Every      int
}

// Next is that of the method whose turn it is.
func (t Turns) Next(trials []Trial) (int, error) {
	if (len(trials)+1)%t.Every == 0 {
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
