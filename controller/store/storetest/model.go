package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/store"
)

// likeAMap draws calls by two clients and compares them with a map. It is seeded by
// hand, since opening a store anew for each of rapid's many runs takes too long where
// the store is a cluster.
func likeAMap(t *testing.T, target Target) {
	b := target.New(t)
	clients := []store.Store{client(t, b).Store, client(t, b).Store}
	steps := 150
	if target.Small {
		steps = 60
	}
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	keys := []string{"a", "a/b", "a/c", "b"}
	want := map[string]store.Entry{}
	for i := range steps {
		s, key := clients[rng.IntN(2)], keys[rng.IntN(len(keys))]
		have, there := want[key]
		version, stale := have.Version, rng.IntN(4) == 0
		if stale {
			version += store.Version(1 + rng.IntN(3))
		}
		step := fmt.Sprintf("seed %d, step %d, %s at version %d of %d", seed, i, key, version, have.Version)
		switch rng.IntN(3) {
		case 0:
			value := noise([]int{0, 3, 120_000}[rng.IntN(3)], uint64(i))
			next, err := s.Put(t.Context(), key, value, version)
			if stale {
				fails(t, step+": put", err, store.ErrConflict)
				continue
			}
			if err != nil || next <= version {
				t.Fatalf("%s: put: version %d, %v", step, next, err)
			}
			want[key] = store.Entry{Key: key, Value: value, Version: next}
		case 1:
			err := s.Delete(t.Context(), key, version)
			switch {
			case !there:
				fails(t, step+": delete", err, store.ErrNotFound)
			case stale:
				fails(t, step+": delete", err, store.ErrConflict)
			case err != nil:
				t.Fatalf("%s: delete: %v", step, err)
			default:
				delete(want, key)
			}
		case 2:
			got, err := s.Get(t.Context(), key)
			if !there {
				fails(t, step+": get", err, store.ErrNotFound)
			} else if diff := cmp.Diff(have, got); diff != "" || err != nil {
				t.Fatalf("%s: get: %v (-want +got):\n%s", step, err, diff)
			}
		}
	}
	list, err := clients[0].List(t.Context(), "")
	got := map[string]store.Entry{}
	for _, e := range list {
		got[e.Key] = e
	}
	if diff := cmp.Diff(want, got); diff != "" || errors.Join(err) != nil {
		t.Errorf("in the end: %v (-want +got):\n%s", err, diff)
	}
}
