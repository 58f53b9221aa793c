package chunk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/store"
)

// pages is a store of small values in memory, with a way to fail.
type pages struct {
	mu      sync.Mutex
	version store.Version
	all     map[string]Page
	bare    bool // it lists without values
	writes  int
	// fault ends a writing call before it has its effect, or after.
	fault func(n int, path string) (before, after error)
	seen  func(path string) // of every read
}

const tiny = 8

func (p *pages) Limit() int { return tiny }

func (p *pages) Read(_ context.Context, path string) (Page, error) {
	if p.seen != nil {
		p.seen(path)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	page, ok := p.all[path]
	if !ok {
		return Page{}, store.ErrNotFound
	}
	return page, nil
}

func (p *pages) List(_ context.Context, prefix string) ([]Page, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Page
	for path, page := range p.all {
		if strings.HasPrefix(path, prefix) {
			if p.bare {
				page.Value = nil
			}
			out = append(out, page)
		}
	}
	return out, nil
}

func (p *pages) write(path string, version store.Version, do func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	var before, after error
	if p.fault != nil {
		before, after = p.fault(p.writes, path)
	}
	if before != nil {
		return before
	}
	if p.all[path].Version != version {
		return store.ErrConflict
	}
	do()
	return after
}

func (p *pages) Write(_ context.Context, path string, value []byte, version store.Version) (store.Version, error) {
	if len(value) > tiny && !strings.HasPrefix(path, heads) || len(value) == 0 {
		return 0, fmt.Errorf("%w: a page of %d bytes", store.ErrInvalid, len(value))
	}
	var next store.Version
	err := p.write(path, version, func() {
		p.version++
		next = p.version
		p.all[path] = Page{Path: path, Value: bytes.Clone(value), Version: next}
	})
	return next, err
}

func (p *pages) Remove(_ context.Context, path string, version store.Version) error {
	return p.write(path, version, func() { delete(p.all, path) })
}

func (p *pages) count(prefix string) int {
	found, _ := p.List(context.Background(), prefix) // it never fails
	return len(found)
}

var errGone = fmt.Errorf("%w: the answer is lost", store.ErrUnavailable)

// A writer dies at any call, or loses its answer: another reads the old value or the
// new one, whole, and in the end nothing is left of the rest.
func TestAValueIsTheOldOneOrTheNewOneWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := &pages{all: map[string]Page{}, bare: rapid.Bool().Draw(r, "bare")}
		want := map[string]string{}
		now := time.Unix(1_700_000_000, 0)
		for range rapid.IntRange(1, 8).Draw(r, "writers") {
			v := New(p)
			v.now = func() time.Time { return now }
			key := rapid.SampledFrom([]string{"a", "a/b"}).Draw(r, "key")
			value := strings.Repeat(rapid.StringMatching("[a-z]").Draw(r, "letter"), rapid.IntRange(0, 5*tiny).Draw(r, "size"))
			dies, dead, late := rapid.IntRange(1, 15).Draw(r, "dies at write"), false, rapid.Bool().Draw(r, "after the effect")
			p.writes = 0
			p.fault = func(n int, _ string) (before, after error) {
				switch {
				case dead:
					return errGone, nil
				case n == dies:
					if dead = true; late {
						return nil, errGone
					}
					return errGone, nil
				}
				return nil, nil
			}
			old, there := want[key]
			e, err := v.Get(t.Context(), key)
			if there != (err == nil) || string(e.Value) != old {
				r.Fatalf("%s is %q, %v; want %q", key, e.Value, err, old)
			}
			next, gone := value, false
			if there && rapid.IntRange(0, 4).Draw(r, "deletes") == 0 {
				gone, err = true, v.Delete(t.Context(), key, e.Version)
			} else {
				_, err = v.Put(t.Context(), key, []byte(value), e.Version)
			}
			p.fault = nil
			after, aerr := New(p).Get(t.Context(), key)
			happened := !gone && aerr == nil && string(after.Value) == next || gone && errors.Is(aerr, store.ErrNotFound)
			kept := there == (aerr == nil) && string(after.Value) == old
			if !happened && (err == nil || !kept) {
				r.Fatalf("after %v %s is %q, %v; it was %q and was to be %q", err, key, after.Value, aerr, old, next)
			}
			if happened {
				if want[key] = next; gone {
					delete(want, key)
				}
			}
			now = now.Add(time.Hour)
		}
		v := New(p)
		v.now = func() time.Time { return now.Add(2 * Orphan) }
		if _, err := v.Sweep(t.Context()); err != nil {
			r.Fatalf("sweep: %v", err)
		}
		list, err := v.List(t.Context(), "")
		if err != nil || len(list) != len(want) {
			r.Fatalf("%d values, %v; want %d", len(list), err, len(want))
		}
		need := 0
		for _, e := range list {
			if string(e.Value) != want[e.Key] {
				r.Errorf("%s is %q, want %q", e.Key, e.Value, want[e.Key])
			}
			if len(e.Value)+1 > tiny {
				need += (len(e.Value) + tiny - 1) / tiny
			}
		}
		if got := p.count(chunks); got != need {
			r.Errorf("%d chunks are left, %d are needed", got, need)
		}
	})
}

