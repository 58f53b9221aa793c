package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/store"
)

// candidateAt returns a candidate at a file: a standby, or one that leads until the
// returned function is called.
func candidateAt(t *testing.T, path string, lead bool) (*Candidate, func()) {
	t.Helper()
	kv, err := store.OpenFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCandidate(kv, "", slog.New(slog.DiscardHandler))
	if !lead {
		return c, func() {}
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	begun, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- store.Lead(ctx, kv, "", c.log, func(ctx context.Context, lease *store.Lease) error {
			c.lease.Store(lease)
			begun <- c.replica.Begin(ctx, func(error) {})
			<-ctx.Done()
			return nil
		})
	}()
	if err := <-begun; err != nil {
		t.Error(err)
	}
	stop := sync.OnceFunc(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return c, stop
}

func TestARecordOfTheJournalComesBackAndIsForgotten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	leader, _ := candidateAt(t, path, true)
	j := leader.Journal()
	if _, err := j.Load(t.Context(), "job-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load of nothing: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		if err := j.Save(t.Context(), "job-1", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Save(t.Context(), "request-2", nil); err != nil {
		t.Fatal(err)
	}
	names, err := j.List(t.Context())
	if diff := cmp.Diff([]string{"job-1", "request-2"}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	other, _ := candidateAt(t, path, false)
	if got, err := other.Journal().Load(t.Context(), "job-1"); err != nil || string(got) != "two" {
		t.Errorf("another controller reads %q, %v", got, err)
	}
	for range 2 {
		if err := j.Delete(t.Context(), "job-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Save(t.Context(), "job-1", []byte("anew")); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestOnlyWhoLeadsWritesTheJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	leads, depose := candidateAt(t, path, true)
	other, _ := candidateAt(t, path, false)
	if err := leads.Journal().Save(t.Context(), "job-1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := other.Journal().Save(t.Context(), "job-2", []byte("x")); !errors.Is(err, ErrStandby) {
		t.Errorf("save by one that stands by: %v", err)
	}
	if err := other.Journal().Delete(t.Context(), "job-1"); !errors.Is(err, ErrStandby) {
		t.Errorf("delete by one that stands by: %v", err)
	}
	depose()
	if err := leads.Journal().Save(t.Context(), "job-1", []byte("x")); !errors.Is(err, ErrDeposed) {
		t.Errorf("save by one that led: %v", err)
	}
}

func TestARecordThatAnotherWroteIsNotReplacedUnread(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	first, depose := candidateAt(t, path, true)
	if err := first.Journal().Save(t.Context(), "job-1", []byte("new")); err != nil {
		t.Fatal(err)
	}
	depose()
	next, _ := candidateAt(t, path, true)
	j := next.Journal()
	if err := j.Save(t.Context(), "job-1", []byte("by the next")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("save unread: %v", err)
	}
	if got, err := j.Load(t.Context(), "job-1"); err != nil || string(got) != "new" {
		t.Fatalf("there is %q, %v", got, err)
	}
	if err := j.Save(t.Context(), "job-1", []byte("by the next")); err != nil {
		t.Errorf("save after the load: %v", err)
	}
}
