package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/exporter/api"
)

const (
	// patience bounds each request: an exporter that hangs must not delay the jobs.
	patience = 2 * time.Second
	// A silent exporter is tried after firstWait, then after twice as long each time, up
	// to lastWait.
	firstWait = time.Second
	lastWait  = 10 * time.Second
	// maxTries bounds how many silent exporters are tried at a time.
	maxTries = 16
	// An exporter without requests is forgotten after idle, checked every sweep.
	idle  = 10 * time.Minute
	sweep = time.Minute
)

// health is the state of an exporter that was logged last.
type health int

const (
	answering health = iota
	silent
	refusing
)

func (h health) String() string { return [...]string{"answering", "silent", "refusing"}[h] }

// Count counts the exporters that had requests lately by their state: answering, silent or
// refusing.
func (e *Exporters) Count() map[string]int {
	out := map[string]int{answering.String(): 0, silent.String(): 0, refusing.String(): 0}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.known {
		out[x.health.String()]++
	}
	return out
}

// exporter is that of one node.
type exporter struct {
	name  string // empty where one knows everything
	meter Meter
	close func()

	about   api.Node
	aboutAt time.Time

	health health
	err    error // why it is silent
	shut   bool  // no call passes
	trial  bool  // it has not answered yet: one call passes at a time
	wait   time.Duration
	again  time.Time // when it may be tried
	trying bool
	stop   context.CancelFunc // of the try that is under way

	used   time.Time
	inside int // calls under way
}

// enter finds the exporter of a node and counts the caller in.
func (e *Exporters) enter(ctx context.Context, node string) (*exporter, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.closed {
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, errClosed)
	}
	e.forget(now)
	key := e.key(node)
	x := e.known[key]
	if x == nil {
		if e.many() {
			if err := checkName(node); err != nil {
				return nil, err
			}
		}
		meter, closer, err := e.open(key)
		if err != nil {
			return nil, fmt.Errorf("exporter of node %s: %w", node, err)
		}
		x = &exporter{name: key, meter: meter, close: closer, stop: func() {}, trial: e.many()}
		e.known[key] = x
	}
	x.used = now
	if x.shut {
		e.try(ctx, x, now)
		return nil, x.err
	}
	if x.trial && x.inside > 0 {
		if x.err != nil {
			return nil, x.err
		}
		return nil, fmt.Errorf("%w: the exporter of node %s has not answered anything yet", api.ErrUnavailable, x.name)
	}
	x.inside++
	return x, nil
}

// leave counts the caller out. Counts says whether err is evidence about the exporter.
func (e *Exporters) leave(x *exporter, err error, counts bool) {
	e.mu.Lock()
	x.inside--
	var tell func()
	if counts {
		tell = e.judge(x, err)
	}
	e.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// judge notes the result of a call. It returns a function that logs the new state, or nil
// where the state did not change.
func (e *Exporters) judge(x *exporter, err error) func() {
	now := time.Now()
	was := x.health
	switch {
	case errors.Is(err, api.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		x.health, x.err = silent, err
		if x.name != "" {
			x.err = fmt.Errorf("exporter of node %s does not answer: %w", x.name, err)
		}
		if !x.shut { // else another call has just failed
			x.wait = min(max(2*x.wait, firstWait), lastWait)
			x.shut, x.again = true, now.Add(x.wait)
		}
	case errors.Is(err, api.ErrDenied):
		x.health, x.wait, x.shut, x.trial = refusing, 0, false, false
	default:
		x.health, x.wait, x.shut, x.trial = answering, 0, false, false
	}
	if was == x.health {
		return nil
	}
	log := e.log
	if x.name != "" {
		log = log.With("node", x.name)
	}
	switch x.health {
	case silent:
		return func() { log.Warn("the exporter does not answer; jobs run on and are not tuned", "error", err) }
	case refusing:
		return func() { log.Warn("the exporter refuses the controller; jobs run on and are not tuned", "error", err) }
	case answering:
	}
	return func() { log.Info("the exporter answers again") }
}

// try asks a silent exporter in the background. The caller holds the lock.
func (e *Exporters) try(ctx context.Context, x *exporter, now time.Time) {
	if x.trying || now.Before(x.again) || e.tries >= maxTries {
		return
	}
	x.trying = true
	e.tries++
	// The try outlives the call that started it.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	x.stop = cancel
	e.trying.Go(func() {
		defer cancel()
		_, err := x.meter.Node(limited)
		e.mu.Lock()
		defer e.mu.Unlock()
		x.trying = false
		e.tries--
		if errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			x.wait = min(2*x.wait, lastWait)
			x.again = time.Now().Add(x.wait)
			return
		}
		// The next call passes alone, and its result decides the state: some exporters
		// describe themselves and give no samples.
		x.shut, x.trial = false, true
	})
}

// forget drops the exporters without requests.
func (e *Exporters) forget(now time.Time) {
	if now.Sub(e.swept) < sweep {
		return
	}
	e.swept = now
	for key, x := range e.known {
		if x.inside == 0 && !x.trying && now.Sub(x.used) > idle {
			x.close()
			delete(e.known, key)
		}
	}
}
