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

// Of is where settings lie: one number per axis. An unknown word is -1.
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

// Distance is that of two points over all axes.
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
