package wave

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	points = 1_500_000
	steps  = 240  // per epoch
	speed  = 0.25 // square of the share of a point that the wave runs in a step
	bumps  = 3
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "wave",
		Summary: "let a wave run along a string, threads in step by active waiting",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// String is where its points are, and where they were a step before.
type String struct {
	params    epochs.Params
	now, last []float64
	next      []float64
	energy    float64 // at first
}

// New plucks the string. Its ends are fixed. Small scales have fewer steps and, below a
// hundredth, fewer points.
func New(p epochs.Params) *String {
	one := p
	one.Scale = min(1, 100*p.Scale)
	n := one.Size(points, 64)
	s := &String{params: p, now: make([]float64, n), last: make([]float64, n), next: make([]float64, n)}
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	for b := range bumps {
		height := rng.NormFloat64() / float64(b+1)
		for i := range s.now {
			s.now[i] += height * math.Sin(math.Pi*float64(b+1)*float64(i)/float64(n-1))
		}
	}
	s.now[0], s.now[n-1] = 0, 0
	copy(s.last, s.now)
	s.energy = s.total()
	return s
}

// Epoch does so many steps. The first of the threads is the caller.
func (s *String) Epoch(_ context.Context, _ int) (epochs.Result, error) {
	count, threads := s.params.Size(steps, 2), s.params.Team.Threads()
	var arrived atomic.Int64
	work := func(thread int) {
		now, last, next := s.now, s.last, s.next
		lo, hi := team.Span(len(now)-2, threads, thread)
		for step := range count {
			advance(next[lo+1:hi+1], now[lo:hi+2], last[lo+1:hi+1])
			last, now, next = now, next, last
			arrived.Add(1)
			for arrived.Load() < int64((step+1)*threads) {
				// Looking is all that it does.
			}
		}
	}
	var others sync.WaitGroup
	for thread := 1; thread < threads; thread++ {
		others.Go(func() { work(thread) })
	}
	work(0)
	others.Wait()
	for range count {
		s.last, s.now, s.next = s.now, s.next, s.last
	}
	drift := math.Abs(s.total()/s.energy - 1)
	return epochs.Result{Loss: drift, Acc: max(0, 1-drift)}, nil
}

// advance moves each point by what its neighbours pull; now has one more at either end.
func advance(next, now, last []float64) {
	next, left, right, now := next[:len(last)], now[:len(last)], now[2:2+len(last)], now[1:1+len(last)]
	for i, was := range last {
		v := now[i]
		next[i] = 2*v - was + speed*(left[i]-2*v+right[i])
	}
}

// total is the energy of the wave: of motion and of tension.
func (s *String) total() float64 {
	sum := 0.0
	for i := 1; i < len(s.now); i++ {
		motion := s.now[i] - s.last[i]
		sum += motion*motion + speed*(s.now[i]-s.now[i-1])*(s.last[i]-s.last[i-1])
	}
	return sum
}

// Save writes where the points are and were.
func (s *String) Save(w io.Writer) error {
	for _, part := range [][]float64{s.now, s.last} {
		if err := binary.Write(w, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return nil
}

// Load reads what Save wrote.
func (s *String) Load(r io.Reader) error {
	for _, part := range [][]float64{s.now, s.last} {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return fmt.Errorf("read points: %w", err)
		}
	}
	return nil
}
