package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/test/consulserver"
	"pitchpipe/test/nomadagent"
)

// target is a kind of store under test.
type target struct {
	// open makes an empty store and returns a function that opens a client of it.
	open func(t *testing.T) func(t *testing.T) KV
	// silent says that a client can be cut off, which its silence then does.
	silent bool
	rounds int // of what takes long where each call does
}

// switched is a way to a server that can be cut.
type switched struct {
	http.RoundTripper

	cut atomic.Bool
}

func (s *switched) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		<-req.Context().Done() // as of packets without an answer
		return nil, req.Context().Err()
	}
	return s.RoundTripper.RoundTrip(req)
}

// cutoff is a store behind such a way.
type cutoff struct {
	KV

	way *switched
}

// silence cuts a client off until the function that it returns is called.
func silence(kv KV) func() {
	c, _ := kv.(cutoff)
	c.way.cut.Store(true)
	return func() { c.way.cut.Store(false) }
}

func newWay(t *testing.T) *switched {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &switched{RoundTripper: transport}
}

func fileTarget() target {
	return target{rounds: 15, open: func(t *testing.T) func(*testing.T) KV {
		t.Helper()
		path := filepath.Join(t.TempDir(), "shared.db")
		return func(t *testing.T) KV {
			t.Helper()
			kv, err := OpenFile(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			return kv
		}
	}}
}

func consulTarget(address string, o Options) target {
	var n atomic.Int32
	return target{rounds: 15, silent: true, open: func(t *testing.T) func(*testing.T) KV {
		t.Helper()
		prefix := fmt.Sprintf("test/%d", n.Add(1))
		return func(t *testing.T) KV {
			t.Helper()
			way := newWay(t)
			c, err := consul.NewClient(&consul.Config{Address: address, HttpClient: &http.Client{Transport: way}})
			if err != nil {
				t.Fatal(err)
			}
			return cutoff{NewConsul(c, prefix, o), way}
		}
	}}
}

func nomadTarget(address, token string) target {
	var n atomic.Int32
	return target{rounds: 5, silent: true, open: func(t *testing.T) func(*testing.T) KV {
		t.Helper()
		prefix := fmt.Sprintf("pitchpipe/test-%d", n.Add(1))
		return func(t *testing.T) KV {
			t.Helper()
			way := newWay(t)
			c, err := nomad.NewClient(&nomad.Config{Address: address, SecretID: token, HttpClient: &http.Client{Transport: way}})
			if err != nil {
				t.Fatal(err)
			}
			return cutoff{NewNomad(c, "", prefix, Options{Delay: 500 * time.Millisecond, Retry: 50 * time.Millisecond}), way}
		}
	}}
}

func TestEveryStoreHolds(t *testing.T) {
	t.Parallel()
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		suite(t, fileTarget())
	})
	t.Run("Consul's in-process server", func(t *testing.T) {
		t.Parallel()
		address, stop := consulserver.New(consulserver.Config{MinTTL: time.Second}).Listen()
		t.Cleanup(stop)
		suite(t, consulTarget(address, Options{TTL: 2 * time.Second, Delay: 200 * time.Millisecond, Retry: 20 * time.Millisecond}))
	})
	t.Run("Consul", func(t *testing.T) {
		t.Parallel()
		suite(t, consulTarget(consulserver.StartAgent(t), Options{TTL: 10 * time.Second, Delay: time.Second, Retry: 50 * time.Millisecond}))
	})
	t.Run("Nomad", func(t *testing.T) {
		t.Parallel()
		nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) { suite(t, nomadTarget(a.Addr, a.Token)) })
	})
}

func suite(t *testing.T, of target) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, of target){
		"values of every size and every byte come back":             everyValue,
		"values beyond the limit are refused and nothing is stored": tooLarge,
		"a put against another version is a conflict":               conflicts,
		"keys are listed by prefix":                                 listed,
		"of concurrent writers each increment counts":               increments,
		"of concurrent creators one succeeds":                       creators,
		"an ended context ends every call":                          endedContext,
		"any sequence of calls does what a map would":               likeAMap,
		"a replica begins, writes and is read":                      replicated,
		"one leads at a time and the next after its release":        handover,
		"the leader is named as long as there is one":               named,
		"a candidate stops waiting with its context":                stopsWaiting,
		"of many candidates one leads at any moment":                candidates,
		"a silent leader is lost and another takes over":            silentLeader,
		"a leader goes on after a short silence":                    shortSilence,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, of)
		})
	}
}

