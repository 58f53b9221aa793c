package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/store"
	"pitchpipe/controller/store/mirror"
)

// Errors of a controller that shares its state.
var (
	// ErrStandby means that another controller leads, and this one only answers.
	ErrStandby = errors.New("this controller stands by")
	// ErrDeposed means that this controller does not lead any more. What it was doing
	// is durable and goes on at the next leader.
	ErrDeposed = errors.New("this controller does not lead any more")
)

// What lies in the shared store, by its first word.
const (
	rootLead    = "leader"
	rootState   = "state"
	rootJournal = "journal"
)

const (
	// letGo is how long the release of the leadership may take when everything ends.
	letGo = 10 * time.Second
	// refreshEvery is how old the answers of a controller that stands by may be.
	refreshEvery = 3 * time.Second
	// lookUp is how long it may take to ask who leads.
	lookUp = 5 * time.Second
)

// Seat is a controller's part of a shared store: that of the one that leads, or of one
// that stands by. A nil Seat is that of a controller that is alone, and always leads.
type Seat struct {
	store  store.Store
	mirror *mirror.Mirror
	holder string
	log    *slog.Logger

	mu    sync.RWMutex
	lease store.Lease // nil: it stands by

	loading   sync.Mutex // one load of the shared state at a time
	refreshed time.Time
}

// NewSeat is a Seat at a store that the caller closes after the Daemon. Holder names
// this controller to people who ask who leads; empty = its host and process. A Seat is
// for one Daemon.
func NewSeat(s store.Store, holder string, log *slog.Logger) *Seat {
	if holder == "" {
		holder = self()
	}
	out := &Seat{store: s, holder: holder, log: log}
	out.mirror = mirror.New(s, rootState, out.leads)
	return out
}

// Close closes the store. A nil Seat has none.
func (s *Seat) Close() error {
	if s == nil {
		return nil
	}
	return s.store.Close()
}

// self names this process for people.
func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (process %d)", host, os.Getpid())
}

// leads tells without asking the store: nil as far as this process knows. It is for
// what can do no harm, such as a checked write.
func (s *Seat) leads() error {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	lease := s.lease
	s.mu.RUnlock()
	if lease == nil {
		return ErrStandby
	}
	select {
	case <-lease.Lost():
		return ErrDeposed
	default:
		return nil
	}
}

// check asks the store whether this process leads. It comes before every effect.
func (s *Seat) check(ctx context.Context) error {
	if err := s.leads(); s == nil || err != nil {
		return err
	}
	s.mu.RLock()
	lease := s.lease
	s.mu.RUnlock()
	switch err := lease.Check(ctx); {
	case errors.Is(err, store.ErrLost):
		return fmt.Errorf("%w: %w", ErrDeposed, err)
	case err != nil:
		return err
	}
	return s.mirror.Err()
}

// Leads asks the store whether this process leads, for a driver that takes steps of its
// own. A nil Seat always leads.
func (s *Seat) Leads(ctx context.Context) error { return s.check(ctx) }

// leader names who leads, for people.
func (s *Seat) leader(ctx context.Context) string {
	call, cancel := context.WithTimeout(ctx, lookUp)
	defer cancel()
	holder, err := s.store.Leader(call, rootLead)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "nobody leads at the moment"
	case err != nil:
		return "who leads cannot be asked: " + err.Error()
	}
	return holder + " leads"
}

// mayChange refuses, by the name of the leader, what only the leader may do.
func (s *Seat) mayChange(ctx context.Context) error {
	err := s.check(ctx)
	if errors.Is(err, ErrStandby) || errors.Is(err, ErrDeposed) {
		return fmt.Errorf("%w: %s; ask that one", ErrStandby, s.leader(ctx))
	}
	return err
}

// wait waits for the leadership.
func (s *Seat) wait(ctx context.Context) (store.Lease, error) {
	s.log.Info("waiting for the leadership", "holder", s.holder, "now", s.leader(ctx))
	lease, err := s.store.Lead(ctx, rootLead, s.holder)
	if err != nil {
		return nil, fmt.Errorf("wait for the leadership: %w", err)
	}
	return lease, nil
}

// recaller is a driver that keeps in memory what others may have written.
type recaller interface {
	Recall(ctx context.Context) error
}

// take loads what there is and begins to lead.
func (s *Seat) take(ctx context.Context, lease store.Lease, d *Daemon) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	// The mirror writes as the leader from here on; effects come later.
	s.mu.Lock()
	s.lease = lease
	s.mu.Unlock()
	if err := s.mirror.Finish(ctx); err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	if err := d.store.Adopt(ctx); err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	if r, ok := d.driver.(recaller); ok {
		if err := r.Recall(ctx); err != nil {
			return fmt.Errorf("take over: %w", err)
		}
	}
	return d.reload()
}

// refresh brings the answers of a controller that stands by up to date. Where that
// fails they are old ones.
func (s *Seat) refresh(ctx context.Context, d *Daemon) {
	if s == nil || !errors.Is(s.leads(), ErrStandby) {
		return
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if !errors.Is(s.leads(), ErrStandby) || time.Since(s.refreshed) < refreshEvery {
		return
	}
	err := d.store.Refresh(ctx)
	if err == nil {
		err = d.reload()
	}
	if err != nil {
		s.log.Warn("the shared state cannot be read", "error", err)
		return
	}
	s.refreshed = time.Now()
}

// sweep removes what writers left behind in the store when they died.
func (s *Seat) sweep(ctx context.Context) error {
	if s == nil {
		return nil
	}
	sweeper, ok := s.store.(interface {
		Sweep(ctx context.Context) (int, error)
	})
	if !ok {
		return nil
	}
	_, err := sweeper.Sweep(ctx)
	return err
}

// lead waits for the leadership, runs what only a leader does until that ends, and
// gives it back.
func (d *Daemon) lead(ctx context.Context) (err error) {
	lease, err := d.seat.wait(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The context that ended this may be the reason: the release gets a fresh one.
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGo)
		defer cancel()
		err = errors.Join(err, lease.Release(fresh))
	}()
	term, depose := context.WithCancelCause(ctx)
	defer depose(nil)
	go func() {
		select {
		case <-lease.Lost():
			depose(ErrDeposed)
		case <-d.seat.mirror.Stale():
			depose(fmt.Errorf("%w: %w", ErrDeposed, d.seat.mirror.Err()))
		case <-term.Done():
		}
	}()
	if err := d.seat.take(term, lease, d); err != nil {
		return errors.Join(err, deposed(term))
	}
	d.log.Info("this controller leads", "holder", d.seat.holder)
	err = d.tune(term)
	if gone := deposed(term); gone != nil {
		d.log.Error("this controller stops", "error", gone)
		return gone
	}
	return err
}

// deposed is why a term ended, nil where nobody took it away.
func deposed(term context.Context) error {
	if cause := context.Cause(term); errors.Is(cause, ErrDeposed) {
		return cause
	}
	return nil
}

// reload reads anew what is kept in memory of the durable state.
func (d *Daemon) reload() error {
	if err := d.pauses.reload(); err != nil {
		return err
	}
	if err := d.records.reload(); err != nil {
		return err
	}
	// Classes that cannot be read are fitted anew by who leads.
	if err := d.rooms.loadModel(); err != nil && !errors.Is(err, knowledge.ErrStale) {
		return err
	}
	return nil
}
