package consulkv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/lease"
)

// lockKey is the key of a lock, beside the values.
func (s *Store) lockKey(name string) string { return s.cfg.Prefix + "/lock/" + name }

// Lead implements store.Store.
func (s *Store) Lead(ctx context.Context, name, holder string) (store.Lease, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	if s.leases.Closed() {
		return nil, fmt.Errorf("lead %s: %w", name, store.ErrClosed)
	}
	l, err := lease.Take(ctx, &lock{store: s, key: s.lockKey(name), holder: holder}, lease.Config{
		TTL: s.cfg.TTL, Retry: s.cfg.Retry, Log: s.cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("lead %s: %w", name, err)
	}
	if err := s.leases.Add(l); err != nil {
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
	if s.leases.Closed() {
		return "", store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	pair, _, err := s.cfg.Client.KV().Get(s.lockKey(name), consistent(ctx))
	if err != nil {
		return "", fmt.Errorf("leader of %s: %w", name, meaning(ctx, err))
	}
	if pair == nil || pair.Session == "" {
		return "", fmt.Errorf("leader of %s: %w", name, store.ErrNotFound)
	}
	return string(pair.Value), nil
}

// lock is a key that a session holds.
type lock struct {
	store   *Store
	key     string
	holder  string
	session known
}

func (l *lock) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{}).WithContext(ctx)
}

// Try implements lease.Lock. The session is made once and kept alive while the lock
// is waited for.
func (l *lock) Try(ctx context.Context) (bool, error) {
	if l.store.leases.Closed() {
		return false, store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if id := l.session.get(); id != "" {
		entry, _, err := l.store.cfg.Client.Session().Renew(id, l.write(ctx))
		if err != nil {
			return false, meaning(ctx, err)
		}
		if entry == nil {
			l.session.set("")
		}
	}
	if l.session.get() == "" {
		// The lock delay is never left to Consul's default, and never below its unit.
		id, _, err := l.store.cfg.Client.Session().CreateNoChecks(&api.SessionEntry{
			Name: "pitchpipe " + l.key, TTL: l.store.cfg.TTL.String(), LockDelay: l.store.cfg.Delay, Behavior: api.SessionBehaviorRelease,
		}, l.write(ctx))
		if err != nil {
			return false, meaning(ctx, err)
		}
		l.session.set(id)
	}
	got, _, err := l.store.cfg.Client.KV().Acquire(&api.KVPair{
		Key: l.key, Value: []byte(l.holder), Session: l.session.get(),
	}, l.write(ctx))
	if err != nil {
		if strings.Contains(err.Error(), "invalid session") { // it ended in between
			l.session.set("")
			return false, nil
		}
		return false, meaning(ctx, err)
	}
	return got, nil
}

// Renew implements lease.Lock.
func (l *lock) Renew(ctx context.Context) error {
	entry, _, err := l.store.cfg.Client.Session().Renew(l.session.get(), l.write(ctx))
	if err != nil {
		return meaning(ctx, err)
	}
	if entry == nil {
		return fmt.Errorf("%w: Consul ended the session", store.ErrLost)
	}
	return nil
}

// Check implements lease.Lock.
func (l *lock) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pair, _, err := l.store.cfg.Client.KV().Get(l.key, consistent(ctx))
	if err != nil {
		return meaning(ctx, err)
	}
	if id := l.session.get(); pair == nil || id == "" || pair.Session != id {
		return fmt.Errorf("%w: the lock is not held by this session", store.ErrLost)
	}
	return nil
}

// Release implements lease.Lock. The key goes before the session: a key that its
// session ended with is subject to the lock delay, one that was released is not.
func (l *lock) Release(ctx context.Context) error {
	id := l.session.get()
	if id == "" {
		return nil
	}
	_, _, err := l.store.cfg.Client.KV().Release(&api.KVPair{Key: l.key, Session: id}, l.write(ctx))
	if err != nil {
		return meaning(ctx, err)
	}
	if _, err := l.store.cfg.Client.Session().Destroy(id, l.write(ctx)); err != nil {
		return meaning(ctx, err)
	}
	l.session.set("")
	return nil
}