func put(t *testing.T, kv KV, key, value string, version Version) Version {
	t.Helper()
	v, err := kv.Put(t.Context(), key, []byte(value), version)
	if err != nil {
		t.Fatalf("put %s at version %d: %v", key, version, err)
	}
	return v
}

func get(t *testing.T, kv KV, key string) Entry {
	t.Helper()
	e, err := kv.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return e
}

func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func everyValue(t *testing.T, of target) {
	open := of.open(t)
	kv := open(t)
	_, err := kv.Get(t.Context(), "key")
	fails(t, "get before the put", err, ErrNotFound)
	var v Version
	for i, size := range []int{1, 2, 255, 4096, 40_000, min(kv.Limit(), 1<<20)} {
		value := noise(size, uint64(i))
		v = put(t, kv, "key", value, v)
		if e := get(t, open(t), "key"); string(e.Value) != value || e.Version != v || e.Key != "key" {
			t.Errorf("%d bytes came back as %d, version %d as %d", size, len(e.Value), v, e.Version)
		}
	}
}

func tooLarge(t *testing.T, of target) {
	kv := of.open(t)(t)
	if kv.Limit() > 1<<20 {
		t.Skip("a file takes everything")
	}
	_, err := kv.Put(t.Context(), "key", make([]byte, 2*kv.Limit()), 0)
	fails(t, "put", err, ErrInvalid)
	_, err = kv.Get(t.Context(), "key")
	fails(t, "get", err, ErrNotFound)
}

