package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// Figure is a number of a report. One that is not finite is unknown: JSON has null for it
// and text a dash.
type Figure float64

// Unknown returns the figure that says nothing.
func Unknown() Figure { return Figure(math.NaN()) }

// Known reports whether a figure says anything.
func (f Figure) Known() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// MarshalJSON writes null for what is unknown.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// Print writes a figure with a fixed number of digits, or a dash.
func (f Figure) Print(digits int) string {
	if !f.Known() {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, float64(f))
}

// Share is a part of a whole, unknown where the whole is nothing.
func Share(part, whole int) Figure { return Figure(float64(part) / float64(whole)) }

// Mean is the mean of the known figures, unknown without any.
func Mean[F ~float64](all []F) Figure {
	sum, n := 0.0, 0.0
	for _, v := range all {
		if Figure(v).Known() {
			sum, n = sum+float64(v), n+1
		}
	}
	return Figure(sum / n)
}

// Interval is where the mean of figures lies with 95 % certainty, unknown where there are less than two.
func Interval[F ~float64](all []F) (low, high Figure) {
	mean, n := float64(Mean(all)), float64(len(all))
	if n < 2 {
		return Unknown(), Unknown()
	}
	squares := tuning.Sum(all, func(v F) float64 { return (float64(v) - mean) * (float64(v) - mean) })
	by := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * math.Sqrt(squares/(n-1)/n)
	return Figure(mean - by), Figure(mean + by)
}

// Geometric is the geometric mean of what natural logarithms stand for.
func Geometric[F ~float64](logs []F) Figure { return Figure(math.Exp(float64(Mean(logs)))) }

// GeometricOf is the geometric mean of ratios.
func GeometricOf[F ~float64](ratios []F) Figure {
	return Geometric(tuning.Each(ratios, func(v F) float64 { return math.Log(float64(v)) }))
}

// Range is the least and the greatest of the known figures, unknown where there are none.
func Range[F ~float64](all []F) (least, greatest Figure) {
	least, greatest = Figure(math.Inf(1)), Figure(math.Inf(-1))
	for _, v := range all {
		if Figure(v).Known() {
			least, greatest = min(least, Figure(v)), max(greatest, Figure(v))
		}
	}
	return least, greatest
}

// Median is the middle of figures, unknown where there are none or it is not finite.
func Median[F ~float64](all []F) Figure {
	if len(all) == 0 {
		return Unknown()
	}
	sorted := slices.Sorted(slices.Values(all))
	return Figure((sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2)
}

// ErrInput marks choices and tables that cannot be evaluated.
var ErrInput = errors.New("invalid input")

// Invalid is an ErrInput that says what was found and what is wanted.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, args...))
}

// Want is nil where ok, else an Invalid. The first of several is cmp.Or of them.
func Want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return Invalid(format, args...)
}

// Yes is the share of one thing: all of it, or none.
func Yes(is bool) Figure {
	if is {
		return 1
	}
	return 0
}

// ShareOf is the share of a list for which holds is true.
func ShareOf[T any](all []T, holds func(T) bool) Figure {
	return Share(len(Only(all, holds)), len(all))
}

// Only returns the elements of a list for which holds is true.
func Only[T any](all []T, holds func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !holds(one) })
}

// Indices returns 0 to len(all)-1.
func Indices[T any](all []T) []int {
	out := make([]int, len(all))
	for i := range out {
		out[i] = i
	}
	return out
}

// Least is the first of those that cost least, and its cost. One of unknown or infinite
// cost is not taken; where none is left, nothing costs +Inf.
func Least[T any](all []T, cost func(T) float64) (best T, least float64) {
	least = math.Inf(1)
	for _, one := range all {
		if c := cost(one); c < least {
			best, least = one, c
		}
	}
	return best, least
}
