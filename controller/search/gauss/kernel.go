package gauss

import "math"

// hyper are the parameters of the covariance, relative to the signal's variance.
type hyper struct {
	length []float64 // of each axis, in units of the scaled axis
	sum    float64   // share of the sum over axes; the rest is the joint Matérn
	noise  float64   // variance of the noise
}

const sqrt5 = 2.236067977499789696409173668731276235

// matern is the Matérn 5/2 correlation at distance r, and its slope divided by -r.
func matern(r float64) (value, slope float64) {
	e := math.Exp(-sqrt5 * r)
	return (1 + sqrt5*r + 5./3*r*r) * e, 5. / 3 * (1 + sqrt5*r) * e
}

// correlation of two points; steps are the distances along the axes. Where slopes is
// not nil, it receives the derivatives with respect to the logarithms of the lengths,
// and last that with respect to the share of the sum.
func (h hyper) correlation(steps, slopes []float64) float64 {
	axes := float64(len(steps))
	r2, sum := 0.0, 0.0
	for a, d := range steps {
		u := d / h.length[a]
		r2 += u * u
		v, s := matern(math.Abs(u))
		sum += v / axes
		if slopes != nil {
			slopes[a] = h.sum / axes * s * u * u
		}
	}
	joint, s := matern(math.Sqrt(r2))
	if slopes != nil {
		for a, d := range steps {
			u := d / h.length[a]
			slopes[a] += (1 - h.sum) * s * u * u
		}
		slopes[len(steps)] = sum - joint
	}
	return (1-h.sum)*joint + h.sum*sum
}

// steps writes the distances of two points along the axes to out; unequal words are 1
// apart.
func steps(p, q []float64, words []bool, out []float64) {
	for a := range p {
		out[a] = math.Abs(p[a] - q[a])
		if words[a] && out[a] != 0 {
			out[a] = 1
		}
	}
}
