package storetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pitchpipe/controller/store"
)

func increments(t *testing.T, target Target) {
	b := target.New(t)
	const writers = 4
	rounds := 15
	if target.Small {
		rounds = 5
	}
	put(t, client(t, b).Store, "n", []byte("0"), 0)
	var group sync.WaitGroup
	for w := range writers {
		s := client(t, b).Store
		group.Go(func() {
			for done := 0; done < rounds; {
				e, err := s.Get(t.Context(), "n")
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				n, err := strconv.Atoi(strings.Trim(string(e.Value), " "))
				if err != nil {
					t.Errorf("writer %d read %q", w, e.Value)
					return
				}
				next := []byte(strconv.Itoa(n + 1))
				if w == 0 { // one writer's values need more than a page
					next = append(next, bytes.Repeat([]byte(" "), 80_000)...)
				}
				switch _, err := s.Put(t.Context(), "n", next, e.Version); {
				case err == nil:
					done++
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := strings.Trim(string(get(t, another(t, b), "n").Value), " "); got != strconv.Itoa(writers*rounds) {
		t.Errorf("%s increments are left of %d", got, writers*rounds)
	}
}

func another(t *testing.T, b Backend) store.Store {
	t.Helper()
	return client(t, b).Store
}

func creators(t *testing.T, target Target) {
	b := target.New(t)
	var mu sync.Mutex
	won := map[string]bool{}
	var group sync.WaitGroup
	for i := range 6 {
		s := client(t, b).Store
		group.Go(func() {
			value := strings.Repeat(strconv.Itoa(i), 1+i*20_000)
			_, err := s.Put(t.Context(), "one", []byte(value), 0)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won[value] = true
			} else if !errors.Is(err, store.ErrConflict) {
				t.Errorf("creator %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Fatalf("%d creators succeeded", len(won))
	}
	if got := get(t, another(t, b), "one"); !won[string(got.Value)] {
		t.Error("what is there is not what the one who succeeded put")
	}
}

func wholeValues(t *testing.T, target Target) {
	b := target.New(t)
	writer, reader := client(t, b).Store, client(t, b).Store
	rounds := 12
	if target.Small {
		rounds = 5
	}
	of := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 1+(i%3)*90_000) }
	v := put(t, writer, "key", of(0), 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		for i := 1; i <= rounds; i++ {
			next, err := writer.Put(t.Context(), "key", of(i), v)
			if err != nil {
				t.Errorf("put %d: %v", i, err)
				return
			}
			v = next
		}
	}()
	var last store.Version
	for ctx.Err() == nil {
		list, err := reader.List(t.Context(), "k")
		if err != nil || len(list) != 1 {
			t.Errorf("list: %d values, %v", len(list), err)
			break
		}
		for _, e := range []store.Entry{list[0], get(t, reader, "key")} {
			if len(e.Value) == 0 || len(bytes.Trim(e.Value, string(e.Value[:1]))) > 0 {
				t.Errorf("a mixture of values, of %d bytes", len(e.Value))
			}
			if e.Version < last {
				t.Errorf("version %d after %d", e.Version, last)
			}
			last = e.Version
		}
	}
	<-done
}
