package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
)

const (
	denseTrain   = 11_500 // examples
	denseTest    = 4000
	denseIn      = 96 // features
	denseLatent  = 12
	denseClasses = 10
	denseClouds  = 3   // per class
	denseSpread  = 0.8 // of a cloud, where cloud centres are about 1 apart per dimension
	denseNoise   = 0.1 // of a feature

	momentum   = 0.9
	decay      = 5e-4
	rate       = 0.004 // for a batch of rateBatch, at its highest
	rateBatch  = 8
	warmEpochs = 2 // that the rate takes to rise

	batchPieces  = 8  // that a batch is cut into
	weightPieces = 16 // that the weights are cut into for the update
	judgePieces  = 32
)

// dense trains a network by mini-batch gradient descent. The task is synthetic but must be
// learned: classes are several clouds each, bent by a random map. The learning rate grows
// with the batch (Goyal et al., "Accurate, large minibatch SGD", 2017), so that larger
// batches reach the same accuracy with fewer and cheaper updates. Examples of a batch are
// cut into a fixed number of pieces whose gradients are added in order, so that the result
// is the same on any number of threads.
type dense struct {
	params      params
	train, test examples
	layers      []layer
	w, velocity []float32
	grad        [batchPieces][]float32
	scratch     [judgePieces]*scratch
}

func newDense(p params) (work, error) {
	t := &dense{params: p}
	w := newCloudWorld(p)
	t.train = w.draw(p, p.size(denseTrain, 64), 1)
	t.test = w.draw(p, max(int(denseTest*min(p.scale, 1)), 64), 2)
	var total int
	t.layers, total = layers(denseIn, 192, 96, denseClasses)
	t.w = initial(t.layers, total, rand.New(rand.NewPCG(p.stream(3))))
	t.velocity = make([]float32, total)
	for i := range t.grad {
		t.grad[i] = make([]float32, total)
	}
	for i := range t.scratch {
		t.scratch[i] = newScratch(t.layers)
	}
	return t, nil
}

// epoch passes once over the training examples, in its own order, and judges the
// network on those held out.
func (t *dense) epoch(_ context.Context, n int) (result, error) {
	order := rand.New(rand.NewPCG(t.params.stream(1<<48 | uint64(n)))).Perm(t.train.len())
	loss := 0.0
	for lo := 0; lo < len(order); lo += t.params.batch {
		at := float64(n-1) + float64(lo)/float64(len(order))
		loss += t.step(order[lo:min(lo+t.params.batch, len(order))], learningRate(at, t.params.epochs, t.params.batch))
	}
	loss /= float64(len(order))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return result{}, errors.New("the loss is not finite: the learning rate is too high for this batch size")
	}
	return result{loss: loss, acc: t.judge()}, nil
}

// learningRate rises over the first epochs and then falls along a cosine to nothing at the
// end of the last one.
func learningRate(at float64, total, batch int) float64 {
	top := rate * float64(batch) / rateBatch
	if at < warmEpochs {
		low := min(rate, top)
		return low + (top-low)*at/warmEpochs
	}
	return top * (1 + math.Cos(math.Pi*at/float64(total))) / 2
}

// step updates the weights by one batch, with momentum and weight decay, and returns the
// sum of its losses.
func (t *dense) step(batch []int, rate float64) float64 {
	n := min(batchPieces, len(batch))
	loss := t.params.team.sum(n, func(piece int) float64 {
		lo, hi := span(len(batch), n, piece)
		grad := t.grad[piece]
		clear(grad)
		sum := 0.0
		for _, i := range batch[lo:hi] {
			sum += learn(t.layers, t.w, grad, t.train.row(i), int(t.train.label[i]), t.scratch[piece])
		}
		return sum
	})
	share, by := 1/float32(len(batch)), float32(rate)
	t.params.team.each(weightPieces, func(piece int) {
		lo, hi := span(len(t.w), weightPieces, piece)
		w, velocity, grad := t.w[lo:hi], t.velocity[lo:hi], t.grad[0][lo:hi]
		for _, g := range t.grad[1:n] {
			axpy(1, g[lo:hi], grad)
		}
		velocity, grad = velocity[:len(w)], grad[:len(w)]
		for i, v := range w {
			velocity[i] = momentum*velocity[i] + share*grad[i] + decay*v
			w[i] = v - by*velocity[i]
		}
	})
	return loss
}

// judge is the share of the held-out examples that the network names correctly.
func (t *dense) judge() float64 {
	correct := t.params.team.sum(judgePieces, func(piece int) float64 {
		lo, hi := span(t.test.len(), judgePieces, piece)
		n := 0
		for i := lo; i < hi; i++ {
			if best(forward(t.layers, t.w, t.test.row(i), t.scratch[piece])) == int(t.test.label[i]) {
				n++
			}
		}
		return float64(n)
	})
	return correct / float64(t.test.len())
}

func (t *dense) state() []any { return []any{t.w, t.velocity} }

// examples are labelled, one row of features after the other.
type examples struct {
	x     []float32
	label []uint8
}

func (s examples) len() int { return len(s.label) }

func (s examples) row(i int) []float32 { return s.x[i*denseIn : (i+1)*denseIn] }

// cloudWorld is what the examples of one input are drawn from.
type cloudWorld struct {
	centre [denseClasses * denseClouds][denseLatent]float64
	bend   [denseIn][denseLatent]float64
}

func newCloudWorld(p params) *cloudWorld {
	rng := rand.New(rand.NewPCG(p.stream(0)))
	w := new(cloudWorld)
	for i := range w.centre {
		for d := range w.centre[i] {
			w.centre[i][d] = 1.2 * rng.NormFloat64()
		}
	}
	for f := range w.bend {
		for d := range w.bend[f] {
			w.bend[f][d] = rng.NormFloat64() / math.Sqrt(denseLatent)
		}
	}
	return w
}

// draw makes n examples; stream keeps those for training and for judging apart.
func (w *cloudWorld) draw(p params, n int, stream uint64) examples {
	s := examples{x: make([]float32, n*denseIn), label: make([]uint8, n)}
	p.team.each(pieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.stream(stream<<32 | uint64(piece))))
		lo, hi := span(n, pieces, piece)
		var z [denseLatent]float64
		for i := lo; i < hi; i++ {
			cloud := rng.IntN(denseClasses * denseClouds)
			s.label[i] = uint8(cloud % denseClasses)
			for d := range z {
				z[d] = w.centre[cloud][d] + denseSpread*rng.NormFloat64()
			}
			row := s.row(i)
			for f := range row {
				v := denseNoise * rng.NormFloat64()
				for d, b := range w.bend[f] {
					v += b * z[d]
				}
				row[f] = float32(math.Tanh(v))
			}
		}
	})
	return s
}
