package nodes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
)

func TestOddNodesAreNotAsked(t *testing.T) {
	t.Parallel()
	for node, ok := range map[string]bool{
		"n1": true, "N-1.cluster.example": true, "rack_2": true,
		"": false, ".": false, "..": false, ".hidden": false, "-f": false, "a/b": false, "../x": false, "n1:9836": false, "n1@evil": false,
		"n1\x00": false, "n 1": false, "nöd": false, "n1?": false, "n1#": false, "[::1]": false, "%2e%2e": false, strings.Repeat("n", 254): false,
	} {
		e := cluster(nil, map[string]*fake{node: {}})
		_, err := e.Window(t.Context(), node, "j", 1, 0)
		if ok != (err == nil) || err != nil && !errors.Is(err, ErrNode) {
			t.Errorf("%q: %v, want it asked: %v", node, err, ok)
		}
		e.Close()
	}
}

// Whatever a scheduler calls its nodes, what is asked is inside the pattern.
func TestNoNameLeadsOutOfThePattern(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9./:@%?#\\_-]{0,12}`)).Draw(t, "node")
		if checkName(node) != nil {
			return
		}
		path := strings.TrimPrefix(at("unix:/run/{node}.sock", node), "unix:")
		if strings.Count(path, "/") != 2 || strings.Contains(path, "/.") {
			t.Errorf("%q leads to the socket %s", node, path)
		}
		if err := api.CheckAddress(at("https://{node}:9836", node)); err != nil {
			t.Errorf("%q is taken, and then: %v", node, err)
		}
	})
}

func TestAWaitingJobGetsTheOnlyKindOfMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := map[string]*kindred{"a1": {kind: "a", cores: 4}, "a2": {kind: "a", cores: 4}, "b1": {kind: "b", cores: 8}}
		e := start(Config{Pattern: "unix:/run/{node}.sock"})
		e.open = func(node string) (Meter, func(), error) { return nodes[node], func() {}, nil }
		defer e.Close()
		for _, c := range []struct {
			name string
			ask  string
			wait time.Duration
			want string // empty = not known
		}{
			{"nothing is known", "", 0, ""},
			{"a node told", "a1", 0, "a"},
			{"so its kind is that of the cluster", "", 0, "a"},
			{"another one like it", "a2", 0, "a"},
			{"which changes nothing", "", 0, "a"},
			{"one of another kind", "b1", 0, "b"},
			{"now it is open", "", 0, ""},
			{"a day later the other one tells no more", "a1", kindsAge + time.Hour, "a"},
			{"and is forgotten", "", 0, "a"},
		} {
			time.Sleep(c.wait)
			about, err := e.Node(t.Context(), c.ask)
			if about.MachineKind != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ErrNode) {
				t.Errorf("%s: %q, %v; want %q", c.name, about.MachineKind, err, c.want)
			}
		}
	})
}

// kindred describes itself.
type kindred struct {
	fake
	kind  string
	cores int
}

func (k *kindred) Node(ctx context.Context) (api.Node, error) {
	return api.Node{MachineKind: k.kind, Cores: k.cores}, k.answer(ctx)
}

func TestANodeIsDescribedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e := cluster(nil, map[string]*fake{"n1": f})
		defer e.Close()
		for range 180 {
			if _, err := e.Node(t.Context(), "n1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := f.asked(); n != 3 {
			t.Errorf("asked %d times in three minutes, want 3", n)
		}
	})
}

func TestAnExporterWithoutRequestsIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		used, unused, dead := &fake{}, &fake{}, &fake{err: errGone}
		e := cluster(nil, map[string]*fake{"used": used, "unused": unused, "dead": dead})
		defer e.Close()
		for node := range map[string]bool{"unused": true, "dead": true} {
			_, _ = e.Window(t.Context(), node, "j", 1, 0)
		}
		for range 24 {
			if _, err := e.Window(t.Context(), "used", "j", 1, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute / 2)
		}
		if used.closed || !unused.closed || !dead.closed || len(e.known) != 1 {
			t.Errorf("closed: used %v, unused %v, dead %v; %d known", used.closed, unused.closed, dead.closed, len(e.known))
		}
		if _, err := e.Window(t.Context(), "unused", "j", 1, 0); err != nil {
			t.Errorf("asked again: %v", err)
		}
	})
}

func TestSavesAreThoseOfTheAttempt(t *testing.T) {
	t.Parallel()
	e := cluster(nil, map[string]*fake{"n1": {}})
	defer e.Close()
	if n, err := e.Saves(t.Context(), "n1", "slurm/7", 2); n != (api.Saves{Count: 3, Last: time.Unix(1, 0), Now: time.Unix(2, 0)}) || err != nil {
		t.Errorf("got %+v, %v; want 3", n, err)
	}
}

func TestOneMeterKnowsTheJobsOfAllNodes(t *testing.T) {
	t.Parallel()
	f := &fake{}
	e := One(f, nil)
	defer e.Close()
	for _, node := range []string{"", "n1", "../odd"} {
		if _, err := e.Window(t.Context(), node, "j", 1, 0); err != nil {
			t.Errorf("%q: %v", node, err)
		}
		if about, err := e.Node(t.Context(), node); err != nil || about.Cores != 2 {
			t.Errorf("%q: %+v, %v", node, about, err)
		}
	}
}

func TestACallThatPanicsLeavesTheExporterUsable(t *testing.T) {
	t.Parallel()
	e := One(panicking{}, nil)
	defer e.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = e.Window(t.Context(), "", "j", 1, 0)
	}()
	if _, err := e.Node(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if x := e.known[""]; x.inside != 0 {
		t.Errorf("%d calls are under way", x.inside)
	}
}

type panicking struct{ Meter }

func (panicking) Window(context.Context, string, int, uint64) (api.Window, error) {
	panic("broken")
}

func (panicking) Node(context.Context) (api.Node, error) { return api.Node{Cores: 1}, nil }
