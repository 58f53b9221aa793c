package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"pitchpipe/exporter/api"
)

// Finder finds the exporters of a cluster.
type Finder interface {
	// Find returns them as HOST:PORT by the names of their nodes, the likelier of
	// several first.
	Find(ctx context.Context) (map[string][]string, error)
	// String says where it looks.
	String() string
}

const (
	// found is how long a finder's answer is used without asking again.
	found = 30 * time.Second
	// missing is the pause before the finder is asked again for a node that it did not name.
	missing = 2 * time.Second
	// finding bounds one request to a finder.
	finding = 5 * time.Second
)

// errMissing means that no exporter of a node is registered.
var errMissing = errors.New("is not registered")

// directory keeps the finder's last answer. It uses an old answer until there is a new one.
type directory struct {
	finder Finder
	log    *slog.Logger

	mu      sync.Mutex
	nodes   map[string][]string // by the key of the node
	at      time.Time           // of the newest answer, right or wrong; zero = none yet
	err     error               // of the newest answer
	ready   chan struct{}       // closed when the answer that is being fetched is there; nil = none is
	over    <-chan struct{}     // closed with the directory
	stop    context.CancelFunc  // ends what is under way
	live    func() (context.Context, context.CancelFunc)
	fetches sync.WaitGroup
}

func newDirectory(f Finder, log *slog.Logger) *directory {
	ctx, stop := context.WithCancel(context.Background())
	return &directory{
		finder: f, log: log, over: ctx.Done(), stop: stop,
		live: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, finding) },
	}
}

func (d *directory) closed() bool {
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}

// close ends what is under way.
func (d *directory) close() {
	d.stop()
	d.fetches.Wait()
}

// addresses are those of a node's exporter, at least one. Every error is
// api.ErrUnavailable: a later answer may have it.
func (d *directory) addresses(ctx context.Context, key string) ([]string, error) {
	for asked := false; ; asked = true {
		d.mu.Lock()
		now := time.Now()
		at := d.nodes[key]
		age := now.Sub(d.at)
		if age >= found || len(at) == 0 && age >= missing && !asked {
			d.fetch()
		}
		ready, err := d.ready, d.err
		d.mu.Unlock()
		switch {
		case len(at) > 0:
			return at, nil
		case ready == nil && err != nil:
			return nil, fmt.Errorf("%w: where the exporter of node %s is: %w", api.ErrUnavailable, key, err)
		case ready == nil:
			return nil, fmt.Errorf("%w: the exporter of node %s %w as %s", api.ErrUnavailable, key, errMissing, d.finder)
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: where the exporter of node %s is, by %s: %w", api.ErrUnavailable, key, d.finder, ctx.Err())
		}
	}
}

// fetch asks the finder in the background. The caller holds the lock.
func (d *directory) fetch() {
	if d.ready != nil || d.closed() {
		return
	}
	d.ready = make(chan struct{})
	d.fetches.Go(func() {
		ctx, cancel := d.live()
		defer cancel()
		all, err := d.finder.Find(ctx)
		d.mu.Lock()
		was := d.err
		d.at, d.err = time.Now(), err
		if err == nil {
			d.nodes = make(map[string][]string, len(all))
			for node, at := range all {
				key := strings.ToLower(node)
				d.nodes[key] = append(d.nodes[key], at...)
			}
		}
		close(d.ready)
		d.ready = nil
		d.mu.Unlock()
		switch {
		case d.closed():
		case err != nil && was == nil:
			d.log.Warn("the exporters cannot be looked up; the last answer is used", "by", d.finder.String(), "error", err)
		case err == nil && was != nil:
			d.log.Info("the exporters can be looked up again", "by", d.finder.String())
		}
	})
}
