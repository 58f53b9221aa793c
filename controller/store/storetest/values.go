package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/store"
)

func putIsGot(t *testing.T, target Target) {
	s := open(t, target)
	v := put(t, s, "a/b", []byte("one"), 0)
	if diff := cmp.Diff(store.Entry{Key: "a/b", Value: []byte("one"), Version: v}, get(t, s, "a/b")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	v = put(t, s, "a/b", []byte("two"), v)
	if diff := cmp.Diff(store.Entry{Key: "a/b", Value: []byte("two"), Version: v}, get(t, s, "a/b")); diff != "" {
		t.Errorf("after the second put (-want +got):\n%s", diff)
	}
	if err := s.Delete(t.Context(), "a/b", v); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "a/b")
	fails(t, "get after the delete", err, store.ErrNotFound)
}

func notFound(t *testing.T, target Target) {
	s := open(t, target)
	_, err := s.Get(t.Context(), "nobody")
	fails(t, "get", err, store.ErrNotFound)
	fails(t, "delete", s.Delete(t.Context(), "nobody", 7), store.ErrNotFound)
	for name, list := range lists(s) {
		if got, err := list(t.Context(), ""); err != nil || len(got) != 0 {
			t.Errorf("%s of an empty store: %v, %v", name, got, err)
		}
	}
}

func lists(s store.Store) map[string]func(context.Context, string) ([]store.Entry, error) {
	return map[string]func(context.Context, string) ([]store.Entry, error){"list": s.List, "keys": s.Keys}
}

// noise is bytes that do not compress.
func noise(size int, seed uint64) []byte {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	out := make([]byte, size)
	_, _ = rng.Read(out) // never fails
	return out
}

func everyValue(t *testing.T, target Target) {
	s := open(t, target)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	values := map[string][]byte{"empty": {}, "zero": {0}, "all": all, "json": []byte(`{"a":"ü\u0000"}`), "zeros": make([]byte, 70_000)}
	for _, size := range []int{1, 40_000, 46_000, 49_000, 64 << 10, 66_000, 500_000, 512 << 10, 530_000, 1 << 20} {
		values["of-"+strconv.Itoa(size)] = noise(size, uint64(size))
	}
	for key, value := range values {
		put(t, s, key, value, 0)
	}
	for key, value := range values {
		if got := get(t, s, key); !bytes.Equal(got.Value, value) || got.Value == nil {
			t.Errorf("%s: got %d bytes, which are not the %d that were put", key, len(got.Value), len(value))
		}
	}
	got, err := s.List(t.Context(), "")
	if err != nil || len(got) != len(values) {
		t.Fatalf("list: %d values, %v; want %d", len(got), err, len(values))
	}
	for _, e := range got {
		if !bytes.Equal(e.Value, values[e.Key]) || e.Value == nil {
			t.Errorf("%s in the list: %d bytes, which are not the %d that were put", e.Key, len(e.Value), len(values[e.Key]))
		}
	}
}

func growing(t *testing.T, target Target) {
	s := open(t, target)
	var v store.Version
	for i, size := range []int{10, 200_000, 30, 1_000_000, 150_000, 0, 700_000} {
		value := noise(size, uint64(i))
		v = put(t, s, "key", value, v)
		if got := get(t, s, "key"); !bytes.Equal(got.Value, value) || got.Version != v {
			t.Errorf("%d bytes: got %d of version %d, want version %d", size, len(got.Value), got.Version, v)
		}
	}
	if err := s.Delete(t.Context(), "key", v); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Keys(t.Context(), ""); err != nil || len(got) != 0 {
		t.Errorf("after the delete there is %v, %v", got, err)
	}
	small := noise(100_000, 99)
	put(t, s, "key", small, 0)
	if got := get(t, s, "key"); !bytes.Equal(got.Value, small) {
		t.Errorf("put anew: got %d bytes that are not those", len(got.Value))
	}
}

func putConflicts(t *testing.T, target Target) {
	s := open(t, target)
	_, err := s.Put(t.Context(), "key", []byte("x"), 5)
	fails(t, "a version where there is nothing", err, store.ErrConflict)
	first := put(t, s, "key", []byte("one"), 0)
	_, err = s.Put(t.Context(), "key", []byte("x"), 0)
	fails(t, "version 0 where there is something", err, store.ErrConflict)
	second := put(t, s, "key", []byte("two"), first)
	for name, value := range map[string][]byte{"small": []byte("x"), "large": noise(200_000, 1)} {
		_, err = s.Put(t.Context(), "key", value, first)
		fails(t, "an old version, "+name, err, store.ErrConflict)
		_, err = s.Put(t.Context(), "key", value, second+1000)
		fails(t, "a version to come, "+name, err, store.ErrConflict)
	}
	if got := get(t, s, "key"); string(got.Value) != "two" || got.Version != second {
		t.Errorf("after the conflicts there is %q of version %d", got.Value, got.Version)
	}
}

