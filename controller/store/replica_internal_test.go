package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/knowledge"
)

// tb is what both testing.T and rapid.T are.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
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

// standby is a replica with a short log.
func standby(kv KV) *Replica {
	r := NewReplica(kv, func() error { return nil })
	r.ring = 16
	return r
}

func load(t *testing.T, tt tb, r *Replica, c copied) {
	tt.Helper()
	if err := r.Load(t.Context(), c.apply); err != nil {
		tt.Fatalf("load: %v", err)
	}
}

// takeOver is what a new leader does.
func takeOver(t *testing.T, tt tb, kv KV) (*Replica, copied) {
	tt.Helper()
	r, c := standby(kv), copied{}
	if err := r.Begin(t.Context(), func(error) {}); err != nil {
		tt.Fatalf("begin: %v", err)
	}
	load(t, tt, r, c)
	return r, c
}

// change makes a change of keys and values; an empty value deletes.
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

func write(t *testing.T, r *Replica, c map[string][]byte) {
	t.Helper()
	if err := r.Write(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// noise is text that cannot be compressed.
func noise(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(1 + rng.IntN(255))
	}
	return string(out)
}

func TestWhatOneWroteTheNextLoads(t *testing.T) {
	t.Parallel()
	m := newMemory()
	first, _ := takeOver(t, t, client{memory: m})
	for _, c := range []map[string][]byte{
		change("schema", "1"), change("records/records/local/1", "a", "records/pauses/cluster/", "b"), change("odd key\x01ü//.", noise(5000, 1)),
		change("records/records/local/1", "c"), change("gone", "x", "gone too", "y"), change("gone", ""), change("gone too", "", "schema", "2"),
		{"empty": {}},
	} {
		write(t, first, c)
	}
	_, got := takeOver(t, t, client{memory: m})
	want := copied{"schema": "2", "records/records/local/1": "c", "records/pauses/cluster/": "b", "odd key\x01ü//.": noise(5000, 1), "empty": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAStandbyReadsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	m := newMemory()
	leader, _ := takeOver(t, t, client{memory: m})
	for i := range 50 {
		write(t, leader, change(strconv.Itoa(i), "x"))
	}
	var reads atomic.Int32
	count := func(op, _ string) error {
		if op == "get" {
			reads.Add(1)
		}
		return nil
	}
	other, got := standby(client{memory: m, before: count}), copied{}
	load(t, t, other, got)
	reads.Store(0)
	write(t, leader, change("3", "y", "4", "", "50", "z"))
	load(t, t, other, got)
	if len(got) != 50 || got["3"] != "y" || got["4"] != "" || got["50"] != "z" || reads.Load() != 1 {
		t.Errorf("%d keys after %d reads: %v", len(got), reads.Load(), got)
	}
	// A change that could not be applied comes again.
	write(t, leader, change("3", "again"))
	full := errors.New("disk full")
	if err := other.Load(t.Context(), func(knowledge.Snapshot) error { return full }); !errors.Is(err, full) {
		t.Errorf("load: %v", err)
	}
	load(t, t, other, got)
	if got["3"] != "again" {
		t.Errorf("after a load that failed there is %q", got["3"])
	}
}

func TestNothingIsWrittenOverWhatAnotherWrote(t *testing.T) {
	t.Parallel()
	m := newMemory()
	old := standby(client{memory: m})
	var deposed []error
	if err := old.Begin(t.Context(), func(err error) { deposed = append(deposed, err) }); err != nil {
		t.Fatal(err)
	}
	write(t, old, change("a", "1", "b", "1"))
	next, _ := takeOver(t, t, client{memory: m})
	for i := range 40 { // the log is overwritten and compacted meanwhile
		write(t, next, change("a", fmt.Sprint("theirs ", i)))
	}
	for range 2 {
		if err := old.Write(t.Context(), change("c", "mine")); !errors.Is(err, ErrStale) {
			t.Errorf("write: %v", err)
		}
	}
	if len(deposed) != 1 || !errors.Is(deposed[0], ErrStale) || !errors.Is(old.Err(), ErrStale) {
		t.Errorf("deposed by %v; err: %v", deposed, old.Err())
	}
	if err := old.Refresh(t.Context()); err != nil { // must not learn what it may overwrite
		t.Error(err)
	}
	if err := old.Write(t.Context(), change("c", "mine")); !errors.Is(err, ErrStale) {
		t.Errorf("write after a refresh: %v", err)
	}
	_, got := takeOver(t, t, client{memory: m})
	if diff := cmp.Diff(copied{"a": "theirs 39", "b": "1"}, got); diff != "" {
		t.Errorf("there is (-want +got):\n%s", diff)
	}
}

func TestOnlyALeaderWrites(t *testing.T) {
	t.Parallel()
	m := newMemory()
	refused := errors.New("stands by")
	r := NewReplica(client{memory: m}, func() error { return refused })
	load(t, t, r, copied{})
	if err := r.Write(t.Context(), change("a", "b")); !errors.Is(err, refused) {
		t.Errorf("write: %v", err)
	}
	if err := standby(client{memory: m}).Write(t.Context(), change("a", "b")); !errors.Is(err, ErrStale) {
		t.Errorf("write before the term began: %v", err)
	}
	if _, got := takeOver(t, t, client{memory: m}); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

var errAnswer = fmt.Errorf("%w: the answer is lost", ErrUnavailable)

func TestAnEntryWhoseAnswerIsLostIsFinishedBeforeTheNext(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened %t", happened), func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			lose := 0
			fault := func(op, _ string) error {
				if lose > 0 && op == "put" {
					lose--
					return errAnswer
				}
				return nil
			}
			kv := client{memory: m, before: fault}
			if happened {
				kv = client{memory: m, after: fault}
			}
			r, _ := takeOver(t, t, kv)
			write(t, r, change("a", "1"))
			lose = 2
			for _, c := range []map[string][]byte{change("a", "2", "b", "2"), change("a", "3")} {
				if err := r.Write(t.Context(), c); !errors.Is(err, ErrUnavailable) {
					t.Fatalf("write: %v", err)
				}
			}
			write(t, r, change("c", "4"))
			_, got := takeOver(t, t, client{memory: m})
			if got["b"] != "2" || got["c"] != "4" {
				t.Errorf("there is %v", got)
			}
		})
	}
}

