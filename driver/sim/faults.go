package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"pitchpipe/driver"
)

// The operations that Config.Faults is asked about. OpEvent is the delivery of
// one event to a watcher: an error breaks that stream.
const (
	OpStart   = "start"
	OpAdvance = "advance"
	OpCheck   = "check"
	OpOutlook = "outlook"
	OpWatch   = "watch"
	OpEvent   = "event"
	OpGet     = "get"
	OpList    = "list"
	OpStop    = "stop"
	OpLogs    = "logs"
	OpWindow  = "window"
	OpNode    = "node"
)

// Fault is one entry of a script of faults.
type Fault struct {
	Op  string
	Job driver.JobID // empty = any
	Nth int          // which matching call fails, from 1; 0 = every one
	Err error
}

// Script makes a Config.Faults of a list: the first fault that matches a call
// strikes. It is safe for concurrent use.
func Script(faults ...Fault) func(op string, job driver.JobID) error {
	var mu sync.Mutex
	calls := make([]int, len(faults))
	return func(op string, job driver.JobID) error {
		mu.Lock()
		defer mu.Unlock()
		var err error
		for i, f := range faults {
			if f.Op != op || f.Job != "" && f.Job != job {
				continue
			}
			calls[i]++
			if err == nil && (f.Nth == 0 || f.Nth == calls[i]) {
				err = f.Err
			}
		}
		return err
	}
}

// do runs one operation under the lock, at the present instant, with the faults
// that the configuration wants.
func (c *Cluster) do(ctx context.Context, op string, id driver.JobID, f func() error) error {
	what := op
	if id != "" {
		what += " " + string(id)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var fault error
	if c.cfg.Faults != nil {
		fault = c.cfg.Faults(op, id)
	}
	switch {
	case errors.Is(fault, ErrNotTaken):
		return fmt.Errorf("%s: %w: %w", what, driver.ErrUnknown, fault)
	case fault != nil && !errors.Is(fault, driver.ErrUnknown):
		return fmt.Errorf("%s: %w", what, fault)
	}
	c.enter()
	defer c.leave()
	if c.closed {
		return fmt.Errorf("%s: %w: %w", what, driver.ErrTransient, errClosed)
	}
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if fault != nil {
		return fmt.Errorf("%s: %w", what, fault)
	}
	return nil
}
