package kmeans

import (
	"math"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func params(scale float64) epochs.Params {
	return epochs.Params{Input: 1, Seed: 1, Scale: scale, Epochs: 6, Team: team.New(2)}
}

func TestTheInertiaNeverRises(t *testing.T) {
	t.Parallel()
	c := New(params(0.01))
	last := math.Inf(1)
	var first, acc float64
	for n := 1; n <= 8; n++ {
		r, err := c.Epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if r.Loss > last*(1+1e-6) {
			t.Errorf("epoch %d: inertia %g after %g", n, r.Loss, last)
		}
		if n == 1 {
			first = r.Loss
		}
		last, acc = r.Loss, r.Acc
	}
	if last > 0.97*first || acc < 0.7 {
		t.Errorf("inertia %g at first, %g at last, %g explained: want it to get better", first, last, acc)
	}
}

func TestOnePassIsWhatPlainArithmeticSays(t *testing.T) {
	t.Parallel()
	c := New(params(0.001))
	before := c.centres
	got, err := c.Epoch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var sum [clusters][dims]float64
	var count [clusters]float64
	inertia := 0.0
	for _, p := range c.points {
		best, near := 0, math.Inf(1)
		for k, centre := range before {
			d := 0.0
			for i := range p {
				d += math.Pow(float64(p[i])-float64(centre[i]), 2)
			}
			if d < near {
				best, near = k, d
			}
		}
		inertia += near
		count[best]++
		for i := range p {
			sum[best][i] += float64(p[i])
		}
	}
	if want := inertia / float64(len(c.points)); math.Abs(got.Loss-want) > 1e-4*want {
		t.Errorf("inertia %g, want %g", got.Loss, want)
	}
	for k := range sum {
		for i := range dims {
			want := float64(before[k][i])
			if count[k] > 0 {
				want = sum[k][i] / count[k]
			}
			if d := math.Abs(float64(c.centres[k][i]) - want); d > 1e-3 {
				t.Errorf("centre %d, coordinate %d: off by %g", k, i, d)
			}
		}
	}
}
