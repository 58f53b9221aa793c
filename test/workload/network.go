package main

import (
	"math"
	"math/rand/v2"
)

// layer is where the weights of one layer are among all weights: out rows of in
// weights and one bias each.
type layer struct {
	in, out int
	at      int // of the first row
}

func (l layer) row(w []float32, o int) []float32 {
	lo := l.at + o*(l.in+1)
	return w[lo : lo+l.in+1]
}

// layers lays out a network of these widths; total is its number of weights.
func layers(widths ...int) (ls []layer, total int) {
	for i := range len(widths) - 1 {
		l := layer{in: widths[i], out: widths[i+1], at: total}
		total += l.out * (l.in + 1)
		ls = append(ls, l)
	}
	return ls, total
}

// initial draws weights as He et al. (2015) do for rectified units.
func initial(ls []layer, total int, rng *rand.Rand) []float32 {
	w := make([]float32, total)
	for _, l := range ls {
		scale := math.Sqrt(2 / float64(l.in))
		for o := range l.out {
			row := l.row(w, o)
			for i := range l.in {
				row[i] = float32(scale * rng.NormFloat64())
			}
		}
	}
	return w
}

// scratch is what one piece of work needs to pass examples through the network.
type scratch struct {
	act   [][]float32 // outputs of each layer
	delta [][]float32 // loss by each layer's output before the unit
}

func newScratch(ls []layer) *scratch {
	s := new(scratch)
	for _, l := range ls {
		s.act = append(s.act, make([]float32, l.out))
		s.delta = append(s.delta, make([]float32, l.out))
	}
	return s
}

// forward returns the scores of the classes for one example.
func forward(ls []layer, w, x []float32, s *scratch) []float32 {
	in := x
	for k, l := range ls {
		out := s.act[k]
		for o := range out {
			row := l.row(w, o)
			v := dot(row[:l.in], in) + row[l.in]
			if v < 0 && k < len(ls)-1 {
				v = 0
			}
			out[o] = v
		}
		in = out
	}
	return in
}

// learn adds one example's gradient to grad and returns its cross-entropy.
func learn(ls []layer, w, grad, x []float32, label int, s *scratch) float64 {
	scores := forward(ls, w, x, s)
	last := len(ls) - 1
	loss := softmaxDelta(scores, label, s.delta[last])
	for k := last; k >= 0; k-- {
		in := x
		if k > 0 {
			in = s.act[k-1]
			clear(s.delta[k-1])
		}
		for o, d := range s.delta[k] {
			if d == 0 {
				continue
			}
			g := ls[k].row(grad, o)
			axpy(d, in, g[:len(in)])
			g[len(in)] += d
			if k > 0 {
				axpy(d, ls[k].row(w, o)[:len(in)], s.delta[k-1])
			}
		}
		if k > 0 {
			for i, a := range in {
				if a == 0 {
					s.delta[k-1][i] = 0
				}
			}
		}
	}
	return loss
}

// softmaxDelta writes the cross-entropy's derivative by the scores to delta.
func softmaxDelta(scores []float32, label int, delta []float32) float64 {
	top := scores[best(scores)]
	sum := 0.0
	for i, v := range scores {
		e := math.Exp(float64(v - top))
		delta[i] = float32(e)
		sum += e
	}
	for i := range delta {
		delta[i] /= float32(sum)
	}
	delta[label]--
	return math.Log(sum) - float64(scores[label]-top)
}

func best(scores []float32) int {
	b := 0
	for i, v := range scores {
		if v > scores[b] {
			b = i
		}
	}
	return b
}

// dot keeps four sums, so that an addition need not wait for the one before it.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// axpy adds d times x to y.
func axpy(d float32, x, y []float32) {
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		p, q := x[i:i+4:i+4], y[i:i+4:i+4]
		q[0] += d * p[0]
		q[1] += d * p[1]
		q[2] += d * p[2]
		q[3] += d * p[3]
	}
	for ; i < len(x); i++ {
		y[i] += d * x[i]
	}
}
