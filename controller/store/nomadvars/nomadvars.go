package nomadvars

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/chunk"
	"pitchpipe/controller/store/lease"
)

const (
	// limit is what goes into one variable: 64 KiB with the names of its items, in
	// base64, and room for a long path.
	limit = 46 << 10

	// DefaultTTL is the time to live of a lock, which Nomad wants to be 10 s to 24 h.
	DefaultTTL = 10 * time.Second
	// DefaultDelay is for how long a lock that lapsed is not given anew. Nomad takes
	// zero for 15 s.
	DefaultDelay = 2 * time.Second

	readers = 8                // requests at a time
	patient = 30 * time.Second // for a call without a deadline
	closing = 5 * time.Second  // for Close to release a lease
)

// Config says where and how.
type Config struct {
	Client    *api.Client // required
	Namespace string      // empty = that of the client
	Prefix    string      // words of [A-Za-z0-9_-] with slashes between them, at most 48 bytes; required
	TTL       time.Duration
	Delay     time.Duration
	Retry     time.Duration // how often a lock that another has is asked for; 0 = 1 s
	Log       *slog.Logger  // nil = silent
}

// Store is one client. Use New.
type Store struct {
	*chunk.Values

	cfg   Config
	pages *pages
}

var _ store.Store = (*Store)(nil)

var prefixes = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`)

// New makes a Store; nothing is asked of Nomad yet. The caller closes it.
func New(cfg Config) (*Store, error) {
	if cfg.Client == nil {
		return nil, fmt.Errorf("%w: no client", store.ErrInvalid)
	}
	if !prefixes.MatchString(cfg.Prefix) || len(cfg.Prefix) > 48 {
		return nil, fmt.Errorf("prefix %q: %w: want at most 48 letters, digits, dashes and underscores with slashes between them", cfg.Prefix, store.ErrInvalid)
	}
	if first, _, _ := strings.Cut(cfg.Prefix, "/"); first == "nomad" {
		return nil, fmt.Errorf("prefix %q: %w: Nomad keeps the paths below nomad for itself", cfg.Prefix, store.ErrInvalid)
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
	p := &pages{vars: cfg.Client.Variables(), namespace: cfg.Namespace, paths: paths(cfg.Prefix)}
	return &Store{Values: chunk.New(p), cfg: cfg, pages: p}, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return s.pages.leases.Close(ctx)
}

// The items of a variable.
const (
	itemValue = "v" // in base64
	itemPath  = "p" // the path, where that of the variable is a checksum
)

// pages are the variables below the prefix.
type pages struct {
	vars      *api.Variables
	namespace string
	paths     paths
	leases    lease.Set // knows whether the store is closed
}

// begin tells whether a call may be made, and bounds it.
func (p *pages) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if p.leases.Closed() {
		return nil, nil, store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	call, cancel := context.WithTimeout(ctx, patient)
	return call, cancel, nil
}

func (p *pages) query(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{Namespace: p.namespace}).WithContext(ctx)
}

func (p *pages) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{Namespace: p.namespace}).WithContext(ctx)
}

// Limit implements chunk.Pages.
func (p *pages) Limit() int { return limit }

// Read implements chunk.Pages.
func (p *pages) Read(ctx context.Context, path string) (chunk.Page, error) {
	at, _ := p.paths.of(path)
	return p.read(ctx, at, path)
}

// read returns the page of a variable. Its path is in it where none is given.
func (p *pages) read(ctx context.Context, at, path string) (chunk.Page, error) {
	call, cancel, err := p.begin(ctx)
	if err != nil {
		return chunk.Page{}, err
	}
	defer cancel()
	v, _, err := p.vars.Read(at, p.query(call))
	if err != nil {
		return chunk.Page{}, meaning(ctx, err)
	}
	value, err := base64.StdEncoding.DecodeString(v.Items[itemValue])
	if err != nil {
		return chunk.Page{}, fmt.Errorf("%w: variable %s: %w", store.ErrDamaged, at, err)
	}
	if path == "" {
		path = v.Items[itemPath]
	}
	return chunk.Page{Path: path, Value: value, Version: store.Version(v.ModifyIndex)}, nil
}

// List implements chunk.Pages. Nomad lists variables without their items.
func (p *pages) List(ctx context.Context, prefix string) ([]chunk.Page, error) {
	var out []chunk.Page
	if at, hidden := p.paths.of(prefix); !hidden {
		found, err := p.list(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			if path, ok := p.paths.plain(v.Path); ok && strings.HasPrefix(path, prefix) {
				out = append(out, chunk.Page{Path: path, Version: store.Version(v.ModifyIndex)})
			}
		}
	}
	// Which of the hidden ones begin with it only they know.
	hidden, err := p.list(ctx, p.paths.hidden())
	if err != nil {
		return nil, err
	}
	pages := make([]chunk.Page, len(hidden))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, v := range hidden {
		group.Go(func() (err error) {
			pages[i], err = p.read(gctx, v.Path, "")
			if errors.Is(err, store.ErrNotFound) {
				return nil // removed meanwhile
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, page := range pages {
		if page.Path != "" && strings.HasPrefix(page.Path, prefix) {
			out = append(out, page)
		}
	}
	return out, nil
}

func (p *pages) list(ctx context.Context, prefix string) ([]*api.VariableMetadata, error) {
	call, cancel, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	found, _, err := p.vars.PrefixList(prefix, p.query(call))
	if err != nil {
		return nil, meaning(ctx, err)
	}
	return found, nil
}

// Write implements chunk.Pages.
func (p *pages) Write(ctx context.Context, path string, value []byte, version store.Version) (store.Version, error) {
	call, cancel, err := p.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	at, hidden := p.paths.of(path)
	v := &api.Variable{
		Path: at, ModifyIndex: uint64(version), Items: api.VariableItems{itemValue: base64.StdEncoding.EncodeToString(value)},
	}
	if hidden {
		v.Items[itemPath] = path
	}
	out, _, err := p.vars.CheckedUpdate(v, p.write(call))
	if err != nil {
		return 0, meaning(ctx, err)
	}
	return store.Version(out.ModifyIndex), nil
}

// Remove implements chunk.Pages.
func (p *pages) Remove(ctx context.Context, path string, version store.Version) error {
	call, cancel, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	at, _ := p.paths.of(path)
	if _, err = p.vars.CheckedDelete(at, uint64(version), p.write(call)); err == nil {
		return nil
	}
	if err = meaning(ctx, err); errors.Is(err, store.ErrConflict) {
		if _, rerr := p.Read(ctx, path); errors.Is(rerr, store.ErrNotFound) {
			return rerr // what is not there is a conflict to Nomad
		}
	}
	return err
}

// meaning gives an error of the client its name.
func meaning(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errors.Join(ctx.Err(), err))
	}
	if _, ok := errors.AsType[api.ErrCASConflict](err); ok {
		return store.ErrConflict // the error's own text has the value in it
	}
	if errors.Is(err, api.ErrVariablePathNotFound) {
		return store.ErrNotFound
	}
	switch code(err) {
	case http.StatusForbidden:
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	case http.StatusBadRequest:
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	case http.StatusConflict:
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// code is the status that Nomad answered with, 0 where it did not.
func code(err error) int {
	if e, ok := errors.AsType[api.UnexpectedResponseError](err); ok {
		return e.StatusCode()
	}
	return 0
}
