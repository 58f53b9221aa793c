package collector

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSilent means that a source does not answer: a read of it hangs in the kernel.
var ErrSilent = errors.New("does not answer")

const (
	// callPatience is how long a source may take before the others go on without it. A
	// reading of a job of thousands of threads takes a tenth of that.
	callPatience = 2 * time.Second
	// Patience is how long a source may take to say what it is.
	Patience = 5 * time.Second
)

// Worker makes the calls of one source, one at a time and each in its own goroutine, so that
// a source that hangs in the kernel holds up no other. Until the call that hangs returns, the
// worker refuses others. A worker belongs to one goroutine.
type Worker struct {
	name string

	mu      sync.Mutex
	calling bool
	since   time.Time // when the call began that hangs; zero = none
	later   []func()  // to be done when it returns
}

// NewWorker returns the worker of a source.
func NewWorker(name string) *Worker { return &Worker{name: name} }

// Each makes a call for each of n things in one goroutine, since to change to another and
// back costs as much as a reading. It returns an ErrSilent if one of them takes too long: the
// caller must not look at what any of them writes then.
func (w *Worker) Each(n int, call func(i int)) error { return w.each(callPatience, n, call) }

func (w *Worker) each(patience time.Duration, n int, call func(i int)) error {
	if err := w.Stuck(); err != nil || n == 0 {
		return err
	}
	var steps atomic.Int64
	var left atomic.Bool // the caller does not wait any more
	began, done := time.Now(), make(chan struct{})
	w.calling = true // no other goroutine is there to see it
	go func() {
		for i := 0; i < n && !left.Load(); i++ {
			call(i)
			steps.Add(1)
		}
		w.returned()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return nil
		case <-timer.C:
		}
		now := steps.Load()
		if now == last {
			break
		}
		last, began = now, time.Now()
		timer.Reset(patience)
	}
	left.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.calling:
		w.since = began
		return w.silence()
	case steps.Load() < int64(n):
		return fmt.Errorf("%s: %w in time", w.name, ErrSilent)
	}
	return nil
}

// returned does what waited for the call.
func (w *Worker) returned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.later) > 0 {
		f := w.later[0]
		w.later = w.later[1:]
		w.mu.Unlock()
		f()
		w.mu.Lock()
	}
	w.since, w.calling = time.Time{}, false
}

// Then runs f when no call hangs: now, or as soon as that has returned.
func (w *Worker) Then(f func()) {
	w.mu.Lock()
	hangs := !w.since.IsZero()
	if hangs {
		w.later = append(w.later, f)
	}
	w.mu.Unlock()
	if !hangs {
		f()
	}
}

// Stuck returns an ErrSilent that says since when, if a call hangs.
func (w *Worker) Stuck() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silence()
}

func (w *Worker) silence() error {
	if w.since.IsZero() {
		return nil
	}
	return fmt.Errorf("%s: %w since %s", w.name, ErrSilent, w.since.UTC().Format(time.RFC3339))
}

// Get makes a call through a worker and returns what it returned, or an ErrSilent.
func Get[T any](w *Worker, call func() (T, error)) (T, error) { return GetIn(callPatience, w, call) }

// GetIn is Get with another patience.
func GetIn[T any](patience time.Duration, w *Worker, call func() (T, error)) (none T, _ error) {
	got, failed := new(T), new(error)
	if err := w.each(patience, 1, func(int) { *got, *failed = call() }); err != nil {
		return none, err
	}
	return *got, *failed
}

// Ask makes one call that may hang, within Patience. An ErrSilent names no time, since it
// becomes a label of a metric.
func Ask[T any](name string, call func() (T, error)) (T, error) {
	v, err := GetIn(Patience, NewWorker(name), call)
	if errors.Is(err, ErrSilent) {
		err = fmt.Errorf("%s: %w", name, ErrSilent)
	}
	return v, err
}
