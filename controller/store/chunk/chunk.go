package chunk

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/store"
)

// Page is one small value of the store below. Value is nil where the store lists
// without values.
type Page struct {
	Path    string
	Value   []byte
	Version store.Version
}

// Pages is what a store of small values can do; its paths are keys in the sense of
// store.CheckKey, but up to 64 bytes longer. The errors are those of package store.
type Pages interface {
	// Limit is how many bytes a page holds.
	Limit() int
	Read(ctx context.Context, path string) (Page, error)
	// List returns the pages whose paths begin with prefix, in any order.
	List(ctx context.Context, prefix string) ([]Page, error)
	Write(ctx context.Context, path string, value []byte, version store.Version) (store.Version, error)
	Remove(ctx context.Context, path string, version store.Version) error
}

const (
	heads  = "k/" // of heads, before the key
	chunks = "c/" // of chunks, before the checksum of the key, the generation and the number

	inline  = 'v' // first byte of a head that is the value
	divided = 'c' // first byte of a head that is a manifest

	readers  = 8                // requests at a time
	attempts = 20               // of a read that meets writers
	cleaning = 10 * time.Second // what the removal of old chunks may take
)

// manifest says where a large value lies.
type manifest struct {
	Generation string `json:"generation"` // when it was begun, and a random part
	Chunks     int    `json:"chunks"`
	Size       int    `json:"size"`
	Sum        string `json:"sha256"`
}

// Values are the value methods of a store.Store. Use New.
type Values struct {
	pages Pages
	now   func() time.Time

	mu    sync.Mutex
	known map[string]known // what this client wrote or read last; spares a read before each write
}

type known struct {
	version  store.Version
	manifest *manifest // nil: inline
}

// New makes Values over pages.
func New(pages Pages) *Values {
	return &Values{pages: pages, now: time.Now, known: map[string]known{}}
}

// Get is that of store.Store.
func (v *Values) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	var last store.Version
	for range attempts {
		head, err := v.pages.Read(ctx, heads+key)
		if err != nil {
			return store.Entry{}, fmt.Errorf("get %s: %w", key, err)
		}
		value, err := v.resolve(ctx, key, head)
		switch {
		case err == nil:
			return store.Entry{Key: key, Value: value, Version: head.Version}, nil
		case !errors.Is(err, store.ErrDamaged):
			return store.Entry{}, fmt.Errorf("get %s: %w", key, err)
		case head.Version == last: // not replaced while it was read
			return store.Entry{}, fmt.Errorf("get %s: %w", key, err)
		}
		last = head.Version
	}
	return store.Entry{}, fmt.Errorf("get %s: %w: replaced too often while it was read", key, store.ErrUnavailable)
}

// resolve returns the value of a head. ErrDamaged: its chunks are not there, since it
// was replaced meanwhile or something broke.
func (v *Values) resolve(ctx context.Context, key string, head Page) ([]byte, error) {
	m, value, err := parse(head.Value)
	if err != nil {
		return nil, err
	}
	v.remember(key, known{head.Version, m})
	if m == nil {
		return value, nil
	}
	value = make([]byte, 0, m.Size)
	for i := range m.Chunks {
		page, err := v.pages.Read(ctx, m.path(key, i))
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: chunk %d of %d is missing", store.ErrDamaged, i+1, m.Chunks)
		}
		if err != nil {
			return nil, err
		}
		value = append(value, page.Value...)
	}
	if len(value) != m.Size || checksum(value) != m.Sum {
		return nil, fmt.Errorf("%w: its chunks are not those that were written", store.ErrDamaged)
	}
	return value, nil
}

// parse takes a head apart: a manifest, or the value itself.
func parse(head []byte) (*manifest, []byte, error) {
	switch {
	case len(head) > 0 && head[0] == inline:
		return nil, head[1:], nil
	case len(head) > 0 && head[0] == divided:
		var m manifest
		if err := json.Unmarshal(head[1:], &m); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		if m.Chunks < 1 || m.Size < 1 || m.Size > store.MaxValue || m.Chunks > m.Size || store.CheckKey(m.Generation) != nil {
			return nil, nil, fmt.Errorf("%w: a manifest of %d chunks and %d bytes", store.ErrDamaged, m.Chunks, m.Size)
		}
		return &m, nil, nil
	}
	return nil, nil, fmt.Errorf("%w: neither a value nor a manifest", store.ErrDamaged)
}

func (m *manifest) path(key string, i int) string {
	return fmt.Sprintf("%s%s/%s/%d", chunks, place(key), m.Generation, i)
}

// place stands for a key in the paths of its chunks.
func place(key string) string { return checksum([]byte(key))[:32] }

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (v *Values) remember(key string, k known) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[key] = k
}

