package forecast

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"pitchpipe/controller/tuning"
)

// Lesson is what the forecast of a job was worth, known once the job has ended: where runs
// of this kind end, how much the ensemble and its models are off, and how wide the
// interval must be.
type Lesson = tuning.CurveLesson

// Remembered is how many lessons count, the newest of those that are handed in: those of
// 500 jobs.
const Remembered = 1500

// Shares are the shares of its epochs at which the forecast of a job is worth a lesson: so
// dense that whatever was seen of another job, from a sixth to two thirds, one is near.
func Shares() []float64 { return []float64{0.2, 0.3, 0.5} }

// Teach returns how good the forecasts of a finished curve were, or would have been with
// o.Lessons at each of Shares. It is empty without a forecast, or where the curve does not
// reach o.Total.
func Teach(c Curve, o Options) []Lesson {
	n := len(c.Values)
	if n == 0 || len(c.Epochs) != n || c.Epochs[n-1] != o.Total {
		return nil
	}
	var out []Lesson
	for _, share := range Shares() {
		seen, _ := c.Seen(share)
		f, known := New(seen, o)
		if !known {
			continue
		}
		_, known = f.Value(o.Total)
		if l := f.Lesson(c.Values[n-1]); known && usable(l) {
			out = append(out, l)
		}
	}
	return out
}

// How lessons count, chosen by leaving out one family of curves after the other.
const (
	sameShare = 1.3  // lessons made at a share of the way within this ratio count
	hedge     = 3.0  // how fast a word that is wrong about a kind loses its weight
	pull      = 1.0  // lessons in weight against what the regression takes off
	elsewhere = 0.1  // of a lesson: how much it counts that earlier runs were elsewhere
	leastSize = 0.05 // of the median size: a lesson that every model knew does not outweigh all
	mostOwn   = 0.95 // of the regression's answer for a run comes from that run
)

// learned is what lessons say to one forecast, in its units: its last value is 0.
type learned struct {
	lessons            []Lesson
	u                  unit
	last, blend, truth []float64 // of each lesson
	size               []float64 // mean error of the models, so that easy and hard curves count alike
}

func learn(all []Lesson, seen, total float64, u unit) learned {
	l := learned{u: u}
	for _, x := range all[max(0, len(all)-Remembered):] {
		if !usable(x) || math.Abs(math.Log(x.Seen*total/(x.Total*seen))) > math.Log(sameShare) {
			continue
		}
		size := 0.0
		for _, told := range x.Told {
			size += math.Abs(told-x.Truth) / u.width / float64(models)
		}
		l.lessons, l.size = append(l.lessons, x), append(l.size, size)
		l.last, l.blend, l.truth = append(l.last, u.in(x.Last)), append(l.blend, u.in(x.Blend)), append(l.truth, u.in(x.Truth))
	}
	least := max(leastSize*tuning.Quantile(l.size, 0.5), smallest)
	for i := range l.size {
		l.size[i] = max(l.size[i], least)
	}
	return l
}

func usable(x Lesson) bool {
	sum := x.Last + x.Blend + x.Value + x.Unit + x.Truth + x.Seen + x.Total + floats.Sum(x.Told)
	return len(x.Told) == models && tuning.Finite(sum) && x.Seen > 0 && x.Total > x.Seen && x.Unit > 0
}

// word is a way to tell the end.
type word struct {
	end    float64   // of this run
	before []float64 // of each earlier one, learned from all but it
}

// end is the end of this run by the ends of earlier ones; told and blend are the forecasts
// of the models and the ensemble without lessons. It is a mean of five words: the
// ensemble; that runs end where others did; that they go on by as much as others did; a
// regression of what the ensemble was off; and the models, each alone. Weights fall
// exponentially with the errors on earlier runs (Vovk, "Aggregating strategies", 1990).
func (l learned) end(told [models]float64, blend float64) float64 {
	n := len(l.lessons)
	if n == 0 {
		return blend
	}
	gains := make([]float64, n)
	floats.SubTo(gains, l.truth, l.last)
	same, alike := middle(l.truth), middle(gains)
	floats.Add(alike.before, l.last)
	if n == 1 { // they say nothing of the only one
		same.before, alike.before = l.blend, l.blend
	}
	words := []word{same, alike, {blend, l.blend}, l.regress(told, blend, same.end)}
	for m, end := range told {
		before := make([]float64, n)
		for i, x := range l.lessons {
			before[i] = l.u.in(x.Told[m])
		}
		words = append(words, word{end, before})
	}
	losses := make([]float64, len(words))
	for i, w := range words {
		for j, truth := range l.truth {
			losses[i] += math.Abs(w.before[j]-truth) / l.size[j]
		}
	}
	losses[0] += elsewhere * math.Abs(tuning.Quantile(l.last, 0.5)) / tuning.Quantile(l.size, 0.5) // where runs differ, they may end so
	least := floats.Min(losses)
	var out, sum float64
	for i, w := range words {
		weight := math.Exp(-hedge * (losses[i] - least))
		if i >= len(words)-models {
			weight /= float64(models) // together they count as one
		}
		out, sum = out+weight*w.end, sum+weight
	}
	if out /= sum; !tuning.Finite(out) {
		return blend
	}
	return out
}

