package nomadvars

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/lease"
)

// itemHolder is the item of a lock's variable that says who holds it.
const itemHolder = "holder"

// Lead implements store.Store.
func (s *Store) Lead(ctx context.Context, name, holder string) (store.Lease, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	at, _ := s.pages.paths.of("lock/" + name)
	l, err := lease.Take(ctx, &lock{store: s, path: at, holder: holder, id: newID()}, lease.Config{
		TTL: s.cfg.TTL, Retry: s.cfg.Retry, Log: s.cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("lead %s: %w", name, err)
	}
	if err := s.pages.leases.Add(l); err != nil {
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		return nil, fmt.Errorf("lead %s: %w", name, errors.Join(err, l.Release(fresh)))
	}
	return l, nil
}

// Leader implements store.Store.
func (s *Store) Leader(ctx context.Context, name string) (string, error) {
	if err := store.CheckKey(name); err != nil {
		return "", err
	}
	at, _ := s.pages.paths.of("lock/" + name)
	free, err := (&lock{store: s, path: at}).free(ctx)
	if err != nil {
		return "", fmt.Errorf("leader of %s: %w", name, err)
	}
	if free {
		return "", fmt.Errorf("leader of %s: %w", name, store.ErrNotFound)
	}
	call, cancel, err := s.pages.begin(ctx)
	if err != nil {
		return "", err
	}
	defer cancel()
	v, _, err := s.pages.vars.Read(at, s.pages.query(call))
	if err != nil {
		return "", fmt.Errorf("leader of %s: %w", name, meaning(ctx, err))
	}
	return v.Items[itemHolder], nil
}

// newID is a UUID, which Nomad takes for the id of a lock.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// nobody is the id of no lock.
const nobody = "00000000-0000-0000-0000-000000000000"

// lock is the lock of a variable. Its id is chosen here, so that who does not hear
// that it got the lock gets it by asking again, and can release it.
type lock struct {
	store            *Store
	path, holder, id string
}

// free tells whether nobody holds the lock. A renewal by nobody changes nothing, while
// each attempt to acquire is written by all servers.
func (l *lock) free(ctx context.Context) (bool, error) {
	err := l.renew(ctx, nobody)
	switch code(err) {
	case http.StatusNotFound:
		return true, nil
	case http.StatusConflict:
		return strings.Contains(err.Error(), "doesn't hold a lock"), nil
	}
	if err == nil {
		return false, fmt.Errorf("%w: Nomad renewed a lock that nobody has", store.ErrDamaged)
	}
	return false, bare(ctx, err)
}

// renew returns the client's own error.
func (l *lock) renew(ctx context.Context, id string) error {
	call, cancel, err := l.store.pages.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, _, err = l.store.pages.vars.RenewLock(&api.Variable{Path: l.path, Lock: &api.VariableLock{ID: id}}, l.store.pages.write(call))
	return err
}

// bare is meaning for an error that may be one of ours already.
func bare(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return meaning(ctx, err)
}

// Try implements lease.Lock.
func (l *lock) Try(ctx context.Context) (bool, error) {
	if free, err := l.free(ctx); err != nil {
		return false, err
	} else if !free && !l.mine(ctx) {
		return false, nil
	}
	call, cancel, err := l.store.pages.begin(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	out, _, err := l.store.pages.vars.AcquireLock(&api.Variable{
		Path: l.path, Items: api.VariableItems{itemHolder: l.holder},
		Lock: &api.VariableLock{ID: l.id, TTL: l.store.cfg.TTL.String(), LockDelay: l.store.cfg.Delay.String()},
	}, l.store.pages.write(call))
	switch {
	case code(err) == http.StatusConflict:
		return false, nil
	case err != nil:
		return false, meaning(ctx, err)
	}
	if out.Lock == nil || out.Lock.ID != l.id {
		return false, fmt.Errorf("%w: Nomad gave the lock another id", store.ErrInvalid)
	}
	return true, nil
}

// mine tells whether an earlier try got the lock and did not hear so.
func (l *lock) mine(ctx context.Context) bool { return l.renew(ctx, l.id) == nil }

// Renew implements lease.Lock.
func (l *lock) Renew(ctx context.Context) error {
	err := l.renew(ctx, l.id)
	switch {
	case err == nil:
		return nil
	case code(err) == http.StatusConflict, code(err) == http.StatusNotFound:
		return fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	return bare(ctx, err)
}

// Check implements lease.Lock: only a renewal tells a token without management rights
// whose lock it is.
func (l *lock) Check(ctx context.Context) error { return l.Renew(ctx) }

// Release implements lease.Lock. Its variable stays, since the next holder may have it
// already.
func (l *lock) Release(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, _, err := l.store.pages.vars.ReleaseLock(&api.Variable{Path: l.path, Lock: &api.VariableLock{ID: l.id}}, l.store.pages.write(ctx))
	if c := code(err); c == http.StatusConflict || c == http.StatusNotFound {
		return fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	if err != nil {
		return meaning(ctx, err)
	}
	return nil
}
