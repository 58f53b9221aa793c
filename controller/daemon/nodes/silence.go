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

// The states of an exporter, as they were logged last.
const (
	answering = "answering"
	silent    = "silent"
	refusing  = "refusing"
)

// Count counts the exporters that had requests lately by their state: answering, silent or
// refusing.
func (e *Exporters) Count() map[string]int {
	out := map[string]int{answering: 0, silent: 0, refusing: 0}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.known {
		out[x.state]++
	}
	return out
}

type exporter struct {
	name  string // empty where one knows everything
	meter Meter
	close func()

	about   api.Node
	aboutAt time.Time

	state  string
	err    error // why it is silent
	trial  bool  // it has not answered yet: one call passes at a time
	again  time.Time
	wait   time.Duration // before again; 0: calls pass
	trying bool

	used   time.Time
	inside int // calls under way
}

func (e *Exporters) enter(node string) (*exporter, error) {
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
		x = &exporter{name: key, meter: meter, close: closer, state: answering, trial: e.many()}
		e.known[key] = x
	}
	x.used = now
	switch {
	case !x.again.IsZero():
		e.try(x, now)
		return nil, x.err
	case x.trial && x.inside > 0 && x.err != nil:
		return nil, x.err
	case x.trial && x.inside > 0:
		return nil, fmt.Errorf("%w: the exporter of node %s has not answered anything yet", api.ErrUnavailable, x.name)
	}
	x.inside++
	return x, nil
}

func isSilence(err error) bool {
	return errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// leave counts the caller out. Counts says whether err is evidence about the exporter, which
// is logged where its state changed.
func (e *Exporters) leave(x *exporter, err error, counts bool) {
	e.mu.Lock()
	x.inside--
	was := x.state
	switch {
	case !counts:
	case isSilence(err):
		x.state, x.err = silent, err
		if x.name != "" {
			x.err = fmt.Errorf("exporter of node %s does not answer: %w", x.name, err)
		}
		if x.again.IsZero() { // else another call has just failed
			x.wait = min(max(2*x.wait, firstWait), lastWait)
			x.again = time.Now().Add(x.wait)
		}
	default:
		x.wait, x.again, x.trial, x.state = 0, time.Time{}, false, answering
		if errors.Is(err, api.ErrDenied) {
			x.state = refusing
		}
	}
	is := x.state
	e.mu.Unlock()
	log := e.log
	if x.name != "" {
		log = log.With("node", x.name)
	}
	switch {
	case is == was:
	case is == silent:
		log.Warn("the exporter does not answer; jobs run on and are not tuned", "error", err)
	case is == refusing:
		log.Warn("the exporter refuses the controller; jobs run on and are not tuned", "error", err)
	default:
		log.Info("the exporter answers again")
	}
}

// try asks a silent exporter in the background. The caller holds the lock.
func (e *Exporters) try(x *exporter, now time.Time) {
	if x.trying || now.Before(x.again) || e.tries >= maxTries {
		return
	}
	x.trying = e.run(patience, func(ctx context.Context) {
		_, err := x.meter.Node(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		x.trying = false
		e.tries--
		if isSilence(err) {
			x.wait = min(2*x.wait, lastWait)
			x.again = time.Now().Add(x.wait)
			return
		}
		// The next call passes alone, and its result decides the state: some exporters
		// describe themselves and give no samples.
		x.again, x.trial = time.Time{}, true
	})
	if x.trying {
		e.tries++
	}
}

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