func TestAReaderBetweenTwoChunksReadsTheNewValue(t *testing.T) {
	t.Parallel()
	p := &pages{all: map[string]Page{}}
	writer, reader := New(p), New(p)
	version, err := writer.Put(t.Context(), "key", bytes.Repeat([]byte("a"), 5*tiny), 0)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	p.seen = func(path string) {
		if reads++; reads == 3 && strings.HasPrefix(path, chunks) {
			p.seen = nil
			if _, err := writer.Put(t.Context(), "key", bytes.Repeat([]byte("b"), 4*tiny), version); err != nil {
				t.Error(err)
			}
		}
	}
	e, err := reader.Get(t.Context(), "key")
	if err != nil || string(e.Value) != strings.Repeat("b", 4*tiny) {
		t.Errorf("it reads %q, %v", e.Value, err)
	}
}

func TestWhatIsDamagedIsSaidToBeAndCanBeReplaced(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(p *pages){
		"a chunk is missing": func(p *pages) {
			for path := range p.all {
				if strings.HasPrefix(path, chunks) {
					delete(p.all, path)
					return
				}
			}
		},
		"a chunk is another": func(p *pages) {
			for path, page := range p.all {
				if strings.HasPrefix(path, chunks) {
					page.Value = []byte("another")
					p.all[path] = page
				}
			}
		},
		"the head is no head":      func(p *pages) { head(p, []byte("?")) },
		"the head is empty":        func(p *pages) { head(p, nil) },
		"the manifest is no JSON":  func(p *pages) { head(p, []byte("c{")) },
		"the manifest is nonsense": func(p *pages) { head(p, []byte(`c{"generation":"../x","chunks":-1,"size":99999999}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pages{all: map[string]Page{}}
			if _, err := New(p).Put(t.Context(), "key", bytes.Repeat([]byte("a"), 5*tiny), 0); err != nil {
				t.Fatal(err)
			}
			harm(p)
			if e, err := New(p).Get(t.Context(), "key"); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("get: %q, %v", e.Value, err)
			}
			if _, err := New(p).Put(t.Context(), "key", []byte("new"), p.all[heads+"key"].Version); err != nil {
				t.Fatal(err)
			}
			if e, err := New(p).Get(t.Context(), "key"); err != nil || string(e.Value) != "new" {
				t.Errorf("after it was replaced: %q, %v", e.Value, err)
			}
		})
	}
}

func head(p *pages, value []byte) {
	page := p.all[heads+"key"]
	page.Value = value
	p.all[heads+"key"] = page
}

func TestChunksOfAWriterThatIsStillAtWorkAreNotSwept(t *testing.T) {
	t.Parallel()
	p := &pages{all: map[string]Page{}}
	writer := New(p)
	p.fault = func(_ int, path string) (before, after error) {
		if strings.HasPrefix(path, heads) {
			return errGone, nil
		}
		return nil, nil
	}
	if _, err := writer.Put(t.Context(), "key", bytes.Repeat([]byte("a"), 5*tiny), 0); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("put: %v", err)
	}
	p.fault = nil
	for age, left := range map[time.Duration]int{time.Hour: 5, Orphan + time.Hour: 0} {
		sweeper := New(&pages{all: p.all})
		if age > Orphan {
			sweeper = New(p)
		}
		sweeper.now = func() time.Time { return time.Now().Add(age) }
		n, err := sweeper.Sweep(t.Context())
		if err != nil || age < Orphan && n != 0 {
			t.Errorf("after %v: %d swept, %v", age, n, err)
		}
		if age > Orphan && p.count(chunks) != left {
			t.Errorf("after %v: %d chunks are left", age, p.count(chunks))
		}
	}
}

func FuzzAHeadIsReadWithoutPanic(f *testing.F) {
	f.Add([]byte("vvalue"))
	f.Add([]byte(`c{"generation":"00-a","chunks":1,"size":3,"sha256":"x"}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, value, err := parse(raw)
		if err == nil && m == nil && len(value) != len(raw)-1 {
			t.Errorf("%q is the value %q", raw, value)
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("error %v", err)
		}
	})
}
