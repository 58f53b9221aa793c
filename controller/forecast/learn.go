package forecast

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Lesson is what the forecast of a job was worth, known once the job has ended: which
// models are right about this kind, by how much the ensemble is off where it said the
// like, and how wide its interval must be.
type Lesson = tuning.CurveLesson

// Remembered is how many lessons count, the newest of those that are handed in: those of
// 500 jobs.
const Remembered = 1500

// Shares are the shares of its epochs at which the forecast of a job is worth a lesson: so
// dense that whatever was seen of another job, from a sixth to two thirds, one is near.
func Shares() []float64 { return []float64{0.2, 0.3, 0.5} }

// Teach is what the forecasts of a curve that came to its end were worth, or would have
// been, had they been made with o.Lessons at each of Shares. None where there was no
// forecast, or where the curve does not reach o.Total.
func Teach(c Curve, o Options) []Lesson {
	n := len(c.Values)
	if n == 0 || len(c.Epochs) != n || c.Epochs[n-1] != o.Total {
		return nil
	}
	var out []Lesson
	for _, share := range Shares() {
		seen, _ := c.Seen(share)
		f, why := New(seen, o)
		if why != Known {
			continue
		}
		_, why = f.Value(o.Total)
		if l := f.Lesson(c.Values[n-1]); why == Known && usable(l) {
			out = append(out, l)
		}
	}
	return out
}

// How lessons count; one choice for all development curves, whose neighbours do little
// worse.
const (
	sameShare  = 1.3 // lessons made at a share of the way within this ratio count
	hedge      = 1.0 // how fast models that are wrong about a kind lose their weight
	alike      = 0.2 // the nearest share of lessons sets the width of "where it said the like"
	doubt      = 1.0 // lessons in weight against believing a correction
	gate       = 1.0 // how fast corrections that do not help are given up
	mostLosses = 3.0 // one lesson's loss is at most this many times the models' mean loss
)

// learned is what lessons say to one forecast.
type learned struct {
	lessons []Lesson
	u       unit
}

func learn(all []Lesson, seen, total float64, u unit) learned {
	l := learned{u: u}
	for _, x := range all[max(0, len(all)-Remembered):] {
		if usable(x) && math.Abs(math.Log(x.Seen*total/(x.Total*seen))) <= math.Log(sameShare) {
			l.lessons = append(l.lessons, x)
		}
	}
	return l
}

func usable(x Lesson) bool {
	sum := x.Last + x.Blend + x.Correction + x.Value + x.Unit + x.Truth + x.Seen + x.Total + floats.Sum(x.Told)
	return len(x.Told) == models && finite(sum) && x.Seen > 0 && x.Total > x.Seen && x.Unit > 0
}

// scale is the models' mean error, which makes lessons of easy and of hard curves count
// alike; 0: all were right, and nothing is learned about which is better.
func scale(x Lesson) float64 {
	var s float64
	for _, told := range x.Told {
		s += math.Abs(told-x.Truth) / float64(models)
	}
	return s
}

// weigh turns the weights of the curve itself by what the kind taught.
func (l learned) weigh(weights [models]float64) [models]float64 {
	var loss [models]float64
	for _, x := range l.lessons {
		if s := scale(x); s > 0 {
			for m := range Last + 1 {
				loss[m] += math.Abs(x.Told[m]-x.Truth) / s
			}
		}
	}
	least := math.Inf(1)
	for m, w := range weights {
		if w > 0 { // it is a word of its own
			least = min(least, loss[m])
		}
	}
	var sum float64
	for m := range Last + 1 {
		weights[m] *= math.Exp(-hedge * max(loss[m]-least, 0))
		sum += weights[m]
	}
	for m := range Last + 1 {
		weights[m] /= sum
	}
	return weights
}

// correct is what the ensemble was off in earlier runs that stood where this one stands
// and were told to move as far, in units; and how much of it is believed, 0 to 1. blend
// is in units.
func (l learned) correct(blend float64) (correction, belief float64) {
	n := len(l.lessons)
	if n == 0 {
		return 0, 0
	}
	stand, move := make([]float64, n), make([]float64, n)
	for i, x := range l.lessons {
		last := l.u.in(x.Last)
		stand[i] = math.Abs(last) // this run's last value is 0
		move[i] = math.Abs(l.u.in(x.Blend) - last - blend)
	}
	ws, wm := nearest(stand), nearest(move)
	offs, weights := make([]float64, n), make([]float64, n)
	for i, x := range l.lessons {
		offs[i] = l.u.in(x.Truth) - l.u.in(x.Blend)
		weights[i] = math.Exp(-0.5 * (square(stand[i]/ws) + square(move[i]/wm)))
	}
	mass := floats.Sum(weights)
	if !(mass > 0) {
		return 0, 0
	}
	stat.SortWeighted(offs, weights)
	return stat.Quantile(0.5, stat.Empirical, offs, weights) * mass / (mass + doubt), l.belief()
}

// belief compares what the forecasts of the kind were worth without, with half and with
// all of their correction.
func (l learned) belief() float64 {
	var loss [3]float64
	for _, x := range l.lessons {
		s := scale(x)
		if !(s > 0) {
			continue
		}
		for i := range loss {
			loss[i] += min(math.Abs(x.Blend+float64(i)/2*x.Correction-x.Truth)/s, mostLosses)
		}
	}
	var believed, sum float64
	for i, v := range loss {
		w := math.Exp(-gate * (v - slices.Min(loss[:])))
		believed, sum = believed+w*float64(i)/2, sum+w
	}
	return believed / sum
}

func nearest(distances []float64) float64 {
	s := slices.Sorted(slices.Values(distances))
	return max(s[min(len(s)-1, int(alike*float64(len(s))))], smallest)
}

func square(v float64) float64 { return v * v }

// The interval leaves a tenth of the truths out on each side. Before a kind has taught
// anything its ends are as many units from the value as on development curves; that
// counts as much as this many lessons.
const (
	tail         = 0.093 // a little less than a tenth: kinds drift while they are learned
	priorLessons = 10
	priorLow     = -1.3
	priorHigh    = 1.3
)

// ends are how many units below and above the value the interval ends: low at most 0,
// high at least 0. In units less is better, so low is the better end.
func (l learned) ends() (low, high float64) {
	var scores []float64
	for _, x := range l.lessons {
		scores = append(scores, l.u.sign*(x.Truth-x.Value)/x.Unit)
	}
	for i := range priorLessons {
		// Evenly spaced over the middle 9/10 of a straight line through both ends.
		q := (float64(i) + 0.5) / priorLessons
		scores = append(scores, priorLow+(priorHigh-priorLow)*(q-tail)/(1-2*tail))
	}
	n := float64(len(scores))
	// One more than the scores: the next one may lie beyond all of them.
	reach := min((1-tail)*(n+1)/n, 1)
	return min(quantile(scores, 1-reach), 0), max(quantile(scores, reach), 0)
}