func (v *Values) forget(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, key)
}

// Keys is that of store.Store.
func (v *Values) Keys(ctx context.Context, prefix string) ([]store.Entry, error) {
	pages, err := v.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []store.Entry
	for _, p := range pages {
		out = append(out, store.Entry{Key: strings.TrimPrefix(p.Path, heads), Version: p.Version})
	}
	return out, nil
}

func (v *Values) list(ctx context.Context, prefix string) ([]Page, error) {
	pages, err := v.pages.List(ctx, heads+prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s*: %w", prefix, err)
	}
	slices.SortFunc(pages, func(a, b Page) int { return strings.Compare(a.Path, b.Path) })
	return pages, nil
}

// List is that of store.Store.
func (v *Values) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	pages, err := v.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	entries := make([]store.Entry, len(pages))
	gone := make([]bool, len(pages))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, p := range pages {
		key := strings.TrimPrefix(p.Path, heads)
		group.Go(func() error {
			if p.Value != nil {
				if value, err := v.resolve(gctx, key, p); err == nil {
					entries[i] = store.Entry{Key: key, Value: value, Version: p.Version}
					return nil
				}
			}
			e, err := v.Get(gctx, key)
			if errors.Is(err, store.ErrNotFound) {
				gone[i] = true // deleted meanwhile
				return nil
			}
			entries[i] = e
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []store.Entry
	for i, e := range entries {
		if !gone[i] {
			out = append(out, e)
		}
	}
	return out, nil
}

// Put is that of store.Store.
func (v *Values) Put(ctx context.Context, key string, value []byte, version store.Version) (store.Version, error) {
	if err := store.CheckEntry(key, value); err != nil {
		return 0, err
	}
	old, err := v.replaced(ctx, key, version)
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	head, m := append([]byte{inline}, value...), (*manifest)(nil)
	if len(head) > v.pages.Limit() {
		if head, m, err = v.divide(ctx, key, value); err != nil {
			return 0, fmt.Errorf("put %s: %w", key, err)
		}
	}
	next, err := v.pages.Write(ctx, heads+key, head, version)
	if err != nil {
		v.forget(key)
		if refused(err) { // else the head may name them
			v.discard(ctx, key, m)
		}
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	v.remember(key, known{next, m})
	v.discard(ctx, key, old)
	return next, nil
}

// refused tells whether a write certainly had no effect.
func refused(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrInvalid)
}

// replaced is the manifest of what has this version; nil where it has no chunks.
func (v *Values) replaced(ctx context.Context, key string, version store.Version) (*manifest, error) {
	if version == 0 {
		return nil, nil //nolint:nilnil // nothing is replaced
	}
	v.mu.Lock()
	k, ok := v.known[key]
	v.mu.Unlock()
	if ok && k.version == version {
		return k.manifest, nil
	}
	head, err := v.pages.Read(ctx, heads+key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, store.ErrConflict
	case err != nil:
		return nil, err
	case head.Version != version:
		return nil, store.ErrConflict
	}
	m, _, err := parse(head.Value)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // what is damaged can be replaced
	}
	return m, nil
}

// divide writes a value's chunks and returns the head that will name them.
func (v *Values) divide(ctx context.Context, key string, value []byte) ([]byte, *manifest, error) {
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // never fails
	m := &manifest{
		Generation: fmt.Sprintf("%010x-%x", v.now().Unix(), nonce), Size: len(value), Sum: checksum(value),
	}
	for part := range slices.Chunk(value, v.pages.Limit()) {
		if _, err := v.pages.Write(ctx, m.path(key, m.Chunks), bytes.Clone(part), 0); err != nil {
			m.Chunks++ // it may be there
			v.discard(ctx, key, m)
			return nil, nil, err
		}
		m.Chunks++
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return append([]byte{divided}, raw...), m, nil
}

// discard removes chunks that no head names. What fails is left for Sweep.
func (v *Values) discard(ctx context.Context, key string, m *manifest) {
	if m == nil {
		return
	}
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer cancel()
	for i := range m.Chunks {
		if err := v.remove(fresh, m.path(key, i)); err != nil {
			return
		}
	}
}

func (v *Values) remove(ctx context.Context, path string) error {
	page, err := v.pages.Read(ctx, path)
	if err == nil {
		err = v.pages.Remove(ctx, path, page.Version)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Delete is that of store.Store.
func (v *Values) Delete(ctx context.Context, key string, version store.Version) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	head, err := v.pages.Read(ctx, heads+key)
	if err == nil && head.Version != version {
		err = store.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	if err := v.pages.Remove(ctx, heads+key, version); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	v.forget(key)
	if m, _, err := parse(head.Value); err == nil {
		v.discard(ctx, key, m)
	}
	return nil
}
