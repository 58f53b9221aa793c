package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"pitchpipe/controller/tuning"
)

// consulKV is a KV in the keys of a Consul cluster. The leader holds its lock by a session without
// health checks, which lives by its time to live alone and whose end releases the key. After a
// leader that went silent the key stays locked for up to twice the time to live and the lock delay.
// The token needs key_prefix "write" on the prefix, and session_prefix "write" on the agent's node.
// It was proven against test/consulserver; the same suite runs against a real agent where one is on
// PATH.
type consulKV struct {
	client *api.Client
	prefix string
	Options
}

var _ KV = (*consulKV)(nil)

// NewConsul asks nothing of Consul yet. Of the 10 s to 24 h that Consul allows, sessions live for
// 15 s by default; the lock delay is 5 s.
func NewConsul(client *api.Client, prefix string, o Options) KV {
	return &consulKV{client, prefix + "/", o.or(15*time.Second, 5*time.Second)}
}

func consistent(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

func consulWrite(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{}).WithContext(ctx)
}

// Limit implements KV: Consul takes 512 KiB as a transaction, in which a value is base64.
func (c *consulKV) Limit() int { return 360 << 10 }

// Get implements KV.
func (c *consulKV) Get(ctx context.Context, key string) (Entry, error) {
	pair, _, err := c.client.KV().Get(c.prefix+key, consistent(ctx))
	if err != nil {
		return Entry{}, consulError(ctx, err)
	}
	if pair == nil {
		return Entry{}, ErrNotFound
	}
	return Entry{Key: key, Value: pair.Value, Version: Version(pair.ModifyIndex)}, nil
}

// List implements KV.
func (c *consulKV) List(ctx context.Context, prefix string) ([]Entry, error) {
	pairs, _, err := c.client.KV().List(c.prefix+prefix, consistent(ctx))
	if err != nil {
		return nil, consulError(ctx, err)
	}
	return tuning.Each(pairs, func(p *api.KVPair) Entry {
		return Entry{Key: strings.TrimPrefix(p.Key, c.prefix), Value: p.Value, Version: Version(p.ModifyIndex)}
	}), nil
}

// Put implements KV by a transaction: its answer has the new index.
func (c *consulKV) Put(ctx context.Context, key string, value []byte, version Version) (Version, error) {
	done, response, _, err := c.client.Txn().Txn(api.TxnOps{{KV: &api.KVTxnOp{
		Verb: api.KVCAS, Key: c.prefix + key, Value: value, Index: uint64(version),
	}}}, (&api.QueryOptions{}).WithContext(ctx))
	switch {
	case err != nil:
		return 0, consulError(ctx, err)
	case !done:
		return 0, ErrConflict
	case len(response.Results) != 1 || response.Results[0].KV == nil:
		return 0, fmt.Errorf("%w: Consul did not answer with the index of %s", ErrUnavailable, key)
	}
	return Version(response.Results[0].KV.ModifyIndex), nil
}

// Delete implements KV.
func (c *consulKV) Delete(ctx context.Context, key string) error {
	_, err := c.client.KV().Delete(c.prefix+key, consulWrite(ctx))
	return consulError(ctx, err)
}

// Leader implements KV.
func (c *consulKV) Leader(ctx context.Context) (string, error) {
	pair, _, err := c.client.KV().Get(c.prefix+lockKey, consistent(ctx))
	if err != nil {
		return "", consulError(ctx, err)
	}
	if pair == nil || pair.Session == "" {
		return "", ErrNotFound
	}
	return string(pair.Value), nil
}

// Lock implements KV. Each attempt has its own session: one left from a lost answer may end too
// soon.
func (c *consulKV) Lock(holder string) Lock {
	session := "" // none
	pair := func(holder string) *api.KVPair {
		return &api.KVPair{Key: c.prefix + lockKey, Value: []byte(holder), Session: session}
	}
	// Consul delays the next lock of a key that its session ended with, and not of one that was released.
	release := func(ctx context.Context) error {
		if session == "" {
			return nil
		}
		_, _, err := c.client.KV().Release(pair(""), consulWrite(ctx))
		if err == nil {
			_, err = c.client.Session().Destroy(session, consulWrite(ctx))
		}
		return consulError(ctx, err)
	}
	return Lock{
		TTL: c.TTL, Retry: c.Retry, Release: release,
		Acquire: func(ctx context.Context) (bool, error) {
			got, err := false, release(ctx)
			if err == nil {
				session, _, err = c.client.Session().CreateNoChecks(&api.SessionEntry{
					Name: "pitchpipe " + c.prefix + lockKey, TTL: c.TTL.String(), LockDelay: c.Delay, Behavior: api.SessionBehaviorRelease,
				}, consulWrite(ctx))
			}
			if err == nil {
				got, _, err = c.client.KV().Acquire(pair(holder), consulWrite(ctx))
			}
			if err == nil && !got {
				err = release(ctx)
			}
			return got, consulError(ctx, err)
		},
		Renew: func(ctx context.Context) error {
			entry, _, err := c.client.Session().Renew(session, consulWrite(ctx))
			switch {
			case err != nil:
				return consulError(ctx, err)
			case entry == nil:
				return fmt.Errorf("%w: Consul ended the session", ErrLost)
			}
			locked, _, err := c.client.KV().Get(c.prefix+lockKey, consistent(ctx))
			switch {
			case err != nil:
				return consulError(ctx, err)
			case locked == nil || locked.Session != session:
				return fmt.Errorf("%w: the session does not hold the lock", ErrLost)
			}
			return nil
		},
	}
}

// consulError gives an error of the client its name. Some of them are only text.
func consulError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(ctx.Err(), err))
	}
	code := 0
	if status, ok := errors.AsType[api.StatusError](err); ok {
		code = status.Code
	}
	text := err.Error()
	switch {
	case code == 403, strings.Contains(text, "Permission denied"), strings.Contains(text, "ACL not found"), strings.Contains(text, "response code: 403"):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case code == 413, strings.Contains(text, "too large"), strings.Contains(text, "response code: 413"):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
