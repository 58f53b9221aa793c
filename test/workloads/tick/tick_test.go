package tick_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/tick"
)

func TestAnEpochTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tk, err := tick.New(epochs.Params{Epochs: 4, EpochLength: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r, err := tk.Epoch(t.Context(), 1)
		if took := time.Since(began); err != nil || took != 3*time.Second || r.Acc != 0.25 {
			t.Errorf("took %v, %+v, %v", took, r, err)
		}
	})
}

func TestEpochsAreNotedInOrderOverSeveralRuns(t *testing.T) {
	t.Parallel()
	p := epochs.Params{Epochs: 4, Journal: filepath.Join(t.TempDir(), "journal")}
	for run := range 2 {
		tk, err := tick.New(p)
		if err != nil {
			t.Fatal(err)
		}
		for n := 2*run + 1; n <= 2*run+2; n++ {
			if _, err := tk.Epoch(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if err := tk.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(p.Journal); err != nil || string(got) != "1\n2\n3\n4\n" {
		t.Errorf("journal %q, %v", got, err)
	}
}

func TestTwoRunsDoNotShareAJournal(t *testing.T) {
	t.Parallel()
	p := epochs.Params{Epochs: 1, Journal: filepath.Join(t.TempDir(), "journal")}
	first, err := tick.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tick.New(p); !errors.Is(err, tick.ErrBusy) {
		t.Errorf("second run: error %v, want ErrBusy", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := tick.New(p)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestACancelledEpochIsNotNoted(t *testing.T) {
	t.Parallel()
	p := epochs.Params{Epochs: 1, EpochLength: time.Hour, Journal: filepath.Join(t.TempDir(), "journal")}
	tk, err := tick.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tk.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tk.Epoch(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got, err := os.ReadFile(p.Journal); err != nil || len(got) != 0 {
		t.Errorf("journal %q, %v", got, err)
	}
}
