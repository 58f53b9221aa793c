package fault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrMissed says that nothing was in the middle of anything that a fault could meet.
var ErrMissed = errors.New("it met nothing")

const (
	// Opportunity is how long a fault waits for something that it can meet.
	Opportunity = 5 * time.Second
	// Patience is how long the jobs of a round may take to begin, or to end once nothing
	// meets them any more: a machine that does other things takes its time.
	Patience = 5 * time.Minute
)

// Round is many jobs and the faults that meet them. Its methods may be called at the same
// time, but for Inject.
type Round struct {
	Number int
	Began  time.Time

	mu         sync.Mutex
	dice       *rand.Rand
	strikes    []Strike
	latest     time.Time // when one met something, or the first job was moved
	complaints []string
	closed     bool // no more faults
	pending    sync.WaitGroup
	cluster    sync.RWMutex // held alone by what befalls all
}

// NewRound is a round whose jobs are about to be submitted; its dice fall as the seed and
// its number say.
func NewRound(seed uint64, number int) *Round {
	return &Round{Number: number, Began: time.Now(), dice: rand.New(rand.NewPCG(seed, uint64(number)))} //nolint:gosec // a small number
}

// Random is one of 0 to n-1.
func (r *Round) Random(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dice.IntN(n)
}

// Complain notes what went wrong apart from the jobs.
func (r *Round) Complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

// Complaints are all that were noted.
func (r *Round) Complaints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.complaints)
}

// Over reports whether there is nothing left that a fault could meet.
func (r *Round) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Strikes are the faults that met something.
func (r *Round) Strikes() []Strike {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.strikes)
}

// Later does something that a fault leaves to be done, such as the end of a hold.
func (r *Round) Later(wait time.Duration, do func() error) {
	r.pending.Go(func() {
		time.Sleep(wait)
		if err := do(); err != nil {
			r.Complain("later: %v", err)
		}
	})
}

// Settle waits for all that was to be done later.
func (r *Round) Settle() { r.pending.Wait() }

// Await waits until the answer is not nil. It is ErrMissed where that takes longer than an
// opportunity, or the round is over.
func (r *Round) Await(ask func() []string) ([]string, error) {
	for end := time.Now().Add(Opportunity); ; time.Sleep(30 * time.Millisecond) {
		if out := ask(); len(out) > 0 {
			return out, nil
		}
		if time.Now().After(end) || r.Over() {
			return nil, ErrMissed
		}
	}
}

// Work is what a round has to do.
type Work struct {
	// Queues are each worked at by itself, one fault after the other. The faults of the
	// last befall everything: such a one comes alone, so that it is known what met a job.
	Queues [][]Fault
	// Inflict does a fault and returns the jobs that it touched, or ErrMissed. It may note
	// in the fault at which point it struck.
	Inflict  func(f *Fault) ([]string, error)
	Families []Family
	// Left counts the jobs that are not at their end, and Moved reports whether one of them is
	// being moved. Both are asked during Inflict.
	Left  func() int
	Moved func() bool
	Log   func(format string, args ...any)
}

// Inject does the faults until all are done or no job is moved any more, and returns what
// is left. A fault that met nothing is tried again at another point.
func (r *Round) Inject(w Work) (left []Fault) {
	stop, begun := make(chan struct{}), make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(w, stop, begun)
	}()
	<-begun
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, queue := range w.Queues {
		wg.Go(func() {
			for len(queue) > 0 && !r.Over() {
				f := queue[0]
				queue = queue[1:]
				err := r.one(w, f, i == len(w.Queues)-1)
				if err == nil {
					continue
				}
				if !errors.Is(err, ErrMissed) {
					r.Complain("%s %s %s: %v", f.Kind, f.Point, f.Action, err)
				}
				if points := Points(w.Families, f.Kind); len(points) > 0 {
					f.Point = points[r.Random(len(points))]
				}
				queue = append(queue, f)
			}
			mu.Lock()
			defer mu.Unlock()
			left = append(left, queue...)
		})
	}
	wg.Wait()
	close(stop)
	<-watched
	return left
}

// one does one fault.
func (r *Round) one(w Work, f Fault, alone bool) error {
	if alone {
		r.cluster.Lock()
		defer r.cluster.Unlock()
	} else {
		r.cluster.RLock()
		defer r.cluster.RUnlock()
	}
	began := time.Now()
	touched, err := w.Inflict(&f)
	say := func(what string) {
		w.Log("round %d: %s %s %s of owner %d after %.1f s: %s", r.Number, f.Kind, f.Point, f.Action, f.Owner, time.Since(began).Seconds(), what)
	}
	if err != nil {
		say(err.Error())
		return err
	}
	say("jobs " + strings.Join(touched, " "))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	r.strikes = append(r.strikes, Strike{Fault: f, Round: r.Number, Touched: touched})
	return nil
}

// watch closes the round once few of its jobs are left, none has been moved for a while,
// or they are moved so seldom that faults meet nothing any more. It says when the first is.
func (r *Round) watch(w Work, stop <-chan struct{}, begun chan<- struct{}) {
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin()
	var last time.Time // when one was moved
	for {
		select {
		case <-stop:
			return
		case <-time.After(500 * time.Millisecond):
		}
		left := w.Left()
		if w.Moved() {
			last = time.Now()
		}
		r.mu.Lock()
		idle := time.Since(r.Began) > Patience
		switch {
		case !r.latest.IsZero():
			idle = time.Since(last) > 3*Opportunity || time.Since(r.latest) > 4*Opportunity
		case !last.IsZero():
			r.latest = last
			begin()
		}
		r.closed = left <= 2 || idle
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return
		}
	}
}