// A process dies at any call to the store, or loses its answer: the next one finds each
// change whole or not at all, and every confirmed one. A standby that looks now and then
// sees the same.
func TestAChangeIsWholeOrNotThereWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory()
		var calls, dies atomic.Int32
		var dead atomic.Bool
		fault := func(before bool) func(string, string) error {
			return func(string, string) error {
				if before {
					calls.Add(1)
				}
				if dead.Load() || calls.Load() == dies.Load() && before == (dies.Load()%2 == 0) {
					dead.Store(true)
					return errAnswer
				}
				return nil
			}
		}
		watcher, seen := standby(client{memory: m}), copied{}
		want := map[string]string{}
		for range rapid.IntRange(1, 5).Draw(r, "processes") {
			calls.Store(0)
			dead.Store(false)
			dies.Store(1 << 20)
			broken, got := takeOver(t, r, client{memory: m, before: fault(true), after: fault(false)})
			if diff := cmp.Diff(want, map[string]string(got)); diff != "" {
				r.Fatalf("(-want +got):\n%s", diff)
			}
			dies.Store(calls.Load() + int32(rapid.IntRange(1, 60).Draw(r, "dies at call")))
			outcomes := []map[string]string{want}
			for range rapid.IntRange(1, 40).Draw(r, "writes") {
				c := map[string][]byte{}
				for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d/e"}), 1, 3, rapid.ID).Draw(r, "keys") {
					c[key] = []byte(noise(rapid.SampledFrom([]int{0, 3, 2000}).Draw(r, "size"), rapid.Uint64().Draw(r, "seed")))
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
				outcomes = []map[string]string{want, next}
				if err := broken.Write(t.Context(), c); err != nil {
					break
				}
				want, outcomes = next, []map[string]string{next}
				if rapid.IntRange(0, 5).Draw(r, "watches") == 0 {
					load(t, r, watcher, seen)
					if diff := cmp.Diff(want, map[string]string(seen)); diff != "" {
						r.Fatalf("the standby (-want +got):\n%s", diff)
					}
				}
			}
			_, after := takeOver(t, r, client{memory: m})
			if want = outcomes[0]; len(outcomes) > 1 && cmp.Equal(outcomes[1], map[string]string(after)) {
				want = outcomes[1]
			}
			if diff := cmp.Diff(want, map[string]string(after)); diff != "" {
				r.Fatalf("neither before nor after the change that failed (-before +got):\n%s", diff)
			}
		}
	})
}

