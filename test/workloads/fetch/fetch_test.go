package fetch

import (
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("pitchpipe/test/workloads/team.(*Team).wait"),
		goleak.IgnoreAnyFunction("pitchpipe/test/workloads/team.(*Team).help"))
}

func fetcher(t *testing.T) *Fetcher {
	t.Helper()
	f, err := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.05, Team: team.New(2)})
	if err != nil {
		t.Skip("no loopback:", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestEveryBlockIsWhatTheStoreHolds(t *testing.T) {
	t.Parallel()
	f := fetcher(t)
	if r, err := f.Epoch(t.Context(), 1); err != nil || r.Acc != 1 || f.digest == 0 {
		t.Errorf("%+v, %v, digest %x", r, err, f.digest)
	}
}

func TestABlockThatIsNotIsFound(t *testing.T) {
	t.Parallel()
	f := fetcher(t)
	for i := range f.sums {
		f.sums[i]++
	}
	if r, err := f.Epoch(t.Context(), 1); err != nil || r.Acc != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAStoreThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	f := fetcher(t)
	if err := f.store.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Epoch(t.Context(), 1); err == nil {
		t.Error("no error")
	}
}
