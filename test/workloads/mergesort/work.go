package mergesort

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	keys   = 1_300_000
	sorts  = 5 // per epoch
	pieces = 64
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "sort",
		Summary: "sort random keys with a parallel merge sort, allocating for each",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Sorter sorts one array of keys after the other.
type Sorter struct {
	params epochs.Params
	digest uint64 // of all keys so far; the next ones are drawn from it
}

// New makes a sorter.
func New(p epochs.Params) *Sorter { return &Sorter{params: p} }

// Epoch draws and sorts so many arrays.
func (s *Sorter) Epoch(_ context.Context, n int) (epochs.Result, error) {
	wrong, pairs := 0.0, 0.0
	for i := range sorts {
		s.digest = epochs.Mix(s.digest, uint64(n)<<16|uint64(i))
		sorted := Sort(s.params.Team, s.draw(s.params.Size(keys, 1000)))
		wrong += s.params.Team.Sum(pieces, func(piece int) float64 {
			lo, hi := team.Span(len(sorted)-1, pieces, piece)
			bad := 0
			for k := lo; k < hi; k++ {
				if sorted[k] > sorted[k+1] {
					bad++
				}
			}
			return float64(bad)
		})
		pairs += float64(len(sorted) - 1)
		s.digest = epochs.Mix(s.digest, sorted[len(sorted)/2]^sorted[0])
	}
	return epochs.Result{Loss: wrong / pairs, Acc: 1 - wrong/pairs}, nil
}

func (s *Sorter) draw(n int) []uint64 {
	out := make([]uint64, n)
	seed, _ := s.params.Stream(0)
	s.params.Team.Each(pieces, func(piece int) {
		rng := rand.NewPCG(epochs.Mix(seed, s.digest), uint64(piece))
		lo, hi := team.Span(n, pieces, piece)
		for i := lo; i < hi; i++ {
			out[i] = rng.Uint64()
		}
	})
	return out
}

// Save writes the digest.
func (s *Sorter) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.digest) }

// Load reads what Save wrote.
func (s *Sorter) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &s.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
