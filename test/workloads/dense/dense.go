package dense

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	trainExamples = 11_500
	testExamples  = 4000

	momentum   = 0.9
	decay      = 5e-4
	rate       = 0.004 // for a batch of rateBatch, at its highest
	rateBatch  = 8
	warmEpochs = 2 // that the rate takes to rise

	batchPieces  = 8  // that a batch is cut into
	weightPieces = 16 // that the weights are cut into for the update
	judgePieces  = 32
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "dense",
		Summary: "train a dense network by mini-batch gradient descent (BATCH_SIZE)",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Trainer is a network, its optimiser and its examples.
type Trainer struct {
	params epochs.Params
	train  set
	test   set
	layers []layer

	// what the checkpoint holds
	w        []float32
	velocity []float32

	grad    [batchPieces][]float32
	scratch [judgePieces]*scratch
}

// New makes the examples and an untrained network.
func New(p epochs.Params) *Trainer {
	t := &Trainer{params: p}
	w := newWorld(p)
	t.train = w.draw(p, p.Size(trainExamples, 64), 1)
	t.test = w.draw(p, max(int(testExamples*min(p.Scale, 1)), 64), 2)
	var total int
	t.layers, total = layers(features, 192, 96, classes)
	t.w = initial(t.layers, total, rand.New(rand.NewPCG(p.Stream(3))))
	t.velocity = make([]float32, total)
	for i := range t.grad {
		t.grad[i] = make([]float32, total)
	}
	for i := range t.scratch {
		t.scratch[i] = newScratch(t.layers)
	}
	return t
}

// Epoch passes once over the training examples, in an order of its own, and
// judges the network on those held out.
func (t *Trainer) Epoch(_ context.Context, n int) (epochs.Result, error) {
	order := rand.New(rand.NewPCG(t.params.Stream(1<<48 | uint64(n)))).Perm(t.train.len())
	loss := 0.0
	for lo := 0; lo < len(order); lo += t.params.Batch {
		batch := order[lo:min(lo+t.params.Batch, len(order))]
		at := float64(n-1) + float64(lo)/float64(len(order))
		loss += t.step(batch, learningRate(at, t.params.Epochs, t.params.Batch))
	}
	loss /= float64(len(order))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return epochs.Result{}, errors.New("the loss is not finite: the learning rate is too high for this batch size")
	}
	return epochs.Result{Loss: loss, Acc: t.judge()}, nil
}

// learningRate rises over the first epochs and then falls along a cosine to
// nothing at the end of the last one.
func learningRate(at float64, total, batch int) float64 {
	top := rate * float64(batch) / rateBatch
	if at < warmEpochs {
		low := min(rate, top)
		return low + (top-low)*at/warmEpochs
	}
	return top * (1 + math.Cos(math.Pi*at/float64(total))) / 2
}

// step updates the weights by one batch and returns the sum of its losses.
func (t *Trainer) step(batch []int, rate float64) float64 {
	pieces := min(batchPieces, len(batch))
	loss := t.params.Team.Sum(pieces, func(piece int) float64 {
		lo, hi := team.Span(len(batch), pieces, piece)
		grad := t.grad[piece]
		clear(grad)
		sum := 0.0
		for _, i := range batch[lo:hi] {
			sum += learn(t.layers, t.w, grad, t.train.row(i), int(t.train.label[i]), t.scratch[piece])
		}
		return sum
	})
	share := 1 / float32(len(batch))
	t.params.Team.Each(weightPieces, func(piece int) {
		lo, hi := team.Span(len(t.w), weightPieces, piece)
		first := t.grad[0][lo:hi]
		for _, g := range t.grad[1:pieces] {
			axpy(1, g[lo:hi], first)
		}
		descend(t.w[lo:hi], t.velocity[lo:hi], first, share, float32(rate))
	})
	return loss
}

// descend is a step of gradient descent with momentum and weight decay.
func descend(w, velocity, grad []float32, share, rate float32) {
	velocity, grad = velocity[:len(w)], grad[:len(w)]
	for i, v := range w {
		velocity[i] = momentum*velocity[i] + share*grad[i] + decay*v
		w[i] = v - rate*velocity[i]
	}
}

// judge is the share of the held-out examples that the network names rightly.
func (t *Trainer) judge() float64 {
	right := t.params.Team.Sum(judgePieces, func(piece int) float64 {
		lo, hi := team.Span(t.test.len(), judgePieces, piece)
		n := 0
		for i := lo; i < hi; i++ {
			if best(forward(t.layers, t.w, t.test.row(i), t.scratch[piece])) == int(t.test.label[i]) {
				n++
			}
		}
		return float64(n)
	})
	return right / float64(t.test.len())
}

// Save writes the weights and their velocities.
func (t *Trainer) Save(w io.Writer) error {
	return errors.Join(binary.Write(w, binary.LittleEndian, t.w), binary.Write(w, binary.LittleEndian, t.velocity))
}

// Load reads what Save wrote.
func (t *Trainer) Load(r io.Reader) error {
	for _, part := range [][]float32{t.w, t.velocity} {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return fmt.Errorf("read weights: %w", err)
		}
	}
	return nil
}