func deleteConflicts(t *testing.T, target Target) {
	s := open(t, target)
	first := put(t, s, "key", []byte("one"), 0)
	second := put(t, s, "key", noise(100_000, 2), first)
	for _, v := range []store.Version{0, first, second + 1000} {
		fails(t, fmt.Sprintf("delete at version %d", v), s.Delete(t.Context(), "key", v), store.ErrConflict)
	}
	if got := get(t, s, "key"); !bytes.Equal(got.Value, noise(100_000, 2)) || got.Version != second {
		t.Errorf("after the conflicts there is version %d of %d bytes", got.Version, len(got.Value))
	}
}

func versionsGrow(t *testing.T, target Target) {
	s := open(t, target)
	var last store.Version
	for range 3 {
		v := put(t, s, "key", []byte("same"), 0)
		if v <= last {
			t.Errorf("version %d after %d", v, last)
		}
		next := put(t, s, "key", []byte("same"), v)
		if next <= v {
			t.Errorf("version %d after %d", next, v)
		}
		if err := s.Delete(t.Context(), "key", next); err != nil {
			t.Fatal(err)
		}
		last = next
	}
}

func listed(t *testing.T, target Target) {
	s := open(t, target)
	keys := []string{"b", "a/2", "a/10", "a/1", "ab", "a-b", "a.b", "a_b", "A", "c/d/e", "c/d", "z~z", "0"}
	for i, k := range keys {
		put(t, s, k, []byte(k), 0)
		if i == 3 { // one that is large, and one that is no more
			v := put(t, s, "a/gone", []byte("x"), 0)
			if err := s.Delete(t.Context(), "a/gone", v); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, prefix := range []string{"", "a", "a/", "a/1", "c/d", "c/d/", "c/d/e", "nobody", "A", "z~", "a.", "a_", "/"} {
		var want []string
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		for name, list := range lists(s) {
			entries, err := list(t.Context(), prefix)
			if err != nil {
				t.Fatalf("%s %q: %v", name, prefix, err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Key)
				if one := get(t, s, e.Key); one.Version != e.Version {
					t.Errorf("%s %q: %s has version %d, alone %d", name, prefix, e.Key, e.Version, one.Version)
				}
				if value := string(e.Value); name == "list" && value != e.Key || name == "keys" && e.Value != nil {
					t.Errorf("%s %q: the value of %s is %q", name, prefix, e.Key, value)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %q (-want +got):\n%s", name, prefix, diff)
			}
		}
	}
}

func nestedKeys(t *testing.T, target Target) {
	s := open(t, target)
	versions := map[string]store.Version{}
	for _, k := range []string{"job", "job/1", "job/1/2"} {
		versions[k] = put(t, s, k, []byte(k), 0)
	}
	if err := s.Delete(t.Context(), "job/1", versions["job/1"]); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"job", "job/1/2"} {
		if got := get(t, s, k); string(got.Value) != k {
			t.Errorf("%s is %q", k, got.Value)
		}
	}
}

func badKeys(t *testing.T, target Target) {
	s := open(t, target)
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", "a b", "ä", "a\x00b", "a?b", "a%2fb", "..", "a/../b", "./a", "a/.", "a+b", "a\nb",
		strings.Repeat("k", store.MaxKey+1),
	} {
		_, err := s.Put(t.Context(), key, []byte("x"), 0)
		fails(t, fmt.Sprintf("put %q", key), err, store.ErrInvalid)
		_, err = s.Get(t.Context(), key)
		fails(t, fmt.Sprintf("get %q", key), err, store.ErrInvalid)
		fails(t, fmt.Sprintf("delete %q", key), s.Delete(t.Context(), key, 1), store.ErrInvalid)
		_, err = s.Lead(short(t), key, "nobody")
		fails(t, fmt.Sprintf("lead %q", key), err, store.ErrInvalid)
		_, err = s.Leader(t.Context(), key)
		fails(t, fmt.Sprintf("leader of %q", key), err, store.ErrInvalid)
	}
	if got, err := s.Keys(t.Context(), ""); err != nil || len(got) != 0 {
		t.Errorf("stored all the same: %v, %v", got, err)
	}
}

func tooLarge(t *testing.T, target Target) {
	s := open(t, target)
	_, err := s.Put(t.Context(), "key", make([]byte, store.MaxValue+1), 0)
	fails(t, "put", err, store.ErrInvalid)
	_, err = s.Get(t.Context(), "key")
	fails(t, "get", err, store.ErrNotFound)
}

func oddKeys(t *testing.T, target Target) {
	s := open(t, target)
	long := strings.TrimSuffix(strings.Repeat("longer/", store.MaxKey/7+1)[:store.MaxKey-1], "/")
	keys := []string{
		"~", "~~", "~2e", "~2F", "...", ".hidden", "-", "_", "a.b.c", "A/a", "a/A", "x~y", "nomad/jobs/x", "v1", "index",
		long + "1", long + "2", strings.Repeat("w", store.MaxKey), "k/k", "c/c", "lock", "locks/a",
	}
	for _, k := range keys {
		put(t, s, k, []byte(k), 0)
	}
	for _, k := range keys {
		if got := get(t, s, k); string(got.Value) != k {
			t.Errorf("%s is %q", k, got.Value)
		}
	}
	slices.Sort(keys)
	entries, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Key)
	}
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	entries, err = s.Keys(t.Context(), long)
	if err != nil || len(entries) != 2 {
		t.Errorf("keys that begin with a long prefix: %d, %v; want 2", len(entries), err)
	}
}

