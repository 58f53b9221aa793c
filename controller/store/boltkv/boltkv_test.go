package boltkv_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/boltkv"
	"pitchpipe/controller/store/storetest"
)

// file is a store of the suite.
type file string

func (f file) Client(t *testing.T) storetest.Client {
	t.Helper()
	s, err := boltkv.Open(t.Context(), string(f))
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Client{Store: s}
}

func TestTheSuiteHolds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Target{
		New:       func(t *testing.T) storetest.Backend { return file(filepath.Join(t.TempDir(), "shared.db")) },
		NoSilence: "the lock of a file belongs to a process until that ends; see the test that kills one",
	})
}

func TestAFileOfAnotherKindIsRefusedAndNotChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "knowledge.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("observations"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := boltkv.Open(t.Context(), path); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a knowledge file is opened: %v", err)
	}
	text := filepath.Join(t.TempDir(), "thesis.txt")
	if err := os.WriteFile(text, []byte("years of work, far more than fits into a page of bbolt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltkv.Open(t.Context(), text); !errors.Is(err, store.ErrInvalid) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a text is opened: %v", err)
	}
	if got, err := os.ReadFile(text); err != nil || string(got[:5]) != "years" {
		t.Errorf("the text is now %q (%v)", got, err)
	}
}

func TestWhoRemovesTheLockEndsTheLeadership(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	s, err := boltkv.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	first, err := s.Lead(t.Context(), "a/b", "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".a+b.lock"); err != nil {
		t.Fatal(err)
	}
	second, err := s.Lead(t.Context(), "a/b", "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, store.ErrLost) {
		t.Errorf("the first still leads: %v", err)
	}
	select {
	case <-first.Lost():
	default:
		t.Error("the first is not told")
	}
	if err := second.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
