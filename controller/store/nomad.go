package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/tuning"
)

// Items of a variable.
const (
	itemValue  = "v" // in base64
	itemHolder = "holder"
)

// nomadKV is a KV in the variables of a Nomad cluster. The token, or the workload identity of the
// controller's own job, needs the capabilities list, read, write and destroy on the variables of
// the prefix.
//
// Nomad frees a lock after twice its time to live without a renewal, and the lock delay. It then
// does not look whose lock it frees: who releases a lock after it lapsed takes it from the next
// holder. Lead never releases a lock that it lost.
type nomadKV struct {
	vars      *api.Variables
	namespace string
	prefix    string
	Options
}

var _ KV = (*nomadKV)(nil)

// NewNomad asks nothing of Nomad yet. Of the 10 s to 24 h that Nomad allows, locks live for 10 s by
// default; the lock delay is 2 s. An empty namespace is the client's.
func NewNomad(client *api.Client, namespace, prefix string, o Options) KV {
	return &nomadKV{client.Variables(), namespace, prefix + "/", o.or(10*time.Second, 2*time.Second)}
}

func (n *nomadKV) query(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{Namespace: n.namespace}).WithContext(ctx)
}

func (n *nomadKV) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{Namespace: n.namespace}).WithContext(ctx)
}

// Limit implements KV: a variable takes 64 KiB with the names of its items.
func (n *nomadKV) Limit() int { return 46 << 10 }

// Get implements KV.
func (n *nomadKV) Get(ctx context.Context, key string) (Entry, error) {
	v, _, err := n.vars.Read(n.prefix+key, n.query(ctx))
	if err != nil {
		return Entry{}, nomadError(ctx, err)
	}
	value, err := base64.StdEncoding.DecodeString(v.Items[itemValue])
	if err != nil {
		return Entry{}, fmt.Errorf("%w: variable %s: %w", ErrDamaged, v.Path, err)
	}
	return Entry{Key: key, Value: value, Version: Version(v.ModifyIndex)}, nil
}

// List implements KV. Nomad lists variables without their items.
func (n *nomadKV) List(ctx context.Context, prefix string) ([]Entry, error) {
	found, _, err := n.vars.PrefixList(n.prefix+prefix, n.query(ctx))
	if err != nil {
		return nil, nomadError(ctx, err)
	}
	return tuning.Each(found, func(v *api.VariableMetadata) Entry {
		return Entry{Key: strings.TrimPrefix(v.Path, n.prefix), Version: Version(v.ModifyIndex)}
	}), nil
}

// Put implements KV.
func (n *nomadKV) Put(ctx context.Context, key string, value []byte, version Version) (Version, error) {
	out, _, err := n.vars.CheckedUpdate(&api.Variable{
		Path: n.prefix + key, ModifyIndex: uint64(version), Items: api.VariableItems{itemValue: base64.StdEncoding.EncodeToString(value)},
	}, n.write(ctx))
	if err != nil {
		return 0, nomadError(ctx, err)
	}
	return Version(out.ModifyIndex), nil
}

// Delete implements KV.
func (n *nomadKV) Delete(ctx context.Context, key string) error {
	if _, err := n.vars.Delete(n.prefix+key, n.write(ctx)); err != nil {
		return nomadError(ctx, err)
	}
	return nil
}

// Leader implements KV. Without management rights only a renewal shows whether a lock is held; the
// renewal of an id that holds none changes nothing.
func (n *nomadKV) Leader(ctx context.Context) (string, error) {
	err := n.renew(ctx, "00000000-0000-0000-0000-000000000000")
	switch {
	case err == nil:
		return "", fmt.Errorf("%w: Nomad renewed a lock that does not exist", ErrDamaged)
	case nomadCode(err) == http.StatusNotFound, nomadCode(err) == http.StatusConflict && strings.Contains(err.Error(), "doesn't hold a lock"):
		return "", ErrNotFound
	case nomadCode(err) != http.StatusConflict:
		return "", nomadError(ctx, err)
	}
	v, _, err := n.vars.Read(n.prefix+lockKey, n.query(ctx))
	if err != nil {
		return "", nomadError(ctx, err)
	}
	return v.Items[itemHolder], nil
}

func (n *nomadKV) renew(ctx context.Context, id string) error {
	_, _, err := n.vars.RenewLock(&api.Variable{Path: n.prefix + lockKey, Lock: &api.VariableLock{ID: id}}, n.write(ctx))
	return err
}

// Lock implements KV. The candidate chooses the id, so that a repeated Acquire gives the lock
// again.
func (n *nomadKV) Lock(holder string) Lock {
	id := uuid.NewString()
	return Lock{
		TTL: n.TTL, Retry: n.Retry,
		Acquire: func(ctx context.Context) (bool, error) {
			out, _, err := n.vars.AcquireLock(&api.Variable{
				Path: n.prefix + lockKey, Items: api.VariableItems{itemHolder: holder},
				Lock: &api.VariableLock{ID: id, TTL: n.TTL.String(), LockDelay: n.Delay.String()},
			}, n.write(ctx))
			switch {
			case nomadCode(err) == http.StatusConflict:
				return false, nil
			case err != nil:
				return false, nomadError(ctx, err)
			case out.Lock == nil || out.Lock.ID != id:
				return false, fmt.Errorf("%w: Nomad gave the lock another id", ErrInvalid)
			}
			return true, nil
		},
		Renew: func(ctx context.Context) error { return notHeld(ctx, n.renew(ctx, id)) },
		Release: func(ctx context.Context) error {
			_, _, err := n.vars.ReleaseLock(&api.Variable{Path: n.prefix + lockKey, Lock: &api.VariableLock{ID: id}}, n.write(ctx))
			return notHeld(ctx, err)
		},
	}
}

func notHeld(ctx context.Context, err error) error {
	switch code := nomadCode(err); {
	case err == nil:
		return nil
	case code == http.StatusConflict, code == http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nomadError(ctx, err)
}

func nomadError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(ctx.Err(), err))
	}
	if _, ok := errors.AsType[api.ErrCASConflict](err); ok {
		return ErrConflict // the error's own text has the value in it
	}
	if errors.Is(err, api.ErrVariablePathNotFound) {
		return ErrNotFound
	}
	kind := map[int]error{http.StatusForbidden: ErrDenied, http.StatusBadRequest: ErrInvalid, http.StatusConflict: ErrConflict}[nomadCode(err)]
	return fmt.Errorf("%w: %w", cmp.Or(kind, ErrUnavailable), err)
}

func nomadCode(err error) int {
	if e, ok := errors.AsType[api.UnexpectedResponseError](err); ok {
		return e.StatusCode()
	}
	return 0
}
