package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy is returned where another run has the journal.
var errBusy = errors.New("another run has the journal open")

// tick waits and notes each epoch, so that a test sees which were done and how often.
type tick struct {
	params  params
	journal *os.File // nil = none
	last    uint32
}

// newTick opens the journal, if there is one, and locks it for as long as the process lives.
func newTick(p params) (work, error) {
	t := &tick{params: p}
	if p.journal == "" {
		return t, nil
	}
	f, err := os.OpenFile(p.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errBusy
		}
		return nil, errors.Join(fmt.Errorf("lock journal %s: %w", p.journal, err), f.Close())
	}
	t.journal = f
	return t, nil
}

// epoch waits and then notes the epoch's number with one write. The loss is the share of
// the work that is left, acc the share that is done.
func (t *tick) epoch(ctx context.Context, n int) (result, error) {
	timer := time.NewTimer(t.params.epochLength)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	case <-timer.C:
	}
	if t.journal != nil {
		if _, err := fmt.Fprintf(t.journal, "%d\n", n); err != nil {
			return result{}, fmt.Errorf("write journal: %w", err)
		}
	}
	t.last = uint32(n)
	return right(t.params.epochs-n, t.params.epochs), nil
}

func (t *tick) state() []any { return []any{&t.last} }

func (t *tick) Close() error {
	if t.journal == nil {
		return nil
	}
	return t.journal.Close()
}
