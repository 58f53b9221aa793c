package nodes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
)

// registry is a finder with settable answers.
type registry struct {
	mu    sync.Mutex
	nodes map[string][]string
	err   error
	takes time.Duration
	asked int
}

func (r *registry) Find(ctx context.Context) (map[string][]string, error) {
	r.mu.Lock()
	r.asked++
	takes, nodes, err := r.takes, r.nodes, r.err
	r.mu.Unlock()
	select {
	case <-time.After(takes):
		return nodes, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *registry) String() string { return "a registry" }

func (r *registry) set(err error, nodes map[string][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.nodes = err, nodes
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func TestWhatIsFoundIsKeptUntilThereIsSomethingNewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard said
		r := &registry{nodes: map[string][]string{"N1": {"10.0.0.1:1", "10.0.0.1:2"}}}
		d := newDirectory(r, logging(&heard))
		defer d.close()
		lost := errors.New("no leader")
		for _, c := range []struct {
			name  string
			wait  time.Duration
			do    func()
			node  string
			want  []string // nil = unavailable
			says  string
			asked int
			lines int
		}{
			{"the first question asks", 0, nil, "n1", []string{"10.0.0.1:1", "10.0.0.1:2"}, "", 1, 0},
			{"the next does not", found - time.Second, nil, "n1", []string{"10.0.0.1:1", "10.0.0.1:2"}, "", 1, 0},
			{"what is old is used while it is asked for anew", time.Second, func() { r.set(nil, map[string][]string{"n1": {"10.0.0.1:3"}}) }, "n1", []string{"10.0.0.1:1", "10.0.0.1:2"}, "", 2, 0},
			{"and then the new", time.Second, nil, "n1", []string{"10.0.0.1:3"}, "", 2, 0},
			{"a node that is not in it is asked for", missing, nil, "n2", nil, "exporter of node n2 is not registered as a registry", 3, 0},
			{"not at once again", missing / 2, func() { r.set(nil, map[string][]string{"n1": {"10.0.0.1:3"}, "n2": {"10.0.0.2:1"}}) }, "n2", nil, "not registered", 3, 0},
			{"but soon", missing / 2, nil, "n2", []string{"10.0.0.2:1"}, "", 4, 0},
			{"where it cannot be asked the last answer stands", found, func() { r.set(lost, nil) }, "n2", []string{"10.0.0.2:1"}, "", 5, 1},
			{"for as long as that is so", time.Hour, nil, "n2", []string{"10.0.0.2:1"}, "", 6, 1},
			{"a missing node has the reason in its error", missing, nil, "n3", nil, "no leader", 7, 1},
			{"until it can be asked again", missing, func() { r.set(nil, map[string][]string{"n3": {"10.0.0.3:1"}}) }, "n3", []string{"10.0.0.3:1"}, "", 8, 2},
			{"what it does not name any more is gone", missing, nil, "n1", nil, "not registered", 9, 2},
		} {
			time.Sleep(c.wait)
			if c.do != nil {
				c.do()
			}
			got, err := d.addresses(t.Context(), c.node)
			synctest.Wait()
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) || err != nil && (!errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
			}
			if n := r.count(); n != c.asked {
				t.Errorf("%s: asked %d times, want %d", c.name, n, c.asked)
			}
			if n, text := heard.lines(); n != c.lines {
				t.Errorf("%s: %d lines, want %d:\n%s", c.name, n, c.lines, text)
			}
		}
	})
}

func TestManyQuestionsAtOnceAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &registry{nodes: map[string][]string{"n1": {"10.0.0.1:1"}}, takes: time.Second}
		d := newDirectory(r, logging(&said{}))
		defer d.close()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if _, err := d.addresses(t.Context(), "n1"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := r.count(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		// A finder that hangs delays a caller for no longer than he waits.
		r.mu.Lock()
		r.takes = time.Hour
		r.mu.Unlock()
		time.Sleep(missing)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := d.addresses(ctx, "n2"); !errors.Is(err, api.ErrUnavailable) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestExportersThatAreFoundNeedCertificatesAndNoPattern(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	own := ca.Files(t, certstest.Leaf{Name: "controller", Client: true}, ca)
	if _, err := New(Config{Pattern: "https://{node}:9836"}); !errors.Is(err, certs.ErrFiles) {
		t.Errorf("https without certificates: %v, want %v", err, certs.ErrFiles)
	}
	if _, err := New(Config{Find: &registry{}}); !errors.Is(err, certs.ErrFiles) || !strings.Contains(err.Error(), "a registry") {
		t.Errorf("without certificates: %v, want %v", err, certs.ErrFiles)
	}
	if _, err := New(Config{Find: &registry{}, Pattern: "https://{node}:1", Cert: own.Cert, Key: own.Key, CA: own.CA}); err == nil || !strings.Contains(err.Error(), "exporter.discovery") {
		t.Errorf("with a pattern: %v", err)
	}
	e, err := New(Config{Find: &registry{err: errors.New("no leader")}, Cert: own.Cert, Key: own.Key, CA: own.CA})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for node, want := range map[string]error{"n1": api.ErrUnavailable, "../x": ErrNode, "": ErrNode} {
		if _, err := e.Window(t.Context(), node, "j", 1, 0); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", node, err, want)
		}
	}
}
