package progress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"pitchpipe/exporter/api"
)

// maxWaiting bounds the reports that wait for an exporter that is away.
const maxWaiting = 4096

// outbox delivers reports in order, one at a time, so that the reading never
// waits for the exporter and each line keeps the time at which it was read.
type outbox struct {
	log    *slog.Logger
	pause  time.Duration
	report func(context.Context, api.Report) error
	begins time.Duration // for how long a job that is not known may be beginning; 0 = without end
	absent bool          // it is not: what comes is tried once
	wake   chan struct{}

	mu       sync.Mutex
	waiting  []api.Report
	lost     int
	finished bool
}

func newOutbox(log *slog.Logger, pause time.Duration, report func(context.Context, api.Report) error) *outbox {
	return &outbox{log: log, pause: pause, report: report, wake: make(chan struct{}, 1)}
}

func (o *outbox) put(r api.Report) {
	o.mu.Lock()
	if len(o.waiting) >= maxWaiting {
		o.waiting = o.waiting[1:]
		o.lost++
	}
	o.waiting = append(o.waiting, r)
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) finish() {
	o.mu.Lock()
	o.finished = true
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// next takes the oldest report; done means that there will be no more.
func (o *outbox) next() (r api.Report, ok, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return api.Report{}, false, o.finished
	}
	r = o.waiting[0]
	o.waiting = o.waiting[1:]
	return r, true, false
}

// run delivers until finish was called and nothing waits, or ctx ends.
func (o *outbox) run(ctx context.Context) error {
	var refused error
	for {
		r, ok, done := o.next()
		if done {
			return errors.Join(refused, o.losses(0))
		}
		if !ok {
			select {
			case <-o.wake:
			case <-ctx.Done():
				return errors.Join(refused, o.losses(0))
			}
			continue
		}
		err := o.deliver(ctx, r)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return errors.Join(refused, o.losses(1), err)
		case refused == nil:
			refused = err
			o.log.Warn("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		default:
			o.log.Debug("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		}
	}
}

// deliver tries until the exporter takes or refuses the report, or ctx ends.
func (o *outbox) deliver(ctx context.Context, r api.Report) error {
	pause, since := o.pause, time.Now()
	for attempt := 1; ; attempt++ {
		err := o.report(ctx, r)
		if err == nil {
			o.absent = false
		}
		if err == nil || errors.Is(err, api.ErrDenied) || errors.Is(err, api.ErrInvalid) {
			return err
		}
		if errors.Is(err, api.ErrNotFound) && o.begins > 0 && (o.absent || time.Since(since) >= o.begins) {
			o.absent = true
			return err
		}
		if attempt == 1 {
			o.log.Info("progress report waits for the exporter", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (o *outbox) losses(inHand int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := o.lost + len(o.waiting) + inHand; n > 0 {
		return fmt.Errorf("progress: %d reports were not delivered: %w", n, api.ErrUnavailable)
	}
	return nil
}
