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

// directory keeps the finder's last answer. It uses an old answer until there is a new one.
type directory struct {
	*background
	finder Finder
	log    *slog.Logger

	mu    sync.Mutex
	nodes map[string][]string // by the key of the node
	at    time.Time           // of the newest answer, right or wrong; zero = none yet
	err   error               // of the newest answer
	ready chan struct{}       // closed when the answer that is being fetched is there; nil = none is
}

func newDirectory(f Finder, log *slog.Logger) *directory {
	return &directory{background: newBackground(), finder: f, log: log}
}

// addresses are those of a node's exporter, at least one. Every error is
// api.ErrUnavailable: a later answer may have it.
func (d *directory) addresses(ctx context.Context, key string) ([]string, error) {
	for asked := false; ; asked = true {
		d.mu.Lock()
		at, age := d.nodes[key], time.Since(d.at)
		if age >= found || len(at) == 0 && age >= missing && !asked {
			d.fetch()
		}
		ready, err := d.ready, d.err
		d.mu.Unlock()
		switch {
		case len(at) > 0:
			return at, nil
		case ready == nil && err != nil:
			return nil, fmt.Errorf("%w: look up the exporter of node %s: %w", api.ErrUnavailable, key, err)
		case ready == nil:
			return nil, fmt.Errorf("%w: the exporter of node %s is not registered as %s", api.ErrUnavailable, key, d.finder)
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: look up the exporter of node %s by %s: %w", api.ErrUnavailable, key, d.finder, ctx.Err())
		}
	}
}

// fetch asks the finder in the background. The caller holds the lock.
func (d *directory) fetch() {
	if d.ready != nil {
		return
	}
	ready := make(chan struct{})
	started := d.run(finding, func(ctx context.Context) {
		all, err := d.finder.Find(ctx)
		d.mu.Lock()
		was := d.err
		d.at, d.err, d.ready = time.Now(), err, nil
		if err == nil {
			d.nodes = make(map[string][]string, len(all))
			for node, at := range all {
				key := strings.ToLower(node)
				d.nodes[key] = append(d.nodes[key], at...)
			}
		}
		d.mu.Unlock()
		close(ready)
		switch {
		case errors.Is(ctx.Err(), context.Canceled): // the program ends
		case err != nil && was == nil:
			d.log.Warn("the exporters cannot be looked up; the last answer is used", "by", d.finder.String(), "error", err)
		case err == nil && was != nil:
			d.log.Info("the exporters can be looked up again", "by", d.finder.String())
		}
	})
	if started {
		d.ready = ready
	}
}
