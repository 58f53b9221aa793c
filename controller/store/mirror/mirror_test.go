package mirror_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/store"
	"pitchpipe/controller/store/mirror"
	"pitchpipe/controller/store/storetest"
)

func always() error { return nil }

// tb is what both testing.T and rapid.T are.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// copied keeps what snapshots say.
type copied map[string]string

func (c copied) apply(s knowledge.Snapshot) error {
	if s.Full {
		clear(c)
	}
	for k, v := range s.Values {
		if c[k] = string(v); v == nil {
			delete(c, k)
		}
	}
	return nil
}

// takeOver is what a new leader does.
func takeOver(t *testing.T, tt tb, s store.Store) (*mirror.Mirror, copied) {
	tt.Helper()
	m, c := mirror.New(s, "state", always), copied{}
	if err := m.Finish(t.Context()); err != nil {
		tt.Fatalf("finish: %v", err)
	}
	if err := m.Load(t.Context(), c.apply); err != nil {
		tt.Fatalf("load: %v", err)
	}
	return m, c
}

func change(pairs ...string) map[string][]byte {
	out := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = []byte(pairs[i+1])
		if pairs[i+1] == "" {
			out[pairs[i]] = nil
		}
	}
	return out
}

func TestWhatOneWroteTheNextLoads(t *testing.T) {
	t.Parallel()
	memory := storetest.NewMemory()
	first, _ := takeOver(t, t, memory.Client(storetest.Faults{}))
	long := strings.Repeat(`{"epoch":1,"loss":0.5},`, 1000)
	for _, c := range []map[string][]byte{
		change("schema", "1"), change("records/records/local/1", "a", "records/pauses/cluster/", "b"), change("odd key\x01ü//.", long),
		change("records/records/local/1", "c"), change("gone", "x", "gone too", "y"), change("gone", ""), change("gone too", "", "schema", "2"),
	} {
		if err := first.Write(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	_, got := takeOver(t, t, memory.Client(storetest.Faults{}))
	want := copied{"schema": "2", "records/records/local/1": "c", "records/pauses/cluster/": "b", "odd key\x01ü//.": long}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoStandsByReadsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	memory := storetest.NewMemory()
	leader, _ := takeOver(t, t, memory.Client(storetest.Faults{}))
	for i := range 50 {
		if err := leader.Write(t.Context(), change(strconv.Itoa(i), "x")); err != nil {
			t.Fatal(err)
		}
	}
	var reads atomic.Int32
	other, got := mirror.New(memory.Client(storetest.Faults{Before: func(op, _ string) error {
		if op == "get" {
			reads.Add(1)
		}
		return nil
	}}), "state", always), copied{}
	if err := other.Load(t.Context(), got.apply); err != nil {
		t.Fatal(err)
	}
	if err := leader.Write(t.Context(), change("3", "y", "4", "", "50", "z")); err != nil {
		t.Fatal(err)
	}
	if err := other.Load(t.Context(), got.apply); err != nil {
		t.Fatal(err)
	}
	if len(got) != 50 || got["3"] != "y" || got["4"] != "" || got["50"] != "z" || reads.Load() != 2 {
		t.Errorf("%d keys after %d reads: %v", len(got), reads.Load(), got)
	}
	// What could not be applied comes again.
	if err := leader.Write(t.Context(), change("3", "again")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if err := other.Load(t.Context(), func(knowledge.Snapshot) error { return full }); !errors.Is(err, full) {
		t.Errorf("load: %v", err)
	}
	if err := other.Load(t.Context(), got.apply); err != nil || got["3"] != "again" {
		t.Errorf("after a load that failed there is %q, %v", got["3"], err)
	}
}

func TestNothingIsWrittenOverWhatAnotherWrote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]map[string][]byte{
		"of a key that another changed":        change("a", "mine"),
		"of a key that another deleted":        change("b", "mine"),
		"of a key that another made":           change("c", "mine"),
		"a deletion of what another changed":   change("a", ""),
		"a deletion of what another deleted":   change("b", ""),
		"of several, one of which another has": change("a", "mine", "d", "mine"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := storetest.NewMemory()
			old, _ := takeOver(t, t, memory.Client(storetest.Faults{}))
			if err := old.Write(t.Context(), change("a", "1", "b", "1")); err != nil {
				t.Fatal(err)
			}
			next, _ := takeOver(t, t, memory.Client(storetest.Faults{}))
			for _, theirs := range []map[string][]byte{change("a", "theirs"), change("b", ""), change("c", "theirs")} {
				if err := next.Write(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
			}
			if err := old.Write(t.Context(), c); !errors.Is(err, mirror.ErrStale) {
				t.Errorf("write: %v", err)
			}
			select {
			case <-old.Stale():
			default:
				t.Error("nobody is told")
			}
			if err := old.Write(t.Context(), change("e", "mine")); !errors.Is(err, mirror.ErrStale) {
				t.Errorf("the next write: %v", err)
			}
			_, got := takeOver(t, t, memory.Client(storetest.Faults{}))
			if diff := cmp.Diff(copied{"a": "theirs", "c": "theirs"}, got); diff != "" {
				t.Errorf("there is (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoMayNotWriteDoesNot(t *testing.T) {
	t.Parallel()
	memory := storetest.NewMemory()
	standby := errors.New("stands by")
	m := mirror.New(memory.Client(storetest.Faults{}), "state", func() error { return standby })
	if err := m.Load(t.Context(), copied{}.apply); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), change("a", "b")); !errors.Is(err, standby) {
		t.Errorf("write: %v", err)
	}
	free := mirror.New(memory.Client(storetest.Faults{}), "state", always)
	if err := free.Write(t.Context(), change("a", "b")); !errors.Is(err, mirror.ErrStale) {
		t.Errorf("write before the first load: %v", err)
	}
	if _, got := takeOver(t, t, memory.Client(storetest.Faults{})); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

var errLost = fmt.Errorf("%w: the answer is lost", store.ErrUnavailable)

func TestAnAnswerThatIsLostIsSortedOut(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened %t", happened), func(t *testing.T) {
			t.Parallel()
			memory := storetest.NewMemory()
			lose := false
			fault := func(op, _ string) error {
				if lose && op == "put" {
					lose = false
					return errLost
				}
				return nil
			}
			faults := storetest.Faults{Before: fault}
			if happened {
				faults = storetest.Faults{After: fault}
			}
			m, _ := takeOver(t, t, memory.Client(faults))
			if err := m.Write(t.Context(), change("a", "1")); err != nil {
				t.Fatal(err)
			}
			lose = true
			if err := m.Write(t.Context(), change("a", "2")); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("write: %v", err)
			}
			if err := m.Write(t.Context(), change("a", "3")); err != nil {
				t.Errorf("the next write: %v", err)
			}
			if _, got := takeOver(t, t, memory.Client(storetest.Faults{})); got["a"] != "3" {
				t.Errorf("there is %v", got)
			}
		})
	}
}

// A process dies at any call to the store, or loses its answer: the next one finds
// each change whole or not at all, and every one that was confirmed.
func TestAChangeIsWholeOrNotThereWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		memory := storetest.NewMemory()
		var calls, dies int
		dead := false
		fault := func(before bool) func(string, string) error {
			return func(string, string) error {
				if before {
					calls++
				}
				if dead || calls == dies && before == (dies%2 == 0) {
					dead = true
					return errLost
				}
				return nil
			}
		}
		want := map[string]string{}
		for range rapid.IntRange(1, 5).Draw(r, "processes") {
			calls, dead, dies = 0, false, rapid.IntRange(5, 40).Draw(r, "dies at call")
			broken, got := takeOver(t, r, memory.Client(storetest.Faults{Before: fault(true), After: fault(false)}))
			if diff := cmp.Diff(want, map[string]string(got)); diff != "" {
				r.Fatalf("(-want +got):\n%s", diff)
			}
			var outcomes []map[string]string // any of which may be there after the last, failed write
			for range rapid.IntRange(1, 12).Draw(r, "writes") {
				c := map[string][]byte{}
				for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d/e"}), 1, 3, rapid.ID).Draw(r, "keys") {
					c[key] = []byte(rapid.StringMatching("[a-z]{1,3}").Draw(r, "value"))
					if rapid.IntRange(0, 3).Draw(r, "deletes") == 0 {
						c[key] = nil
					}
				}
				next := maps.Clone(want)
				for k, v := range c {
					if next[k] = string(v); v == nil {
						delete(next, k)
					}
				}
				if err := broken.Write(t.Context(), c); err != nil {
					outcomes = []map[string]string{want, next}
					break
				}
				want = next
			}
			if outcomes == nil {
				continue
			}
			_, after := takeOver(t, r, memory.Client(storetest.Faults{}))
			if cmp.Equal(outcomes[1], map[string]string(after)) {
				want = outcomes[1]
			} else if diff := cmp.Diff(want, map[string]string(after)); diff != "" {
				r.Fatalf("neither before nor after the change that failed (-before +got):\n%s", diff)
			}
		}
	})
}

