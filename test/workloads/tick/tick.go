package tick

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/test/workloads/epochs"
)

// ErrBusy is returned where another run has the journal.
var ErrBusy = errors.New("another run has the journal open")

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "tick",
		Summary: "wait --epoch-seconds an epoch and note it in --journal",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p) },
	}
}

// Ticker waits and notes.
type Ticker struct {
	length  time.Duration
	total   int
	journal *os.File // nil = none
	last    uint32
}

// New opens the journal, if there is one, and locks it for as long as the process
// lives.
func New(p epochs.Params) (*Ticker, error) {
	t := &Ticker{length: p.EpochLength, total: p.Epochs}
	if p.Journal == "" {
		return t, nil
	}
	f, err := os.OpenFile(p.Journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, errors.Join(fmt.Errorf("lock journal %s: %w", p.Journal, err), f.Close())
	}
	t.journal = f
	return t, nil
}

// Epoch waits and then notes the epoch's number with one write. The loss is the
// share of the work that is left, acc the share that is done.
func (t *Ticker) Epoch(ctx context.Context, n int) (epochs.Result, error) {
	timer := time.NewTimer(t.length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return epochs.Result{}, context.Cause(ctx)
	case <-timer.C:
	}
	if t.journal != nil {
		if _, err := fmt.Fprintf(t.journal, "%d\n", n); err != nil {
			return epochs.Result{}, fmt.Errorf("write journal: %w", err)
		}
	}
	t.last = uint32(n)
	done := float64(n) / float64(t.total)
	return epochs.Result{Loss: 1 - done, Acc: done}, nil
}

// Close closes the journal.
func (t *Ticker) Close() error {
	if t.journal == nil {
		return nil
	}
	return t.journal.Close()
}

// Save writes the number of the last epoch.
func (t *Ticker) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, t.last) }

// Load reads what Save wrote.
func (t *Ticker) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &t.last); err != nil {
		return fmt.Errorf("read last epoch: %w", err)
	}
	return nil
}