func conflicts(t *testing.T, of target) {
	kv := of.open(t)(t)
	_, err := kv.Put(t.Context(), "key", []byte("x"), 7)
	fails(t, "put at a version of a missing key", err, ErrConflict)
	first := put(t, kv, "key", "one", 0)
	_, err = kv.Put(t.Context(), "key", []byte("x"), 0)
	fails(t, "put of a key that exists", err, ErrConflict)
	second := put(t, kv, "key", "two", first)
	_, err = kv.Put(t.Context(), "key", []byte("x"), first)
	fails(t, "put at the version before", err, ErrConflict)
	for range 2 {
		if err := kv.Delete(t.Context(), "key"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	_, err = kv.Put(t.Context(), "key", []byte("x"), second)
	fails(t, "put at the version of a deleted key", err, ErrConflict)
	if third := put(t, kv, "key", "three", 0); first >= second || second >= third {
		t.Errorf("versions %d, %d, %d", first, second, third)
	}
}

func listed(t *testing.T, of target) {
	kv := of.open(t)(t)
	want := map[string]Version{}
	for _, key := range []string{"log/001", "log/002", "log/010", "blob/ABC/0", "blob/ABC/10", "logs"} {
		want[key] = put(t, kv, key, key, 0)
	}
	for _, prefix := range []string{"", "log", "log/", "log/0", "log/01", "blob/", "blob/ABC/1", "none"} {
		entries, err := kv.List(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]Version{}
		for _, e := range entries {
			got[e.Key] = e.Version
			if e.Value != nil && string(e.Value) != e.Key {
				t.Errorf("%q: the value of %s is %q", prefix, e.Key, e.Value)
			}
		}
		wanted := maps.Clone(want)
		maps.DeleteFunc(wanted, func(key string, _ Version) bool { return !strings.HasPrefix(key, prefix) })
		if !maps.Equal(wanted, got) {
			t.Errorf("%q: %v, want %v", prefix, got, wanted)
		}
	}
}

func increments(t *testing.T, of target) {
	open := of.open(t)
	const writers = 4
	put(t, open(t), "n", "0", 0)
	var group sync.WaitGroup
	for w := range writers {
		kv := open(t)
		group.Go(func() {
			for done := 0; done < of.rounds; {
				e, err := kv.Get(t.Context(), "n")
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				n, err := strconv.Atoi(string(e.Value))
				if err != nil {
					t.Errorf("writer %d read %q", w, e.Value)
					return
				}
				switch _, err := kv.Put(t.Context(), "n", []byte(strconv.Itoa(n+1)), e.Version); {
				case err == nil:
					done++
				case !errors.Is(err, ErrConflict):
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := string(get(t, open(t), "n").Value); got != strconv.Itoa(writers*of.rounds) {
		t.Errorf("%s increments are left of %d", got, writers*of.rounds)
	}
}

func creators(t *testing.T, of target) {
	open := of.open(t)
	won := make(chan string, 6)
	var group sync.WaitGroup
	for i := range cap(won) {
		kv := open(t)
		group.Go(func() {
			value := strings.Repeat(strconv.Itoa(i), 1+i*5_000)
			switch _, err := kv.Put(t.Context(), "one", []byte(value), 0); {
			case err == nil:
				won <- value
			case !errors.Is(err, ErrConflict):
				t.Errorf("creator %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 || string(get(t, open(t), "one").Value) != <-won {
		t.Error("not exactly one creator succeeded")
	}
}

func endedContext(t *testing.T, of target) {
	kv := of.open(t)(t)
	v := put(t, kv, "key", "x", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := kv.Get(ctx, "key")
	fails(t, "get", err, context.Canceled)
	_, err = kv.Put(ctx, "key", []byte("y"), v)
	fails(t, "put", err, context.Canceled)
	fails(t, "delete", kv.Delete(ctx, "key"), context.Canceled)
	_, err = kv.List(ctx, "")
	fails(t, "list", err, context.Canceled)
	_, err = kv.Leader(ctx)
	fails(t, "leader", err, context.Canceled)
	if got := get(t, kv, "key"); string(got.Value) != "x" {
		t.Errorf("the value is %q", got.Value)
	}
}

// likeAMap draws calls by two clients and compares them with a map. It has its own seed:
// opening a store for each of rapid's runs takes too long on a cluster.
func likeAMap(t *testing.T, of target) {
	open := of.open(t)
	clients := []KV{open(t), open(t)}
	rng := rand.New(rand.NewPCG(7, 1))
	keys := []string{"a", "a/b", "a/c", "b"}
	want := map[string]Entry{}
	for i := range 10 * of.rounds {
		kv, key := clients[rng.IntN(2)], keys[rng.IntN(len(keys))]
		have, there := want[key]
		version, stale := have.Version, rng.IntN(4) == 0
		if stale {
			version += Version(1 + rng.IntN(3))
		}
		step := fmt.Sprintf("step %d, %s at version %d of %d", i, key, version, have.Version)
		switch rng.IntN(3) {
		case 0:
			value := []byte(noise([]int{1, 3, 30_000}[rng.IntN(3)], uint64(i)))
			next, err := kv.Put(t.Context(), key, value, version)
			if stale {
				fails(t, step+": put", err, ErrConflict)
				continue
			}
			if err != nil || next <= version {
				t.Fatalf("%s: put: version %d, %v", step, next, err)
			}
			want[key] = Entry{Key: key, Value: value, Version: next}
		case 1:
			if err := kv.Delete(t.Context(), key); err != nil {
				t.Fatalf("%s: delete: %v", step, err)
			}
			delete(want, key)
		default:
			got, err := kv.Get(t.Context(), key)
			if !there {
				fails(t, step+": get", err, ErrNotFound)
			} else if err != nil || got.Version != have.Version || !bytes.Equal(got.Value, have.Value) {
				t.Fatalf("%s: get: version %d of %d bytes, %v", step, got.Version, len(got.Value), err)
			}
		}
	}
	list, err := clients[0].List(t.Context(), "")
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	if err != nil || len(list) != len(want) {
		t.Errorf("in the end: %d keys, %v; want %d", len(list), err, len(want))
	}
}

func replicated(t *testing.T, of target) {
	open := of.open(t)
	first, _ := takeOver(t, t, open(t))
	for i := range 12 {
		write(t, first, change(strconv.Itoa(i), noise(100, uint64(i))))
	}
	large := noise(open(t).Limit()%(1<<20)+10_000, 1)
	write(t, first, change("large", large, "0", ""))
	watcher, seen := standby(open(t)), copied{}
	load(t, t, watcher, seen)
	_, got := takeOver(t, t, open(t))
	if len(got) != 12 || got["large"] != large || got["11"] != noise(100, 11) || !maps.Equal(got, seen) {
		t.Errorf("the next leader has %d keys, the standby %d", len(got), len(seen))
	}
	fails(t, "a write of the first", first.Write(t.Context(), change("1", "x")), ErrStale)
}
