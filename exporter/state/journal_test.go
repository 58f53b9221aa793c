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

func second(n int64) time.Time { return time.Unix(1_800_000_000+n, 0).UTC() }

func running(id string, attempt int, joules float64) state.Job {
	return state.Job{Job: api.Job{Manager: "slurm", ID: id, Attempt: attempt, Cgroup: "/" + id}, Inode: 7, Source: "rapl", Joules: energy.Joules{Active: joules}}
}

func ended(id string, joules float64, at int64) state.Job {
	j := running(id, 1, joules)
	j.Inode, j.Ended, j.Values = 0, second(at), map[string]float64{api.ColJoules: joules}
	return j
}

func write(t *testing.T, path string, states ...state.State) {
	t.Helper()
	j, err := state.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if err := j.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalKnowsWhatWasShownAfterTheLastState(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		saved, kept state.State
		boot        string
		want        []state.Job
	}{
		{
			"newer joules of a job",
			state.State{Boot: "b", At: second(0), Jobs: []state.Job{running("1", 1, 10), ended("2", 5, -300)}},
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{running("1", 1, 90), ended("2", 5, -300)}},
			"b",
			[]state.Job{running("1", 1, 90), ended("2", 5, -300)},
		},
		{
			"a job that began since, and one that ended",
			state.State{Boot: "b", At: second(0), Jobs: []state.Job{running("1", 1, 10)}},
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{ended("1", 20, 8), running("3", 1, 2)}},
			"b",
			[]state.Job{ended("1", 20, 8), running("3", 1, 2)},
		},
		{
			"an attempt whose number became known",
			state.State{Boot: "b", At: second(0), Jobs: []state.Job{running("1", 1, 10)}},
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{running("1", 4, 20)}},
			"b",
			[]state.Job{running("1", 4, 20)},
		},
		{
			"a state that was saved at the end is not replaced",
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{ended("1", 20, 8), running("2", 1, 50)}},
			state.State{Boot: "b", At: second(8), Jobs: []state.Job{running("1", 1, 19), running("2", 1, 40)}},
			"b",
			[]state.Job{ended("1", 20, 8), running("2", 1, 50)},
		},
		{
			"jobs that ran before the machine was booted are gone",
			state.State{Boot: "a", At: second(0), Jobs: []state.Job{running("1", 1, 10), ended("2", 5, -300)}},
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{running("3", 1, 90)}},
			"b",
			[]state.Job{ended("2", 5, -300), running("3", 1, 90)},
		},
		{
			"a journal of an earlier boot says nothing",
			state.State{Boot: "b", At: second(9), Jobs: []state.Job{running("3", 1, 10)}},
			state.State{Boot: "a", At: second(0), Jobs: []state.Job{running("3", 1, 90)}},
			"b",
			[]state.Job{running("3", 1, 10)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.json")
			if err := state.Save(path, tc.saved); err != nil {
				t.Fatal(err)
			}
			write(t, path, state.State{Boot: "x"}, tc.kept)
			got, err := state.Load(path)
			if err != nil || got.Boot != tc.boot {
				t.Errorf("%v, of boot %q", err, got.Boot)
			}
			if diff := cmp.Diff(tc.want, got.Jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is cut or spoilt of what was written last, what was written before it is there.
func TestAJournalWhoseWriterWasKilledHasTheStateBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "state.json")
	at := func(n int64) state.State {
		return state.State{Boot: "b", At: second(n), Jobs: []state.Job{running("1", 1, float64(n))}}
	}
	write(t, path, at(1), at(2))
	write(t, path, at(3)) // by the next exporter
	journal := path + ".journal"
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 3, 40, 120} { // bytes of the newest that are still there
		spoilt := append([]byte(nil), whole...)
		const newest = 4 << 20 // the third is in the second slot
		for i := newest + cut; i < len(spoilt) && i < newest+1000; i++ {
			spoilt[i] ^= 0x55
		}
		if err := os.WriteFile(journal, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := state.Load(path)
		if err != nil || len(got.Jobs) != 1 || got.Jobs[0].Joules.Active != 2 {
			t.Errorf("%d bytes are whole: %+v, %v; want the state before", cut, got.Jobs, err)
		}
	}
	if err := os.WriteFile(journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := state.Load(path); err != nil || len(got.Jobs) != 0 {
		t.Errorf("an empty journal: %+v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, path, at(5))
	if got, err := state.Load(path); !errors.Is(err, state.ErrState) || len(got.Jobs) != 1 {
		t.Errorf("beside a state that is broken: %+v, %v; want what the journal has, and the error", got, err)
	}
}

func TestAJournalThatCannotBeIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state.json.journal"), 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := state.OpenJournal(filepath.Join(dir, "state.json")); !errors.Is(err, state.ErrState) {
		t.Errorf("%v, want %v", err, state.ErrState)
	}
}

// BenchmarkJournal is what each sample of ten jobs costs.
func BenchmarkJournal(b *testing.B) {
	j, err := state.OpenJournal(filepath.Join(b.TempDir(), "state.json"))
	if err != nil {
		b.Fatal(err)
	}
	s := state.State{Boot: "b", At: second(0)}
	for i := range 10 {
		s.Jobs = append(s.Jobs, running(string(rune('a'+i)), 1, 1e5))
	}
	for b.Loop() {
		if err := j.Write(s); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte("ppj1"))
	f.Add([]byte("ppj1\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path+".journal", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Load(path); err != nil {
			t.Error(err)
		}
	})
}
