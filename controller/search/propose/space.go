package propose

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/samplemv"

	"pitchpipe/controller/tuning"
)

// Axis is one knob as a model sees it: a coordinate from 0 to 1 for numbers, the
// index of a word for words.
type Axis struct {
	Knob  string
	Scale tuning.Scale // of numbers: Linear or Log
	Low   float64      // the least number, in the knob's own unit
	High  float64      // the greatest number
	Words []string     // sorted; empty where the axis holds numbers
}

// Candidates are the settings that may be run, as points.
type Candidates struct {
	Axes   []Axis // along which they differ, sorted by knob
	Points [][]float64
}

// Of finds the axes of finite candidates. A knob is left out where it has one value only, or where
// another knob tells its value. Numbers get the one of linear and logarithmic scale on which they
// lie more evenly. Values that are not all numbers are words. Where some settings lack a knob of numbers, as those of
// a conditional space do, they lie in its middle.
func Of(candidates []tuning.Settings) *Candidates {
	c := &Candidates{}
	var kept []string
	for _, name := range tuning.Knobs(candidates) {
		if a, differs := axis(candidates, name); differs {
			c.Axes, kept = append(c.Axes, a), append(kept, name)
		}
	}
	for i, name := range slices.Backward(kept) { // of two that tell each other the first stays
		if determined(candidates, kept, name) {
			c.Axes, kept = slices.Delete(c.Axes, i, i+1), slices.Delete(kept, i, i+1)
		}
	}
	c.Points = c.Of(candidates)
	return c
}

func axis(candidates []tuning.Settings, name string) (Axis, bool) {
	a := Axis{Knob: name, Scale: tuning.Linear, Low: math.Inf(1), High: math.Inf(-1)}
	numbers := true
	words := map[string]bool{}
	for _, c := range candidates {
		v := c[name]
		words[v.String()] = true
		if !v.IsSet() {
			continue
		}
		numbers = numbers && v.IsNumber()
		a.Low, a.High = min(a.Low, v.Float()), max(a.High, v.Float())
	}
	if len(words) < 2 {
		return Axis{}, false
	}
	if !numbers || a.Low == a.High {
		return Axis{Knob: name, Words: slices.Sorted(maps.Keys(words))}, true
	}
	if a.Low > 0 && unevenness(candidates, a, tuning.Log) < unevenness(candidates, a, tuning.Linear) {
		a.Scale = tuning.Log
	}
	return a, true
}

