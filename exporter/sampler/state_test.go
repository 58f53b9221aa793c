package sampler_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

func TestWhatIsSavedIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lib", "state.json")
	if got, err := sampler.LoadState(path); err != nil || len(got.Jobs) != 0 {
		t.Errorf("no file: %+v, %v; want an empty state", got, err)
	}
	want := sampler.State{Version: 1, Boot: "b", Jobs: []window.Attempt{{
		Job: api.Job{Manager: "slurm", ID: "42", Attempt: 2, UID: 1000, Cgroup: "/c", Started: time.Unix(5, 0).UTC()}, Schema: api.SchemaSoftware,
		Source: "rapl", Inode: 77, Joules: energy.Joules{Active: 1.5, Idle: 2}, Values: map[string]float64{api.ColJoules: 3.5}, Ended: time.Unix(9, 0).UTC(),
	}}}
	for range 2 { // the second one replaces the first
		if err := sampler.SaveState(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sampler.LoadState(path)
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
		if got, err := sampler.LoadState(path); !errors.Is(err, sampler.ErrState) {
			t.Errorf("%q: got %+v, %v; want %v", text, got, err, sampler.ErrState)
		}
	}
	if _, err := sampler.LoadState(t.TempDir()); !errors.Is(err, sampler.ErrState) {
		t.Errorf("a directory: got %v", err)
	}
	if err := sampler.SaveState(filepath.Join(path, "below", "a-file"), sampler.State{}); !errors.Is(err, sampler.ErrState) {
		t.Errorf("nowhere to write: got %v", err)
	}
}

func TestAFileThatIsNoStateIsKeptAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	whole := sampler.State{Version: 1, Boot: "b", Jobs: []window.Attempt{{Job: api.Job{Manager: "slurm", ID: "42", Attempt: 1}, Joules: energy.Joules{Active: 7}}}}
	if err := sampler.SaveState(path, whole); err != nil {
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
		if got, err := sampler.LoadState(path); err == nil || len(got.Jobs) > 0 {
			t.Errorf("%d bytes of %d: %+v, %v", cut, len(data), got, err)
		}
		kept, err := sampler.SetAside(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := sampler.SaveState(path, sampler.State{Boot: "c"}); err != nil {
			t.Fatal(err)
		}
		if was, err := os.ReadFile(kept); err != nil || string(was) != string(data[:cut]) {
			t.Errorf("%q is kept, %v; want %q", was, err, data[:cut])
		}
		if got, err := sampler.LoadState(path); err != nil || got.Boot != "c" {
			t.Errorf("the next state: %+v, %v", got, err)
		}
	}
	if _, err := sampler.SetAside(path + "-none"); !errors.Is(err, sampler.ErrState) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzLoadState(f *testing.F) {
	f.Add([]byte(`{"version":1,"jobs":[{"job":{"id":"7"},"joules":{"Active":1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sampler.LoadState(path); err != nil && !errors.Is(err, sampler.ErrState) {
			t.Errorf("%q: %v", data, err)
		}
	})
}

func second(n int64) time.Time { return time.Unix(1_800_000_000+n, 0).UTC() }

func runs(id string, attempt int, joules float64) window.Attempt {
	return window.Attempt{Job: api.Job{Manager: "slurm", ID: id, Attempt: attempt, Cgroup: "/" + id}, Inode: 7, Source: "rapl", Joules: energy.Joules{Active: joules}}
}

func over(id string, joules float64, at int64) window.Attempt {
	j := runs(id, 1, joules)
	j.Inode, j.Ended, j.Values = 0, second(at), map[string]float64{api.ColJoules: joules}
	return j
}

func write(t *testing.T, path string, states ...sampler.State) {
	t.Helper()
	for _, s := range states {
		if err := sampler.SaveJournal(path, s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAJournalKnowsWhatWasShownAfterTheLastState(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		saved, kept sampler.State
		boot        string
		want        []window.Attempt
	}{
		{
			"newer joules of a job",
			sampler.State{Boot: "b", At: second(0), Jobs: []window.Attempt{runs("1", 1, 10), over("2", 5, -300)}},
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{runs("1", 1, 90), over("2", 5, -300)}},
			"b",
			[]window.Attempt{runs("1", 1, 90), over("2", 5, -300)},
		},
		{
			"a job that began since, and one that ended",
			sampler.State{Boot: "b", At: second(0), Jobs: []window.Attempt{runs("1", 1, 10)}},
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{over("1", 20, 8), runs("3", 1, 2)}},
			"b",
			[]window.Attempt{over("1", 20, 8), runs("3", 1, 2)},
		},
		{
			"an attempt whose number became known",
			sampler.State{Boot: "b", At: second(0), Jobs: []window.Attempt{runs("1", 1, 10)}},
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{runs("1", 4, 20)}},
			"b",
			[]window.Attempt{runs("1", 4, 20)},
		},
		{
			"a state that was saved at the end is not replaced",
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{over("1", 20, 8), runs("2", 1, 50)}},
			sampler.State{Boot: "b", At: second(8), Jobs: []window.Attempt{runs("1", 1, 19), runs("2", 1, 40)}},
			"b",
			[]window.Attempt{over("1", 20, 8), runs("2", 1, 50)},
		},
		{
			"jobs that ran before the machine was booted are gone",
			sampler.State{Boot: "a", At: second(0), Jobs: []window.Attempt{runs("1", 1, 10), over("2", 5, -300)}},
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{runs("3", 1, 90)}},
			"b",
			[]window.Attempt{over("2", 5, -300), runs("3", 1, 90)},
		},
		{
			"a journal of an earlier boot says nothing",
			sampler.State{Boot: "b", At: second(9), Jobs: []window.Attempt{runs("3", 1, 10)}},
			sampler.State{Boot: "a", At: second(0), Jobs: []window.Attempt{runs("3", 1, 90)}},
			"b",
			[]window.Attempt{runs("3", 1, 10)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.json")
			if err := sampler.SaveState(path, tc.saved); err != nil {
				t.Fatal(err)
			}
			write(t, path, sampler.State{Boot: "x"}, tc.kept)
			got, err := sampler.LoadState(path)
			if err != nil || got.Boot != tc.boot {
				t.Errorf("%v, of boot %q", err, got.Boot)
			}
			if diff := cmp.Diff(tc.want, got.Jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
		})
	}
}

// A writer that is killed leaves what was there before, and a part of what was to come beside it.
func TestAJournalWhoseWriterWasKilledHasTheStateBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "state.json")
	at := func(n int64) sampler.State {
		return sampler.State{Boot: "b", At: second(n), Jobs: []window.Attempt{runs("1", 1, float64(n))}}
	}
	spoil := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, at(1), at(2))
	spoil(path+".journal.new", `{"version":1,"jobs":[{"job"`)
	if got, err := sampler.LoadState(path); err != nil || len(got.Jobs) != 1 || got.Jobs[0].Joules.Active != 2 {
		t.Errorf("%+v, %v; want the state before", got.Jobs, err)
	}
	write(t, path, at(3))
	spoil(path, "{")
	if got, err := sampler.LoadState(path); !errors.Is(err, sampler.ErrState) || len(got.Jobs) != 1 || got.Jobs[0].Joules.Active != 3 {
		t.Errorf("beside a state that is broken: %+v, %v; want what the journal has, and the error", got, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "b12a3ef8 {\"version\":1}\n"} { // of a machine that went down, and of an older exporter
		spoil(path+".journal", text)
		if got, err := sampler.LoadState(path); err != nil || len(got.Jobs) != 0 {
			t.Errorf("a journal %q: %+v, %v", text, got, err)
		}
	}
	if err := errors.Join(os.Remove(path+".journal"), os.Mkdir(path+".journal", 0o750)); err != nil {
		t.Fatal(err)
	}
	if err := sampler.SaveJournal(path, at(4)); !errors.Is(err, sampler.ErrState) {
		t.Errorf("a folder in its place: %v, want %v", err, sampler.ErrState)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path+".journal", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sampler.LoadState(path); err != nil {
			t.Error(err)
		}
	})
}
