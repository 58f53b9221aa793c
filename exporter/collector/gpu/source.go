package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// Backend is a way to readings.
type Backend interface {
	Name() string
	// Run passes on readings until ctx ends or it cannot go on, and says why.
	Run(ctx context.Context, emit func(card.Reading)) error
}

// pace is the time between readings for an interval that was asked for, 0 = none: 1 s, at least
// the 100 ms that pitchpipe-gpu asks for, and at most 2 s, however seldom samples are taken.
// Integrated power and sensors of a whole machine need that.
func pace(interval time.Duration) time.Duration {
	return min(max(cmp.Or(interval, time.Second), 100*time.Millisecond), 2*time.Second)
}

// Stale is the age from which on a snapshot says nothing about now.
const Stale = 30 * time.Second

// Snapshot is what is known after a reading. Its readers do not change it.
type Snapshot struct {
	Backend  string // that the reading is of; empty = there was none
	Driver   string
	At       time.Time
	Accounts []Account
	Charges  map[int]Charge
	Why      string // why there is no reading, or the last that went wrong
	// Missing are GPUs that could not be read, with the reason.
	Missing []string

	used float64 // joules of all, those that are gone included
	lost bool    // one that was there recently is not
}

// Source keeps readings coming, from the first backend that gives some, and gives jobs their
// share.
type Source struct {
	log      *slog.Logger
	backends []Backend
	last     atomic.Pointer[Snapshot]
}

// NewSource returns a source of backends that are tried in this order; call Run once.
func NewSource(log *slog.Logger, backends ...Backend) *Source {
	s := &Source{log: cmp.Or(log, slog.New(slog.DiscardHandler)), backends: backends}
	s.last.Store(&Snapshot{Why: "no reading yet"})
	return s
}

// Snapshot returns what the last reading left.
func (s *Source) Snapshot() *Snapshot { return s.last.Load() }

const (
	// tries is how often a backend may end without a reading before the next is tried.
	tries = 3
	// soonest and latest bound the wait before a backend is started again.
	soonest = time.Second
	latest  = time.Minute
	// again is the wait once no backend has given a reading: there is no GPU, or no driver.
	again = 5 * time.Minute
)

// Try takes one reading of the first backend that gives one within patience, so that it
// is known what there is before Run begins. An error says why there is none.
func (s *Source) Try(ctx context.Context, patience time.Duration) error {
	var why []error
	for _, b := range s.backends {
		within, cancel := context.WithTimeout(ctx, patience)
		book := NewBook()
		err := b.Run(within, func(r card.Reading) {
			s.take(b, book, r)
			cancel()
		})
		cancel()
		if s.Snapshot().Backend != "" {
			return nil
		}
		why = append(why, fmt.Errorf("%s: %w", b.Name(), err))
	}
	err := errors.Join(why...)
	s.last.Store(&Snapshot{Why: strings.ReplaceAll(fmt.Sprint(err), "\n", "; ")})
	return err
}

// take enters a reading. It is of the moment in which it arrives: the clock of its program may
// be set.
func (s *Source) take(b Backend, book *Book, r card.Reading) {
	r.At = time.Now()
	book.Add(r)
	now := &Snapshot{Backend: b.Name(), Driver: r.Driver, At: r.At, Accounts: book.Accounts(), Charges: book.Charges(), Missing: r.Missing}
	now.used, now.lost = book.all()
	if was := s.last.Swap(now); !slices.Equal(was.Missing, now.Missing) {
		s.log.Warn("GPUs that cannot be read changed; the others go on", "backend", b.Name(), "missing", now.Missing)
	}
}

// Run reads until ctx ends. A backend that gave readings and ended is started again. After one
// that gives none the next is tried, and after the last the first again, later.
func (s *Source) Run(ctx context.Context) error {
	book := NewBook()
	for ctx.Err() == nil {
		for _, b := range s.backends {
			s.use(ctx, b, book)
		}
		wait(ctx, again)
	}
	return nil
}

// use runs one backend until it gives nothing any more.
func (s *Source) use(ctx context.Context, b Backend, book *Book) {
	delay := soonest
	for failed := 0; failed < tries && ctx.Err() == nil; {
		began, readings := time.Now(), 0
		err := b.Run(ctx, func(r card.Reading) {
			readings++
			s.take(b, book, r)
		})
		if ctx.Err() != nil {
			return
		}
		why := *s.last.Load()
		why.Why = fmt.Sprintf("%s: %v", b.Name(), err)
		s.last.Store(&why)
		s.log.Warn("GPU readings stopped", "backend", b.Name(), "readings", readings, "err", err)
		if failed++; readings > 0 {
			failed = 0
		}
		if time.Since(began) > latest {
			delay = soonest
		}
		if failed < tries {
			wait(ctx, delay)
			delay = min(2*delay, latest)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
