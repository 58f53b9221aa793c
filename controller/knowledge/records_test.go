package knowledge

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRecordsComeBackAsTheyWerePut(t *testing.T) {
	t.Parallel()
	type entry struct{ A, B int }
	s := open(t, file(t))
	var got entry
	if err := s.GetJSON("jobs", "x", &got); !errors.Is(err, ErrNotFound) {
		t.Errorf("from a bucket that is not there: %v", err)
	}
	if err := s.PutJSON("jobs", "x", entry{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := s.GetJSON("jobs", "x", &got); err != nil || got != (entry{1, 2}) {
		t.Errorf("GetJSON = %v, %v", got, err)
	}
	if err := s.GetJSON("jobs", "y", &got); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key that is not there: %v", err)
	}
	var wrong []string
	if err := s.GetJSON("jobs", "x", &wrong); !errors.Is(err, ErrDamaged) {
		t.Errorf("into another type: %v", err)
	}
	for range 2 { // the second time there is nothing left to delete
		if err := s.Delete("jobs", "x"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if err := s.Delete("never", "x"); err != nil {
		t.Errorf("Delete from a bucket that is not there: %v", err)
	}
	if err := s.GetJSON("jobs", "x", &got); !errors.Is(err, ErrNotFound) {
		t.Errorf("after Delete: %v", err)
	}
}

func TestRecordsThatCannotBeStoredAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	for name, err := range map[string]error{
		"no bucket":    s.PutJSON("", "k", 1),
		"no key":       s.PutJSON("b", "", 1),
		"not for JSON": s.PutJSON("b", "k", func() {}),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestAChangeIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	if _, err := s.All(); err != nil { // the cache is warm
		t.Fatal(err)
	}
	stop := errors.New("stop")
	err := s.Update(func(tx *Tx) error {
		if added, err := tx.Put(observation("a", 0)); err != nil || !added {
			return errors.Join(errors.New("not added"), err)
		}
		if err := tx.PutJSON("jobs", "a", 1); err != nil {
			return err
		}
		var seen int
		if err := tx.GetJSON("jobs", "a", &seen); err != nil || seen != 1 {
			t.Errorf("within the change: %d, %v", seen, err)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("Update: %v, want the error of the function", err)
	}
	var n int
	if err := s.GetJSON("jobs", "a", &n); !errors.Is(err, ErrNotFound) {
		t.Errorf("the record of an abandoned change: %v", err)
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("observations of an abandoned change: %v, %v", all, err)
	}
}

func TestBucketsAreApartFromEachOtherAndFromKnowledge(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	for _, bucket := range []string{bucketObservations, bucketMeta, "jobs"} {
		if err := s.PutJSON(bucket, keySchema, bucket); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	if err := s.GetJSON("jobs", keySchema, &got); err != nil || got != "jobs" {
		t.Errorf("GetJSON = %q, %v", got, err)
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("records turned up as observations: %v, %v", all, err)
	}
	stop := errors.New("stop")
	if err := s.ForEachJSON("jobs", func(string, func(any) error) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("ForEachJSON: %v, want the error of the function", err)
	}
}

func TestRecordsBehaveAsAMap(t *testing.T) {
	t.Parallel()
	path := file(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, err := Open(path, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		model := map[string]int{}
		err = s.ForEachJSON("b", func(key string, decode func(any) error) error {
			var v int
			defer func() { model[key] = v }()
			return decode(&v)
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 4).Draw(rt, "steps") {
			key := rapid.StringMatching(`[a-d]`).Draw(rt, "key")
			if rapid.Bool().Draw(rt, "delete") {
				delete(model, key)
				err = s.Delete("b", key)
			} else {
				v := rapid.Int().Draw(rt, "value")
				model[key] = v
				err = s.PutJSON("b", key, v)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		got := map[string]int{}
		last := ""
		err = s.ForEachJSON("b", func(key string, decode func(any) error) error {
			if key <= last {
				rt.Fatalf("%q after %q", key, last)
			}
			last = key
			var v int
			err := decode(&v)
			got[key] = v
			return err
		})
		if err != nil || !maps.Equal(model, got) {
			rt.Fatalf("%v (-want +got):\n%s", err, cmp.Diff(model, got))
		}
	})
}

func TestTheJSONOfAKeyIsReadAsItWasStored(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	var got string
	read := func(raw []byte) error { got = string(raw); return nil }
	if err := s.ReadJSON("jobs", "x", read); !errors.Is(err, ErrNotFound) || got != "" {
		t.Errorf("of a key that is not there: %q, %v", got, err)
	}
	if err := s.PutJSON("jobs", "x", map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadJSON("jobs", "x", read); err != nil || got != `{"a":1}` {
		t.Errorf("read %q, %v", got, err)
	}
	unread := errors.New("unread")
	if err := s.ReadJSON("jobs", "x", func([]byte) error { return unread }); !errors.Is(err, ErrDamaged) || !errors.Is(err, unread) {
		t.Errorf("what cannot be understood: %v", err)
	}
}