// middle returns the median of x, and for each value the median of the others.
func middle(x []float64) word {
	n := len(x)
	out := word{end: tuning.Quantile(x, 0.5), before: make([]float64, n)}
	s := slices.Sorted(slices.Values(x))
	for i, v := range x {
		at, _ := slices.BinarySearch(s, v)
		others := func(k int) float64 { // the k-th of them
			if at <= k {
				k++
			}
			return s[min(k, n-1)]
		}
		out.before[i] = (others(max(n-2, 0)/2) + others((n-1)/2)) / 2
	}
	return out
}

// regress tells what the ensemble is off by how far from the last value each model and the
// usual end are. It is held back as by so many lessons in which the ensemble was right
// (ridge regression); leaving one out has a closed form.
func (l learned) regress(told [models]float64, blend, usual float64) word {
	n, columns := len(l.lessons), models+1
	row := func(told []float64, last float64) []float64 {
		out := []float64{1, usual - last}
		for _, v := range told[:Last] {
			out = append(out, v-last)
		}
		return out
	}
	rows, off := mat.NewDense(n, columns, nil), mat.NewVecDense(n, nil)
	for i, x := range l.lessons {
		r := row(tuning.Each(x.Told, l.u.in), l.last[i])
		floats.Scale(1/l.size[i], r)
		rows.SetRow(i, r)
		off.SetVec(i, (l.truth[i]-l.blend[i])/l.size[i])
	}
	var normal mat.SymDense
	normal.SymOuterK(1, rows.T())
	for j := range columns {
		normal.SetSym(j, j, normal.At(j, j)*(1+pull/float64(n))+smallest)
	}
	var solved mat.Cholesky
	var influence, weights, right mat.Dense
	if !solved.Factorize(&normal) || solved.SolveTo(&influence, rows.T()) != nil {
		return word{blend, l.blend}
	}
	weights.Mul(&influence, off)
	right.Mul(rows, &weights)
	out := word{blend + floats.Dot(row(told[:], 0), weights.RawMatrix().Data), make([]float64, n)}
	for i, truth := range l.truth {
		own := min(mat.Dot(rows.RowView(i), influence.ColView(i)), mostOwn)
		out.before[i] = truth - (off.AtVec(i)-right.At(i, 0))/(1-own)*l.size[i]
	}
	return out
}

func square(v float64) float64 { return v * v }

// The interval leaves a tenth of the truths out on each side. Before a kind has taught
// anything its ends are as many units from the value as on development curves; that
// counts as much as this many lessons.
const (
	tail         = 0.093 // a little less than a tenth: kinds drift while they are learned
	priorLessons = 10
	priorReach   = 1.3
)

// ends are how many units below and above the value the interval ends: low at most 0,
// high at least 0. In units less is better, so low is the better end.
func (l learned) ends() (low, high float64) {
	scores := tuning.Each(l.lessons, func(x tuning.CurveLesson) float64 { return l.u.sign * (x.Truth - x.Value) / x.Unit })
	for i := range priorLessons {
		// Evenly spaced over the middle 9/10 of a straight line through both ends.
		q := (float64(i) + 0.5) / priorLessons
		scores = append(scores, priorReach*(2*q-1)/(1-2*tail))
	}
	n := float64(len(scores))
	// One more than the scores: the next one may lie beyond all of them.
	reach := min((1-tail)*(n+1)/n, 1)
	return min(tuning.Quantile(scores, 1-reach), 0), max(tuning.Quantile(scores, reach), 0)
}
