package progress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"pitchpipe/exporter/api"
)

// maxWaiting bounds the reports that wait for an exporter that is away.
const maxWaiting = 4096

// outbox delivers reports in order, one at a time, so that the reading never
// waits for the exporter and each line keeps the time at which it was read.
type outbox struct {
	log     *slog.Logger
	pause   time.Duration
	report  func(context.Context, api.Report) error
	begins  time.Duration // for how long a job that is not known may be beginning; 0 = without end
	absent  bool          // it is not: what comes is tried once
	waiting chan api.Report
	lost    int // the oldest ones, when as many waited as there is room for
}

func (o *outbox) put(r api.Report) {
	for {
		select {
		case o.waiting <- r:
			return
		default:
		}
		select {
		case <-o.waiting:
			o.lost++
		default:
		}
	}
}

// run delivers until the reading has ended and nothing waits, or ctx ends, which it does after
// the reading.
func (o *outbox) run(ctx context.Context) error {
	var refused error
	for r := range o.waiting {
		err := o.deliver(ctx, r)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return errors.Join(refused, o.losses(1+len(o.waiting)), err)
		case refused == nil:
			refused = err
			o.log.Warn("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		default:
			o.log.Debug("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		}
	}
	return errors.Join(refused, o.losses(0))
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

func (o *outbox) losses(left int) error {
	if n := o.lost + left; n > 0 {
		return fmt.Errorf("progress: %d reports were not delivered: %w", n, api.ErrUnavailable)
	}
	return nil
}
