package knowledge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
)

// shelf is a Mirror in memory, with a way to make it fail.
type shelf struct {
	values map[string]string
	order  []string // what was written, call by call
	fail   error
}

func (s *shelf) Load(_ context.Context, apply func(knowledge.Snapshot) error) error {
	if s.fail != nil {
		return s.fail
	}
	snap := knowledge.Snapshot{Full: true, Values: map[string][]byte{}}
	for k, v := range s.values {
		snap.Values[k] = []byte(v)
	}
	return apply(snap)
}

func (s *shelf) Write(_ context.Context, changes map[string][]byte) error {
	if s.fail != nil {
		return s.fail
	}
	s.order = append(s.order, fmt.Sprint(len(changes)))
	for k, v := range changes {
		if s.values[k] = string(v); v == nil {
			delete(s.values, k)
		}
	}
	return nil
}

// copyOf opens a working copy of the shelf.
func copyOf(t *testing.T, s *shelf, path string) *knowledge.Store {
	t.Helper()
	k, err := knowledge.Open(path, knowledge.Options{Mirror: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // a test may have closed it
	return k
}

func leading(t *testing.T, s *shelf, path string) *knowledge.Store {
	t.Helper()
	k := copyOf(t, s, path)
	if err := k.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

func saveModel(k *knowledge.Store, model string) error {
	return k.Update(func(tx *knowledge.Tx) error { return tx.SaveModel(json.RawMessage(model)) })
}

func seen(id string) knowledge.Observation {
	return knowledge.Observation{ID: id, Job: id, Kind: tuning.JobKind{Owner: "alice", Name: "x", Fingerprint: "f"}}
}

func TestWhatOneControllerLearnedTheNextKnows(t *testing.T) {
	t.Parallel()
	s := &shelf{values: map[string]string{}}
	first := leading(t, s, filepath.Join(t.TempDir(), "copy.db"))
	if _, err := first.Put(seen("a")); err != nil {
		t.Fatal(err)
	}
	if err := saveModel(first, `{"k":2}`); err != nil {
		t.Fatal(err)
	}
	err := first.Update(func(tx *knowledge.Tx) error {
		for _, key := range []string{"local/1", "cluster/", "gone"} {
			if err := tx.PutJSON("odd/bucket", key, key); err != nil {
				return err
			}
		}
		_, err := tx.Put(seen("b"))
		return errors.Join(err, tx.Delete("odd/bucket", "gone"), tx.Delete("odd/bucket", "never there"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]*knowledge.Store{
		"who leads next":             leading(t, s, filepath.Join(t.TempDir(), "copy.db")),
		"the first, after a restart": reopened(t, first, s),
	} {
		all, err := k.All()
		if err != nil || len(all) != 2 {
			t.Errorf("%s: %d observations, %v", name, len(all), err)
		}
		if model, err := k.LoadModel(); err != nil || string(model) != `{"k":2}` {
			t.Errorf("%s: the model is %s, %v", name, model, err)
		}
		got := map[string]string{}
		if err := k.ForEachJSON("odd/bucket", func(key string, decode func(any) error) error {
			var v string
			err := decode(&v)
			got[key] = v
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"local/1": "local/1", "cluster/": "cluster/"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := k.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reopened is the same file after its process ended.
func reopened(t *testing.T, k *knowledge.Store, s *shelf) *knowledge.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "again.db")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	return leading(t, s, path)
}

func TestWhatTheMirrorRefusesIsNotInTheFile(t *testing.T) {
	t.Parallel()
	s := &shelf{values: map[string]string{}}
	k := leading(t, s, filepath.Join(t.TempDir(), "copy.db"))
	if _, err := k.Put(seen("a")); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(s.values)
	s.fail = errors.New("changed meanwhile")
	if _, err := k.Put(seen("b")); !errors.Is(err, s.fail) {
		t.Errorf("put: %v", err)
	}
	if err := k.PutJSON("x", "y", 1); !errors.Is(err, s.fail) {
		t.Errorf("put a record: %v", err)
	}
	if err := saveModel(k, `{}`); !errors.Is(err, s.fail) {
		t.Errorf("save a model: %v", err)
	}
	if all, err := k.All(); err != nil || len(all) != 1 {
		t.Errorf("%d observations, %v", len(all), err)
	}
	if err := k.GetJSON("x", "y", new(int)); !errors.Is(err, knowledge.ErrNotFound) {
		t.Errorf("the record: %v", err)
	}
	if _, err := k.LoadModel(); !errors.Is(err, knowledge.ErrNotFound) {
		t.Errorf("the model: %v", err)
	}
	if diff := cmp.Diff(before, s.values); diff != "" {
		t.Errorf("the mirror (-before +after):\n%s", diff)
	}
	// The other way round: what was not wanted after all is not in the mirror.
	s.fail = nil
	sorry := errors.New("no")
	if err := k.Update(func(tx *knowledge.Tx) error { return errors.Join(tx.PutJSON("x", "y", 1), sorry) }); !errors.Is(err, sorry) {
		t.Errorf("update: %v", err)
	}
	if diff := cmp.Diff(before, s.values); diff != "" {
		t.Errorf("the mirror after an update that ended itself (-before +after):\n%s", diff)
	}
}

func TestWhoStandsByReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := &shelf{values: map[string]string{}}
	leader := leading(t, s, filepath.Join(t.TempDir(), "copy.db"))
	other := copyOf(t, s, filepath.Join(t.TempDir(), "copy.db"))
	if _, err := leader.Put(seen("a")); err != nil {
		t.Fatal(err)
	}
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := other.All(); err != nil || len(all) != 1 {
		t.Errorf("%d observations, %v", len(all), err)
	}
	if _, err := other.Put(seen("b")); !errors.Is(err, knowledge.ErrStale) {
		t.Errorf("put: %v", err)
	}
	if err := leader.Delete("nothing", "there"); err != nil {
		t.Errorf("a change of nothing: %v", err)
	}
	if len(s.order) != 2 { // the schema and the observation
		t.Errorf("the mirror was written %d times", len(s.order))
	}
}

func TestAMirrorOfAnotherSchemaIsRefusedAndTheFileStays(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"newer":       {"schema": "99", "observations/x": "{}"},
		"of no kind":  {"schema": "x"},
		"without one": {"observations/x": "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := &shelf{values: map[string]string{}}
			path := filepath.Join(t.TempDir(), "copy.db")
			k := leading(t, good, path)
			if _, err := k.Put(seen("a")); err != nil {
				t.Fatal(err)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			k = copyOf(t, &shelf{values: values}, path)
			if err := k.Adopt(t.Context()); !errors.Is(err, knowledge.ErrSchema) {
				t.Errorf("adopt: %v", err)
			}
			if all, err := k.All(); err != nil || len(all) != 1 {
				t.Errorf("%d observations, %v", len(all), err)
			}
			if _, err := k.Put(seen("b")); !errors.Is(err, knowledge.ErrStale) {
				t.Errorf("put: %v", err)
			}
		})
	}
}

func TestAFileAloneNeedsNoMirror(t *testing.T) {
	t.Parallel()
	k, err := knowledge.Open(filepath.Join(t.TempDir(), "knowledge.db"), knowledge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // the test is over
	if err := errors.Join(k.Refresh(t.Context()), k.Adopt(t.Context())); err != nil {
		t.Error(err)
	}
	if added, err := k.Put(seen("a")); err != nil || !added {
		t.Errorf("put: %t, %v", added, err)
	}
}
