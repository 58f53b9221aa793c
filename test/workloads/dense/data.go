package dense

import (
	"math"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	features = 96
	latent   = 12
	classes  = 10
	clouds   = 3   // per class
	spread   = 0.8 // of a cloud, where cloud centres are about 1 apart per dimension
	noise    = 0.1 // of a feature
)

// set is labelled examples, one row of features after the other.
type set struct {
	x     []float32
	label []uint8
}

func (s set) len() int { return len(s.label) }

func (s set) row(i int) []float32 { return s.x[i*features : (i+1)*features] }

// world is what the examples of one input are drawn from.
type world struct {
	centre [classes * clouds][latent]float64
	bend   [features][latent]float64
}

func newWorld(p epochs.Params) *world {
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	w := new(world)
	for i := range w.centre {
		for d := range w.centre[i] {
			w.centre[i][d] = 1.2 * rng.NormFloat64()
		}
	}
	for f := range w.bend {
		for d := range w.bend[f] {
			w.bend[f][d] = rng.NormFloat64() / math.Sqrt(latent)
		}
	}
	return w
}

// draw makes n examples; stream keeps those for training and for judging apart.
func (w *world) draw(p epochs.Params, n int, stream uint64) set {
	s := set{x: make([]float32, n*features), label: make([]uint8, n)}
	const pieces = 64
	p.Team.Each(pieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.Stream(stream<<32 | uint64(piece))))
		lo, hi := team.Span(n, pieces, piece)
		var z [latent]float64
		for i := lo; i < hi; i++ {
			cloud := rng.IntN(classes * clouds)
			s.label[i] = uint8(cloud % classes)
			for d := range z {
				z[d] = w.centre[cloud][d] + spread*rng.NormFloat64()
			}
			row := s.row(i)
			for f := range row {
				v := noise * rng.NormFloat64()
				for d, b := range w.bend[f] {
					v += b * z[d]
				}
				row[f] = float32(math.Tanh(v))
			}
		}
	})
	return s
}
