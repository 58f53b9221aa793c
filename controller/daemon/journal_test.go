package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/boltkv"
)

// seatAt is one at a file, with the leadership or without.
func seatAt(t *testing.T, path string, lead bool) *Seat {
	t.Helper()
	s, err := boltkv.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	seat := NewSeat(s, "", slog.New(slog.DiscardHandler))
	if lead {
		if seat.lease, err = s.Lead(t.Context(), rootLead, seat.holder); err != nil {
			t.Fatal(err)
		}
	}
	return seat
}

func TestARecordOfTheJournalComesBackAndIsForgotten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	j := seatAt(t, path, true).Journal()
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
	if got, err := seatAt(t, path, false).Journal().Load(t.Context(), "job-1"); err != nil || string(got) != "two" {
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
	leads, other := seatAt(t, path, true), seatAt(t, path, false)
	if err := leads.Journal().Save(t.Context(), "job-1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := other.Journal().Save(t.Context(), "job-2", []byte("x")); !errors.Is(err, ErrStandby) {
		t.Errorf("save by one that stands by: %v", err)
	}
	if err := other.Journal().Delete(t.Context(), "job-1"); !errors.Is(err, ErrStandby) {
		t.Errorf("delete by one that stands by: %v", err)
	}
	if err := leads.lease.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := leads.Journal().Save(t.Context(), "job-1", []byte("x")); !errors.Is(err, ErrDeposed) {
		t.Errorf("save by one that led: %v", err)
	}
}

func TestARecordThatAnotherWroteIsNotReplacedUnread(t *testing.T) {
	t.Parallel()
	seat := seatAt(t, filepath.Join(t.TempDir(), "shared.db"), true)
	one, two := seat.Journal(), seat.Journal()
	if err := one.Save(t.Context(), "job-1", []byte("by one")); err != nil {
		t.Fatal(err)
	}
	if err := two.Save(t.Context(), "job-1", []byte("by two")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("save unread: %v", err)
	}
	if got, err := two.Load(t.Context(), "job-1"); err != nil || string(got) != "by one" {
		t.Fatalf("there is %q, %v", got, err)
	}
	if err := two.Save(t.Context(), "job-1", []byte("by two")); err != nil {
		t.Errorf("save after the load: %v", err)
	}
	if err := one.Save(t.Context(), "job-1", []byte("by one")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("save of what another changed: %v", err)
	}
}
