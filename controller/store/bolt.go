package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
)

// Buckets and keys of the file.
const (
	bucketMeta   = "shared"
	bucketValues = "values"
	keySchema    = "schema"
	schema       = "2"
)

// file is a KV in one bbolt file, for controllers on one machine. It opens the file for each call
// and locks it meanwhile. The leader holds the lock of a second file, which the kernel frees when
// the process ends: the next one leads at once, and a leader that is only stopped goes on leading.
// The file system must have locks that work between the processes; NFS has none between machines.
type file struct {
	path string
	mu   sync.Mutex // one call at a time: the lock of the file is for other processes
}

var _ KV = (*file)(nil)

// OpenFile makes the file where it is missing. A file of another kind is ErrInvalid and stays.
func OpenFile(ctx context.Context, path string) (KV, error) {
	f := &file{path: path}
	err := f.with(ctx, false, func(tx *bolt.Tx) error {
		first, _ := tx.Cursor().First()
		meta := tx.Bucket([]byte(bucketMeta))
		switch {
		case first == nil:
			meta, err := tx.CreateBucket([]byte(bucketMeta))
			if err == nil {
				_, err = tx.CreateBucket([]byte(bucketValues))
			}
			if err == nil {
				err = meta.Put([]byte(keySchema), []byte(schema))
			}
			return err
		case meta == nil:
			return fmt.Errorf("%w: it holds %q and is no shared store", ErrInvalid, first)
		case string(meta.Get([]byte(keySchema))) != schema:
			return fmt.Errorf("%w: its schema is %q, this version knows %s", ErrInvalid, meta.Get([]byte(keySchema)), schema)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func (f *file) with(ctx context.Context, readOnly bool, fn func(tx *bolt.Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := callWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), time.Millisecond))
	}
	db, err := bolt.Open(f.path, 0o600, &bolt.Options{Timeout: wait, ReadOnly: readOnly})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: other processes keep %s", ErrUnavailable, f.path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	run := db.Update
	if readOnly {
		run = db.View
	}
	return errors.Join(run(fn), db.Close())
}

// decodeEntry reads eight bytes of version and the value after them.
func decodeEntry(key, raw []byte) (Entry, error) {
	switch {
	case raw == nil:
		return Entry{}, ErrNotFound
	case len(raw) < 8:
		return Entry{}, fmt.Errorf("%w: %q has no version", ErrDamaged, key)
	}
	return Entry{Key: string(key), Value: bytes.Clone(raw[8:]), Version: Version(binary.BigEndian.Uint64(raw))}, nil
}

// Limit implements KV.
func (f *file) Limit() int { return 16 << 20 }

// Get implements KV.
func (f *file) Get(ctx context.Context, key string) (out Entry, err error) {
	err = f.with(ctx, true, func(tx *bolt.Tx) (err error) {
		out, err = decodeEntry([]byte(key), tx.Bucket([]byte(bucketValues)).Get([]byte(key)))
		return err
	})
	return out, err
}

// List implements KV.
func (f *file) List(ctx context.Context, prefix string) (out []Entry, err error) {
	err = f.with(ctx, true, func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(bucketValues)).Cursor()
		for k, raw := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, raw = c.Next() {
			e, err := decodeEntry(k, raw)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// Put implements KV. Versions are the sequence of the bucket, so that they grow over a
// deletion.
func (f *file) Put(ctx context.Context, key string, value []byte, version Version) (Version, error) {
	var next uint64
	err := f.with(ctx, false, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucketValues))
		old, err := decodeEntry([]byte(key), b.Get([]byte(key)))
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		case old.Version != version:
			return ErrConflict
		}
		if next, err = b.NextSequence(); err != nil {
			return err
		}
		return b.Put([]byte(key), append(binary.BigEndian.AppendUint64(nil, next), value...))
	})
	return Version(next), err
}

// Delete implements KV.
func (f *file) Delete(ctx context.Context, key string) error {
	return f.with(ctx, false, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketValues)).Delete([]byte(key)) })
}

// Lock implements KV by the lock of a second file, whose text is the holder. Who removes it takes the
// leadership away. What else was in the file, such as the database of an earlier version, is replaced.
func (f *file) Lock(holder string) Lock {
	var mine *os.File
	return Lock{
		TTL: 365 * 24 * time.Hour, Retry: 250 * time.Millisecond,
		Acquire: func(context.Context) (bool, error) {
			l, err := f.tryLock(os.O_CREATE|os.O_RDWR, unix.LOCK_EX)
			if l == nil {
				return false, err
			}
			if err = l.Truncate(0); err == nil {
				_, err = l.WriteString(holder)
			}
			if err != nil {
				return false, errors.Join(fmt.Errorf("%w: %w", ErrUnavailable, err), durable.Unlock(l))
			}
			mine = l
			return true, nil
		},
		Renew: func(context.Context) error {
			own, err := mine.Stat()
			there, gone := os.Stat(f.lockPath())
			if errors.Join(err, gone) != nil || !os.SameFile(own, there) {
				return fmt.Errorf("%w: %s is another file now", ErrLost, f.lockPath())
			}
			return nil
		},
		Release: func(context.Context) error {
			if mine == nil {
				return nil
			}
			return durable.Unlock(mine)
		},
	}
}

func (f *file) lockPath() string { return f.path + ".leader.lock" }

// tryLock returns nil where another process has the lock.
func (f *file) tryLock(flags, how int) (*os.File, error) {
	l, err := os.OpenFile(f.lockPath(), flags, 0o600)
	if err == nil {
		if err = unix.Flock(int(l.Fd()), how|unix.LOCK_NB); err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, nil //nolint:nilnil // it is locked
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return l, nil
}

// Leader implements KV. A candidate may meet the lock that is taken here, and tries again.
func (f *file) Leader(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	l, err := f.tryLock(os.O_RDONLY, unix.LOCK_SH)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", ErrNotFound
	case err != nil:
		return "", err
	case l != nil:
		return "", errors.Join(ErrNotFound, durable.Unlock(l))
	}
	holder, err := os.ReadFile(f.lockPath())
	return string(holder), err
}
