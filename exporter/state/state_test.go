package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/state"
)

func TestWhatIsSavedIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lib", "state.json")
	if got, err := state.Load(path); err != nil || len(got.Jobs) != 0 {
		t.Errorf("no file: %+v, %v; want an empty state", got, err)
	}
	want := state.State{Version: 1, Boot: "b", Jobs: []state.Job{{
		Job: api.Job{Manager: "slurm", ID: "42", Attempt: 2, UID: 1000, Cgroup: "/c", Started: time.Unix(5, 0).UTC()}, Schema: api.SchemaSoftware,
		Source: "rapl", Inode: 77, Joules: energy.Joules{Active: 1.5, Idle: 2}, Values: map[string]float64{api.ColJoules: 3.5}, Ended: time.Unix(9, 0).UTC(),
	}}}
	for range 2 { // the second one replaces the first
		if err := state.Save(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := state.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v; want 1", len(entries), err)
	}
}

func TestAFileThatIsNoStateIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	for _, text := range []string{"", "{", `{"version":1,"jobs":[{"job"`, `{"version":7}`, `{"version":1,"jobs":[{"joules":{"Active":-5}}]}`, `{"version":1,"jobs":[{"joules":{"Idle":-0.1}}]}`, "[]", "\x00\x00"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := state.Load(path); !errors.Is(err, state.ErrState) {
			t.Errorf("%q: got %+v, %v; want %v", text, got, err, state.ErrState)
		}
	}
	if _, err := state.Load(t.TempDir()); !errors.Is(err, state.ErrState) {
		t.Errorf("a directory: got %v", err)
	}
	if err := state.Save(filepath.Join(path, "below", "a-file"), state.State{}); !errors.Is(err, state.ErrState) {
		t.Errorf("nowhere to write: got %v", err)
	}
}

func TestAFileThatIsNoStateIsKeptAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	whole := state.State{Version: 1, Boot: "b", Jobs: []state.Job{{Job: api.Job{Manager: "slurm", ID: "42", Attempt: 1}, Joules: energy.Joules{Active: 7}}}}
	if err := state.Save(path, whole); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{len(data) / 2, 1, 0} {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := state.Load(path); err == nil || len(got.Jobs) > 0 {
			t.Errorf("%d bytes of %d: %+v, %v", cut, len(data), got, err)
		}
		kept, err := state.SetAside(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Save(path, state.State{Boot: "c"}); err != nil {
			t.Fatal(err)
		}
		if was, err := os.ReadFile(kept); err != nil || string(was) != string(data[:cut]) {
			t.Errorf("%q is kept, %v; want %q", was, err, data[:cut])
		}
		if got, err := state.Load(path); err != nil || got.Boot != "c" {
			t.Errorf("the next state: %+v, %v", got, err)
		}
	}
	if _, err := state.SetAside(path + "-none"); !errors.Is(err, state.ErrState) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"version":1,"jobs":[{"job":{"id":"7"},"joules":{"Active":1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Load(path); err != nil && !errors.Is(err, state.ErrState) {
			t.Errorf("%q: %v", data, err)
		}
	})
}