// Two processes that both believe that they lead write in turns: whoever did not see the
// other's change is refused, so that no confirmed one is lost.
func TestOfTwoWritersNoConfirmedChangeIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		memory := storetest.NewMemory()
		type process struct {
			m *mirror.Mirror
			c copied
		}
		load := func() process {
			m, c := takeOver(t, r, memory.Client(storetest.Faults{}))
			return process{m, c}
		}
		both := []process{load(), load()}
		confirmed := map[string]int{}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			i := rapid.IntRange(0, 1).Draw(r, "who")
			p := both[i]
			c := map[string][]byte{}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID).Draw(r, "keys") {
				n, _ := strconv.Atoi(p.c[key]) // nothing counts as 0
				c[key] = []byte(strconv.Itoa(n + 1))
			}
			if err := p.m.Write(t.Context(), c); err != nil {
				if !errors.Is(err, mirror.ErrStale) {
					r.Fatalf("write: %v", err)
				}
				if len(c) > 1 { // whether it happened is known when the batch was finished
					before := load()
					for key, v := range c {
						if before.c[key] == string(v) && confirmed[key] < mustInt(before.c[key]) {
							confirmed[key]++
						}
					}
				}
				both[i] = load()
				continue
			}
			for key, v := range c {
				p.c[key] = string(v)
				confirmed[key]++
			}
		}
		got := load().c
		for key, n := range confirmed {
			if mustInt(got[key]) < n {
				r.Errorf("%s is %s after %d confirmed changes", key, got[key], n)
			}
		}
	})
}

