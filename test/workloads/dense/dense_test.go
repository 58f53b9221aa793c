package dense

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func small(batch int) epochs.Params {
	return epochs.Params{Input: 1, Seed: 1, Scale: 0.04, Epochs: 10, Batch: batch, Team: team.New(1)}
}

func TestTheGradientIsTheSlopeOfTheLoss(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	ls, total := layers(7, 6, 5, 4) // no multiples of the unrolled four
	w := initial(ls, total, rng)
	x := make([]float32, 7)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	s := newScratch(ls)
	grad := make([]float32, total)
	learn(ls, w, grad, x, 2, s)
	lossAt := func(i int, by float32) float64 {
		was := w[i]
		defer func() { w[i] = was }()
		w[i] += by
		return learn(ls, w, make([]float32, total), x, 2, s)
	}
	const step = 1e-2
	moved := 0
	for i := range w {
		slope := (lossAt(i, step) - lossAt(i, -step)) / (2 * step)
		if math.Abs(slope-float64(grad[i])) > 2e-3 {
			t.Errorf("weight %d: gradient %.5f, slope %.5f", i, grad[i], slope)
		}
		if grad[i] != 0 {
			moved++
		}
	}
	if moved < total/4 {
		t.Errorf("only %d of %d gradients are not zero: the test proves little", moved, total)
	}
}

func TestLargeBatchesReachTheAccuracyOfSmallOnes(t *testing.T) {
	t.Parallel()
	acc := func(batch int) float64 {
		p := small(batch)
		tr := New(p)
		before := tr.judge()
		var last epochs.Result
		for n := 1; n <= p.Epochs; n++ {
			var err error
			if last, err = tr.Epoch(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if before > 0.3 || last.Acc < 0.85 {
			t.Errorf("batch %d: accuracy %.3f before and %.3f after, want to learn", batch, before, last.Acc)
		}
		return last.Acc
	}
	if a, b := acc(8), acc(64); math.Abs(a-b) > 0.02 {
		t.Errorf("accuracy %.4f with batches of 8 and %.4f with 64", a, b)
	}
}

func TestTheLearningRateGrowsWithTheBatchAndEndsNearZero(t *testing.T) {
	t.Parallel()
	if a, b := learningRate(10, 40, 8), learningRate(10, 40, 64); math.Abs(b/a-8) > 1e-9 {
		t.Errorf("rates %g and %g for batches of 8 and 64, want eight times", a, b)
	}
	if a, b := learningRate(0, 40, 64), learningRate(0, 40, 8); a != b {
		t.Errorf("first rates %g and %g, want the same gentle start", a, b)
	}
	if last := learningRate(39.99, 40, 8); last > rate/1000 {
		t.Errorf("last rate %g", last)
	}
}

func TestExamplesHeldOutAreNotTrainedOn(t *testing.T) {
	t.Parallel()
	tr := New(small(8))
	seen := map[float32]bool{}
	for i := range tr.train.len() {
		seen[tr.train.row(i)[0]] = true
	}
	same := 0
	for i := range tr.test.len() {
		if seen[tr.test.row(i)[0]] {
			same++
		}
	}
	if same > tr.test.len()/10 {
		t.Errorf("%d of %d examples held out begin like one trained on", same, tr.test.len())
	}
}
