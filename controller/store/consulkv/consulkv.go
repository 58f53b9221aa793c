package consulkv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/chunk"
	"pitchpipe/controller/store/lease"
)

// limit is what goes into one page: Consul takes 512 KiB as a transaction, in which a
// value is in base64.
const limit = 360 << 10

const (
	// DefaultTTL is the time to live of the session, which Consul wants to be 10 s to
	// 24 h.
	DefaultTTL = 15 * time.Second
	// DefaultDelay is for how long a lock is not given anew after its session ended.
	DefaultDelay = 5 * time.Second
	// closing is how long Close may take to release a lease.
	closing = 5 * time.Second
)

// Config says where and how.
type Config struct {
	Client *api.Client // required
	Prefix string      // a key in the sense of store.CheckKey; required
	TTL    time.Duration
	Delay  time.Duration
	Retry  time.Duration // how often a lock that another has is asked for; 0 = 1 s
	Log    *slog.Logger  // nil = silent
}

// Store is one client. Use New.
type Store struct {
	*chunk.Values

	cfg    Config
	leases *lease.Set
}

var _ store.Store = (*Store)(nil)

// New makes a Store; nothing is asked of Consul yet. The caller closes it.
func New(cfg Config) (*Store, error) {
	if cfg.Client == nil {
		return nil, fmt.Errorf("%w: no client", store.ErrInvalid)
	}
	if err := store.CheckKey(cfg.Prefix); err != nil {
		return nil, fmt.Errorf("prefix: %w", err)
	}
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Delay == 0 {
		cfg.Delay = DefaultDelay
	}
	if cfg.Retry == 0 {
		cfg.Retry = time.Second
	}
	p := &pages{kv: cfg.Client.KV(), txn: cfg.Client.Txn(), prefix: cfg.Prefix + "/", leases: &lease.Set{}}
	return &Store{Values: chunk.New(p), cfg: cfg, leases: p.leases}, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return s.leases.Close(ctx)
}

// pages are the keys below the prefix.
type pages struct {
	kv     *api.KV
	txn    *api.Txn
	prefix string
	leases *lease.Set // knows whether the store is closed
}

func (p *pages) ready(ctx context.Context) error {
	if p.leases.Closed() {
		return store.ErrClosed
	}
	return ctx.Err()
}

func consistent(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

// Limit implements chunk.Pages.
func (p *pages) Limit() int { return limit }

// Read implements chunk.Pages.
func (p *pages) Read(ctx context.Context, path string) (chunk.Page, error) {
	if err := p.ready(ctx); err != nil {
		return chunk.Page{}, err
	}
	pair, _, err := p.kv.Get(p.prefix+path, consistent(ctx))
	if err != nil {
		return chunk.Page{}, meaning(ctx, err)
	}
	if pair == nil {
		return chunk.Page{}, store.ErrNotFound
	}
	return p.page(pair), nil
}

func (p *pages) page(pair *api.KVPair) chunk.Page {
	return chunk.Page{
		Path: strings.TrimPrefix(pair.Key, p.prefix), Value: pair.Value, Version: store.Version(pair.ModifyIndex),
	}
}

// List implements chunk.Pages.
func (p *pages) List(ctx context.Context, prefix string) ([]chunk.Page, error) {
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	pairs, _, err := p.kv.List(p.prefix+prefix, consistent(ctx))
	if err != nil {
		return nil, meaning(ctx, err)
	}
	out := make([]chunk.Page, 0, len(pairs))
	for _, pair := range pairs {
		out = append(out, p.page(pair))
	}
	return out, nil
}

// Write implements chunk.Pages. It is a transaction, since that answers with the new
// index: a later read might find another's.
func (p *pages) Write(ctx context.Context, path string, value []byte, version store.Version) (store.Version, error) {
	done, results, err := p.transact(ctx, &api.KVTxnOp{
		Verb: api.KVCAS, Key: p.prefix + path, Value: value, Index: uint64(version),
	})
	switch {
	case err != nil:
		return 0, err
	case !done:
		return 0, store.ErrConflict
	case len(results) != 1 || results[0].KV == nil:
		return 0, fmt.Errorf("%w: Consul says that %s was written and not as what", store.ErrUnavailable, path)
	}
	return store.Version(results[0].KV.ModifyIndex), nil
}

// Remove implements chunk.Pages. The index is checked before, since Consul's own
// checked deletion also succeeds where there is nothing.
func (p *pages) Remove(ctx context.Context, path string, version store.Version) error {
	done, _, err := p.transact(ctx,
		&api.KVTxnOp{Verb: api.KVCheckIndex, Key: p.prefix + path, Index: uint64(version)},
		&api.KVTxnOp{Verb: api.KVDelete, Key: p.prefix + path})
	if err != nil {
		return err
	}
	if !done {
		if _, err := p.Read(ctx, path); err != nil {
			return err
		}
		return store.ErrConflict
	}
	return nil
}

// transact does all of the operations, or says that it did none.
func (p *pages) transact(ctx context.Context, ops ...*api.KVTxnOp) (bool, api.TxnResults, error) {
	if err := p.ready(ctx); err != nil {
		return false, nil, err
	}
	var all api.TxnOps
	for _, op := range ops {
		all = append(all, &api.TxnOp{KV: op})
	}
	done, response, _, err := p.txn.Txn(all, (&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return false, nil, meaning(ctx, err)
	}
	return done, response.Results, nil
}

// meaning gives an error of the client its name. Some of them are only text.
func meaning(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errors.Join(ctx.Err(), err))
	}
	code := 0
	if status, ok := errors.AsType[api.StatusError](err); ok {
		code = status.Code
	}
	text := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case code == 403 || has("Permission denied", "ACL not found", "response code: 403"):
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	case code == 413 || has("too large", "response code: 413"):
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// known keeps the id of a session for the calls that come from several goroutines.
type known struct {
	mu sync.Mutex
	id string
}

func (k *known) get() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}

func (k *known) set(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id = id
}
