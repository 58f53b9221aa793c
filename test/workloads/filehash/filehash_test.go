package filehash

import (
	"os"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func params(dir string) epochs.Params {
	return epochs.Params{Input: 1, Seed: 1, Scale: 0.01, Team: team.New(2), Dir: dir}
}

func TestWhatWasWrittenIsReadAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := New(params(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	res, err := r.Epoch(t.Context(), 1)
	if err != nil || res.Acc != 1 || res.Loss != 0 || r.digest == 0 {
		t.Errorf("got %+v, %v, digest %x", res, err, r.digest)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestAChangedBlockIsFound(t *testing.T) {
	t.Parallel()
	r, err := New(params(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := r.file.WriteAt([]byte("changed"), 3*block+5); err != nil {
		t.Fatal(err)
	}
	if wrong, err := r.pass(); err != nil || wrong != 1 {
		t.Errorf("%d wrong blocks, %v; want 1", wrong, err)
	}
}

func TestADirectoryThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := New(params("/nonexistent")); err == nil {
		t.Error("no error")
	}
}