func mustInt(s string) int {
	n, _ := strconv.Atoi(s) // nothing counts as 0
	return n
}

func FuzzAStoredValueIsNeverMistaken(f *testing.F) {
	f.Add([]byte("p"), "key")
	f.Add([]byte{'d', 1, 2, 3}, "a//b")
	f.Add(bytes.Repeat([]byte("x"), 400), "~")
	f.Fuzz(func(t *testing.T, value []byte, key string) {
		if len(key) > 100 || len(value) > 1<<16 {
			t.Skip("longer than what the store takes")
		}
		memory := storetest.NewMemory()
		m, _ := takeOver(t, t, memory.Client(storetest.Faults{}))
		if err := m.Write(t.Context(), map[string][]byte{key: append([]byte{}, value...)}); err != nil {
			t.Fatal(err)
		}
		_, got := takeOver(t, t, memory.Client(storetest.Faults{}))
		if got[key] != string(value) || len(got) != 1 {
			t.Errorf("%q is %q, put as %q", key, got[key], value)
		}
		// What is no entry of ours is an error, not a value.
		raw := memory.Client(storetest.Faults{})
		if _, err := raw.Put(t.Context(), "state/entries/other", value, 0); err != nil {
			t.Skip("that key is taken")
		}
		_ = mirror.New(raw, "state", always).Load(t.Context(), copied{}.apply) // must not panic
	})
}