// unevenness is how far the distinct values of an axis lie from evenly spaced ones.
func unevenness(candidates []tuning.Settings, a Axis, scale tuning.Scale) float64 {
	a.Scale = scale
	var at []float64
	for _, c := range candidates {
		if c[a.Knob].IsSet() {
			at = append(at, a.at(c[a.Knob]))
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	sum := 0.0
	for i, x := range at {
		sum += math.Abs(x - float64(i)/float64(len(at)-1))
	}
	return sum / float64(len(at))
}

// The values of the other knob have to come back, twice on average: a knob that never repeats
// itself would tell anything. One that some settings lack tells nothing: it lies in its middle there.
func determined(candidates []tuning.Settings, kept []string, name string) bool {
	return slices.ContainsFunc(kept, func(by string) bool {
		lacks := slices.ContainsFunc(candidates, func(s tuning.Settings) bool { return !s[by].IsSet() })
		values := Tells(candidates, by, name)
		return by != name && !lacks && values > 0 && 2*values <= len(candidates)
	})
}

// Tells is how many values one knob has where each goes with one value of another; 0: it does not tell the other.
func Tells(settings []tuning.Settings, by, name string) int {
	with := map[tuning.Value]tuning.Value{}
	for _, s := range settings {
		if v, seen := with[s[by]]; seen && v != s[name] {
			return 0
		}
		with[s[by]] = s[name]
	}
	return len(with)
}

// Of returns the points of settings: one number per axis. An unknown word is -1.
func (c *Candidates) Of(settings []tuning.Settings) [][]float64 {
	out := make([][]float64, len(settings))
	for i, s := range settings {
		out[i] = make([]float64, len(c.Axes))
		for j, a := range c.Axes {
			out[i][j] = a.at(s[a.Knob])
		}
	}
	return out
}

func (a Axis) at(v tuning.Value) float64 {
	if len(a.Words) > 0 {
		if i, ok := slices.BinarySearch(a.Words, v.String()); ok {
			return float64(i)
		}
		return -1
	}
	if !v.IsSet() {
		return 0.5
	}
	if a.Scale == tuning.Linear {
		return (v.Float() - a.Low) / (a.High - a.Low)
	}
	if v.Float() <= 0 {
		return 0
	}
	return math.Log(v.Float()/a.Low) / math.Log(a.High/a.Low)
}

// Distance returns the distance of two points over all axes.
func (c *Candidates) Distance(p, q []float64) float64 {
	squares := 0.0
	for a := range c.Axes {
		d := c.apart(a, p, q)
		squares += d * d
	}
	return math.Sqrt(squares)
}

// apart is the distance of two points along an axis; unequal words are 1 apart.
func (c *Candidates) apart(axis int, p, q []float64) float64 {
	d := math.Abs(p[axis] - q[axis])
	if d > 0 && len(c.Axes[axis].Words) > 0 {
		return 1
	}
	return d
}

const draws = 20

// latinHypercube returns n points of the unit cube, one in each of the n strata of every axis: the
// most spread of some draws.
func latinHypercube(n, axes int, rng *rand.Rand) [][]float64 {
	if n == 0 || axes == 0 {
		return make([][]float64, n)
	}
	best, gap := mat.NewDense(n, axes, nil), -1.0
	cube := samplemv.LatinHypercube{Q: distmv.NewUnitUniform(axes, rng), Src: rng}
	for range draws {
		design := mat.NewDense(n, axes, nil)
		cube.Sample(design)
		design.Apply(func(_, _ int, x float64) float64 { return (math.Floor(x*float64(n)) + 0.5) / float64(n) }, design)
		closest := math.Inf(1)
		for i := range n {
			for j := range i {
				closest = min(closest, floats.Distance(design.RawRowView(i), design.RawRowView(j), 2))
			}
		}
		if closest > gap {
			best, gap = design, closest
		}
	}
	out := make([][]float64, n)
	for i := range out {
		out[i] = best.RawRowView(i)
	}
	return out
}

// grid returns at most n points of a full factorial, ends included, in random order. The axes are
// refined in turn; one that gets a single level stays in its middle.
func grid(n, axes int, rng *rand.Rand) [][]float64 {
	levels, total := slices.Repeat([]int{1}, axes), 1
	order := rng.Perm(axes)
	for grown := true; grown; {
		grown = false
		for _, a := range order {
			if next := total / levels[a] * (levels[a] + 1); next <= n {
				levels[a]++
				total, grown = next, true
			}
		}
	}
	points := make([][]float64, total)
	for i := range points {
		points[i] = make([]float64, axes)
		rest := i
		for a, l := range levels {
			points[i][a] = 0.5
			if l > 1 {
				points[i][a] = float64(rest%l) / float64(l-1)
			}
			rest /= l
		}
	}
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points
}

// snap picks for each point the nearest candidate that is not taken yet.
func (c *Candidates) snap(points [][]float64) []int {
	var out []int
	taken := make([]bool, len(c.Points))
	for _, p := range points {
		p = slices.Clone(p)
		for i, a := range c.Axes {
			if m := float64(len(a.Words)); m > 0 {
				p[i] = min(math.Floor(p[i]*m), m-1) // the index of a word
			}
		}
		best, least := -1, math.Inf(1)
		for i, q := range c.Points {
			if d := c.Distance(p, q); !taken[i] && d < least {
				best, least = i, d
			}
		}
		if best < 0 {
			break
		}
		taken[best] = true
		out = append(out, best)
	}
	return out
}

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

// Next returns First's candidate as long as it has one.
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

// Next returns the candidate of the method whose turn it is.
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