// Two processes that both believe that they lead write in turns: who did not see the
// other's change is refused, so that no confirmed one is lost.
func TestOfTwoWritersNoConfirmedChangeIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory()
		type process struct {
			r *Replica
			c copied
		}
		begin := func() process {
			replica, c := takeOver(t, r, client{memory: m})
			return process{replica, c}
		}
		both := []process{begin(), begin()}
		confirmed := map[string]int{}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			i := rapid.IntRange(0, 1).Draw(r, "who")
			c := map[string][]byte{}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID).Draw(r, "keys") {
				n, _ := strconv.Atoi(strings.TrimSpace(both[i].c[key])) // nothing counts as 0
				c[key] = []byte(strconv.Itoa(n + 1))
			}
			if err := both[i].r.Write(t.Context(), c); err != nil {
				if !errors.Is(err, ErrStale) {
					r.Fatalf("write: %v", err)
				}
				both[i] = begin()
				continue
			}
			for key, v := range c {
				both[i].c[key] = string(v)
				confirmed[key]++
			}
		}
		got := begin().c
		for key, n := range confirmed {
			if got[key] != strconv.Itoa(n) {
				r.Errorf("%s is %s after %d confirmed changes", key, got[key], n)
			}
		}
	})
}

func TestTheLogIsCompactedIntoFewSegments(t *testing.T) {
	t.Parallel()
	m := newMemory()
	leader, _ := takeOver(t, t, client{memory: m})
	watcher, seen := standby(client{memory: m}), copied{}
	for i := range 2000 {
		write(t, leader, change(strconv.Itoa(i%300), noise(20, uint64(i))))
		if i%10 == 0 {
			write(t, leader, change(strconv.Itoa(i%300), ""))
		}
	}
	load(t, t, watcher, seen)
	_, got := takeOver(t, t, client{memory: m})
	if diff := cmp.Diff(got, seen); diff != "" || len(got) != 270 {
		t.Errorf("%d keys (-leader +standby):\n%s", len(got), diff)
	}
	logs, blobs := 0, map[string]bool{}
	for key := range m.entries {
		if id, ok := strings.CutPrefix(key, "blob/"); ok {
			blobs[strings.Split(id, "/")[0]] = true
		} else {
			logs++
		}
	}
	if n := len(leader.segments); logs != 16 || n > 10 || len(blobs) != n {
		t.Errorf("%d slots, %d segments, %d blobs", logs, n, len(blobs))
	}
	for key := range leader.state {
		if v := leader.state[key]; len(v.Packed) == 0 && v.Seq <= leader.segments[0].To {
			t.Errorf("the deletion of %s is kept", key)
		}
	}
}

func TestARecordIsReplacedInTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	m := newMemory()
	leader, _ := takeOver(t, t, client{memory: m})
	next, c := standby(client{memory: m}), copied{}
	set := func(r *Replica, text string) error { return r.SetRecord(t.Context(), "job", []byte(text)) }
	if _, err := leader.Record("job"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing record: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := set(leader, text); err != nil {
			t.Fatal(err)
		}
	}
	load(t, t, next, c)
	if text, err := next.Record("job"); string(text) != "two" || err != nil {
		t.Errorf("the standby reads %q, %v", text, err)
	}
	write(t, leader, change("a", "b"))
	if err := set(leader, "three"); err != nil {
		t.Fatal(err)
	}
	if err := next.Begin(t.Context(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	load(t, t, next, c)
	if err := set(next, "derived from two"); !errors.Is(err, ErrConflict) {
		t.Errorf("against an old one: %v", err)
	}
	if text, err := next.Record("job"); string(text) != "three" || err != nil {
		t.Errorf("the next leader reads %q, %v", text, err)
	}
	if err := set(next, "four"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(copied{"a": "b"}, c); diff != "" {
		t.Errorf("beside the records there is (-want +got):\n%s", diff)
	}
	if err := next.SetRecord(t.Context(), "job", nil); err != nil {
		t.Fatal(err)
	}
	if err := set(next, "anew"); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
	if got := next.Records(); !cmp.Equal(got, []string{"job"}) {
		t.Errorf("records: %v", got)
	}
}

func TestAReaderBesideAWriterSeesEachChangeOnce(t *testing.T) {
	t.Parallel()
	m := newMemory()
	leader, _ := takeOver(t, t, client{memory: m})
	n, rng := 0, rand.New(rand.NewPCG(3, 1))
	more := func(op, key string) error { // between the list of the log and the reading of its slots
		if op != "list" || key != "log/" {
			return nil
		}
		for range rng.IntN(12) {
			if err := leader.Write(t.Context(), change(strconv.Itoa(n), strconv.Itoa(n))); err != nil {
				return err
			}
			n++
		}
		return nil
	}
	reader, got := standby(client{memory: m, after: more}), copied{}
	for range 50 {
		load(t, t, reader, got)
		for i := range len(got) { // a prefix of what was written
			if got[strconv.Itoa(i)] != strconv.Itoa(i) {
				t.Fatalf("of %d keys %d is missing", len(got), i)
			}
		}
	}
	if len(got) == 0 {
		t.Error("it saw nothing")
	}
}

func TestADamagedStoreIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prefix string
		spoil  func(m *memory, e Entry)
		want   error
	}{
		"an entry is another value":   {"log/", func(m *memory, e Entry) { e.Value = []byte("x"); m.entries[e.Key] = e }, ErrDamaged},
		"an entry is missing":         {"log/01", func(m *memory, e Entry) { delete(m.entries, e.Key) }, ErrUnavailable},
		"a blob is another value":     {"blob/", func(m *memory, e Entry) { e.Value = []byte("x"); m.entries[e.Key] = e }, ErrDamaged},
		"a part of a blob is missing": {"blob/", func(m *memory, e Entry) { delete(m.entries, e.Key) }, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			leader, _ := takeOver(t, t, client{memory: m})
			for i := range 30 {
				write(t, leader, change(strconv.Itoa(i), noise(500, uint64(i))))
			}
			for key, e := range maps.Clone(m.entries) {
				if strings.HasPrefix(key, tc.prefix) {
					tc.spoil(m, e)
				}
			}
			if err := standby(client{memory: m}).Refresh(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("refresh: %v, want %v", err, tc.want)
			}
		})
	}
}

func FuzzAStoredEntryIsNeverMistaken(f *testing.F) {
	e, err := encode(entry{Seq: 1, Changes: map[string][]byte{"a": pack([]byte("b"))}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e)
	for _, parts := range []int{-1, 3, 1 << 40} {
		e, err := encode(entry{Seq: 1, Blob: &blob{ID: "x", Parts: parts}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e)
	}
	f.Add(bytes.Repeat([]byte("x"), 400))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := newMemory()
		if _, err := (client{memory: m}).Put(t.Context(), "log/001", raw, 0); err != nil {
			t.Skip("no value of the store")
		}
		_ = standby(client{memory: m}).Load(t.Context(), copied{}.apply) // must not panic or hang
	})
}
