package speed

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nnls finds the x, none below 0, that brings a x nearest to b: the sum of squares plus
// ridge times that of x, each column scaled to length 1 before, so that with a ridge the
// answer is unique. a holds rows. By the active sets of Lawson and Hanson.
func nnls(a [][]float64, b []float64, ridge float64) []float64 {
	if len(a) == 0 {
		return nil
	}
	gram, right, length := normal(a, b, ridge)
	n := len(length)
	x := make([]float64, n)
	free := make([]bool, n)
	for range rounds * n {
		j, ok := steepest(gram, right, x, free, length)
		if !ok {
			break
		}
		free[j] = true
		for {
			z := solve(gram, right, free)
			step, stop := 1.0, -1
			for i := range n {
				if free[i] && z[i] <= 0 && x[i]-z[i] > 0 {
					if s := x[i] / (x[i] - z[i]); stop < 0 || s < step {
						step, stop = s, i
					}
				}
			}
			for i := range n {
				if free[i] {
					x[i] += step * (z[i] - x[i])
				}
			}
			if stop < 0 {
				break
			}
			x[stop], free[stop] = 0, false
		}
	}
	for j := range n {
		x[j] = max(x[j], 0)
		if length[j] > 0 {
			x[j] /= length[j]
		}
	}
	return x
}

const (
	rounds  = 10   // times the columns: far more than it ever needs
	settled = 1e-9 // a slope that is none
)

// normal is the normal equations over columns of length 1; a column of zeros has length
// 0 and stays out.
func normal(a [][]float64, b []float64, ridge float64) (gram [][]float64, right, length []float64) {
	n := len(a[0])
	gram, right, length = make([][]float64, n), make([]float64, n), make([]float64, n)
	for j := range n {
		for _, row := range a {
			length[j] += row[j] * row[j]
		}
		length[j] = math.Sqrt(length[j])
	}
	for j := range n {
		gram[j] = make([]float64, n)
		if length[j] == 0 {
			continue
		}
		for i, row := range a {
			right[j] += row[j] * b[i] / length[j]
			for l := range n {
				if length[l] > 0 {
					gram[j][l] += row[j] * row[l] / length[j] / length[l]
				}
			}
		}
		gram[j][j] += ridge
	}
	return gram, right, length
}

// steepest is the column at its bound whose growth helps most; false: none helps.
func steepest(gram [][]float64, right, x []float64, free []bool, length []float64) (int, bool) {
	best, slope := -1, settled
	for j := range x {
		if free[j] || length[j] == 0 {
			continue
		}
		s := right[j]
		for l := range x {
			s -= gram[j][l] * x[l]
		}
		if s > slope {
			best, slope = j, s
		}
	}
	return best, best >= 0
}

// solve solves the normal equations of the free columns; the others are 0.
func solve(gram [][]float64, right []float64, free []bool) []float64 {
	var at []int
	for j, f := range free {
		if f {
			at = append(at, j)
		}
	}
	g, r := mat.NewSymDense(len(at), nil), mat.NewVecDense(len(at), nil)
	for i, j := range at {
		r.SetVec(i, right[j])
		for l, m := range at[:i+1] {
			g.SetSym(i, l, gram[j][m])
		}
		g.SetSym(i, i, gram[j][j]*(1+tiny))
	}
	out := make([]float64, len(right))
	var chol mat.Cholesky
	var z mat.VecDense
	if !chol.Factorize(g) {
		return out
	}
	_ = chol.SolveVecTo(&z, r) // what its condition costs is below the noise of the data
	for i, j := range at {
		out[j] = z.AtVec(i)
	}
	return out
}

// tiny keeps equal columns apart where there is no ridge.
const tiny = 1e-12