func durable(t *testing.T, target Target) {
	b := target.New(t)
	first, second := client(t, b), client(t, b)
	small := put(t, first, "small", []byte("value"), 0)
	large := put(t, first, "large", noise(300_000, 3), 0)
	if got := get(t, second, "small"); string(got.Value) != "value" || got.Version != small {
		t.Errorf("the second client sees %q of version %d", got.Value, got.Version)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third := client(t, b)
	if got := get(t, third, "large"); !bytes.Equal(got.Value, noise(300_000, 3)) || got.Version != large {
		t.Errorf("after the close there is version %d of %d bytes, want version %d", got.Version, len(got.Value), large)
	}
	put(t, third, "large", []byte("less"), large)
	put(t, second, "small", noise(100_000, 4), small)
	if got := get(t, third, "small"); !bytes.Equal(got.Value, noise(100_000, 4)) {
		t.Error("the second client's value is not there")
	}
}

func closed(t *testing.T, target Target) {
	s := client(t, target.New(t))
	v := put(t, s, "key", []byte("x"), 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "key")
	fails(t, "get", err, store.ErrClosed)
	_, err = s.Put(t.Context(), "key", []byte("y"), v)
	fails(t, "put", err, store.ErrClosed)
	fails(t, "delete", s.Delete(t.Context(), "key", v), store.ErrClosed)
	_, err = s.List(t.Context(), "")
	fails(t, "list", err, store.ErrClosed)
	_, err = s.Keys(t.Context(), "")
	fails(t, "keys", err, store.ErrClosed)
	_, err = s.Lead(short(t), "name", "me")
	fails(t, "lead", err, store.ErrClosed)
	_, err = s.Leader(t.Context(), "name")
	fails(t, "leader", err, store.ErrClosed)
	if err := s.Close(); err != nil {
		t.Errorf("the second close: %v", err)
	}
}

func endedContext(t *testing.T, target Target) {
	s := open(t, target)
	v := put(t, s, "key", []byte("x"), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, "key")
	fails(t, "get", err, context.Canceled)
	_, err = s.Put(ctx, "key", []byte("y"), v)
	fails(t, "put", err, context.Canceled)
	fails(t, "delete", s.Delete(ctx, "key", v), context.Canceled)
	_, err = s.List(ctx, "")
	fails(t, "list", err, context.Canceled)
	_, err = s.Lead(ctx, "name", "me")
	fails(t, "lead", err, context.Canceled)
	_, err = s.Leader(ctx, "name")
	fails(t, "leader", err, context.Canceled)
	if got := get(t, s, "key"); string(got.Value) != "x" {
		t.Errorf("all the same the value is %q", got.Value)
	}
	if _, err := s.Leader(t.Context(), "name"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("all the same somebody leads: %v", err)
	}
}
