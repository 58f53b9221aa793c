package broker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
)

func open(t *testing.T) (ledger, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := openLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

func at(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }

func cores(n int) Size {
	return Size{Cores: n, Memory: slurmctl.Memory{Bytes: 100 << 20}, TimeLimit: time.Hour}
}

func TestARecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	id := Identity{Job: "7", UID: 1001, Restarts: 0, Submitted: at(0)}
	r, err := l.Read(id, cores(4), at(1))
	if err != nil {
		t.Fatal(err)
	}
	r.Setting(cores(2), at(1))
	r.Asking(0)
	if err := l.Write(r); err != nil {
		t.Fatal(err)
	}
	got, err := l.Read(id, cores(2), at(2))
	if err != nil || !cmp.Equal(r, got) {
		t.Errorf("%v: %s", err, cmp.Diff(r, got))
	}
	if got.Asked != cores(4) || !got.WasAsked(0) || got.Ours(0) || !got.Ours(1) || got.Moves != 1 {
		t.Errorf("the record is %+v", got)
	}
}

func TestWhichJobARecordIsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		then, now  Identity
		sameRecord bool
	}{
		{"the same", Identity{UID: 1, Submitted: at(0)}, Identity{UID: 1, Submitted: at(0)}, true},
		{"after a restart", Identity{UID: 1, Submitted: at(0)}, Identity{UID: 1, Restarts: 1, Submitted: at(9)}, true},
		{"of another user", Identity{UID: 1, Submitted: at(0)}, Identity{UID: 2, Submitted: at(0)}, false},
		{"submitted at another time, and never restarted", Identity{UID: 1, Submitted: at(0)}, Identity{UID: 1, Submitted: at(9)}, false},
		{"restarted less, and submitted later", Identity{UID: 1, Restarts: 3, Submitted: at(0)}, Identity{UID: 1, Restarts: 1, Submitted: at(9)}, false},
		{"a slurmctld that went back behind a restart", Identity{UID: 1, Restarts: 2, Submitted: at(9)}, Identity{UID: 1, Restarts: 1, Submitted: at(5)}, true},
	} {
		l, _ := open(t)
		c.then.Job, c.now.Job = "7", "7"
		r, err := l.Read(c.then, cores(4), at(1))
		if err != nil {
			t.Fatal(err)
		}
		r.Setting(cores(2), at(1))
		if err := l.Write(r); err != nil {
			t.Fatal(err)
		}
		got, err := l.Read(c.now, cores(2), at(2))
		if err != nil || (got.Asked == cores(4)) != c.sameRecord {
			t.Errorf("%s: what was asked for is %+v (%v)", c.name, got.Asked, err)
		}
	}
}

func TestWhoseWordASizeIs(t *testing.T) {
	t.Parallel()
	id := Identity{Job: "7", UID: 1, Submitted: at(0)}
	for _, c := range []struct {
		name string
		sets []int // one a minute
		have int
		at   int // minute
		want int // cores that the owner asked for
	}{
		{"what was set last", []int{3, 2}, 2, 3, 4},
		{"what the owner asked for", []int{3, 2}, 4, 3, 4},
		{"what was set before, of a slurmctld that went back", []int{3, 2}, 3, 5, 4},
		{"what was set long before", []int{3, 2}, 3, 30, 3},
		{"what was set last, long ago", []int{3, 2}, 2, 50, 4},
		{"what was not set here", []int{3, 2}, 1, 3, 1},
		{"more than before", []int{3, 2}, 8, 3, 8},
	} {
		l, _ := open(t)
		r, err := l.Read(id, cores(4), at(0))
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range c.sets {
			r.Setting(cores(n), at(1+i))
		}
		if err := l.Write(r); err != nil {
			t.Fatal(err)
		}
		if got, err := l.Read(id, cores(c.have), at(c.at)); err != nil || got.Asked.Cores != c.want {
			t.Errorf("%s: %d cores (%v), want %d", c.name, got.Asked.Cores, err, c.want)
		}
	}
}

// TestTheCeilingIsNeverAboveTheOwnersWord plays owners, brokers and crashes: a broker
// that sets no more than the ceiling never lifts it.
func TestTheCeilingIsNeverAboveTheOwnersWord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l, err := openLedger(filepath.Join(dir, rapid.StringMatching("[a-z]{12}").Draw(t, "dir")))
		if err != nil {
			t.Fatal(err)
		}
		id := Identity{Job: "7", UID: 1, Submitted: at(0)}
		most := rapid.IntRange(1, 9).Draw(t, "asked") // the largest that the owner ever asked for
		have, now := most, at(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "owner") {
				have = rapid.IntRange(1, 9).Draw(t, "his")
				most = max(most, have)
			}
			r, err := l.Read(id, cores(have), now)
			if err != nil {
				t.Fatal(err)
			}
			if r.Asked.Cores > most {
				t.Fatalf("the ceiling is %d, and the owner never asked for more than %d", r.Asked.Cores, most)
			}
			want := rapid.IntRange(1, r.Asked.Cores).Draw(t, "ours")
			r.Setting(cores(want), now)
			if err := l.Write(r); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "survives") {
				have = want
			}
		}
	})
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	for _, text := range []string{"", "{", `{"version":9,"job":"7"}`, `{"version":1,"job":"8"}`} {
		if err := os.WriteFile(filepath.Join(dir, "jobs", "7.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Read(Identity{Job: "7"}, cores(1), at(0)); !errors.Is(err, driver.ErrTransient) {
			t.Errorf("%q: %v, want %v", text, err, driver.ErrTransient)
		}
	}
}

func TestForgottenJobs(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	for _, job := range []string{"7", "8"} {
		if err := l.Write(Record{Version: 1, Identity: Identity{Job: job}}); err != nil {
			t.Fatal(err)
		}
	}
	if jobs, err := l.List(t.Context()); err != nil || !slices.Equal(jobs, []string{"7", "8"}) {
		t.Errorf("the jobs are %v (%v)", jobs, err)
	}
	err := errors.Join(l.Delete(t.Context(), "7"), l.Delete(t.Context(), "7"))
	left, err2 := filepath.Glob(filepath.Join(dir, "jobs", "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "8.json" || errors.Join(err, err2) != nil {
		t.Errorf("%v are left (%v), want 8 alone", left, errors.Join(err, err2))
	}
}

func TestTheSizeThatWasSetLast(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	r := Record{Version: 1, Identity: Identity{Job: "7", UID: 5}}
	if err := l.Write(r); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.LastSet("7", 5); ok || err != nil {
		t.Errorf("one that was never set: %t, %v", ok, err)
	}
	if _, ok, err := l.LastSet("8", 5); ok || err != nil {
		t.Errorf("one without a record: %t, %v", ok, err)
	}
	r.Setting(cores(2), at(0))
	r.Setting(cores(3), at(1))
	if err := l.Write(r); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.LastSet("7", 5); got != cores(3) || !ok || err != nil {
		t.Errorf("%+v, %t, %v, want the later one", got, ok, err)
	}
	if _, ok, err := l.LastSet("7", 6); ok || err != nil {
		t.Errorf("another user's job of that number: %t, %v", ok, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs", "7.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.LastSet("7", 5); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("a record that cannot be read: %v, want %v", err, driver.ErrTransient)
	}
}

func TestTheAuditFileMayBeMovedAway(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	path := filepath.Join(dir, "audit.jsonl")
	before := cores(1)
	first := l.Audit(Entry{Job: "7", Verb: "update", Before: &before, Allowed: true})
	second := l.Audit(Entry{Job: "7", Verb: "requeue", Refused: "it\nhas ended"})
	data, err := os.ReadFile(path)
	if err := errors.Join(first, second, err); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, data)
	}
	if err := errors.Join(os.Rename(path, path+".1"), l.Audit(Entry{Job: "8"})); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil || !strings.Contains(string(data), `"job":"8"`) {
		t.Errorf("the new file is %q (%v)", data, err)
	}
}

func TestRefusalsOfOneUserDoNotFillTheAudit(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	audit := func(after time.Duration, e Entry) {
		e.Time = now.Add(after)
		if err := l.Audit(e); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		audit(0, Entry{Peer: 7, Verb: "update", Job: "1", Refused: "denied"})
	}
	audit(0, Entry{Peer: 8, Verb: "update", Job: "2", Refused: "of another"})
	audit(0, Entry{Peer: 7, Verb: "update", Job: "3", Allowed: true})
	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if n := strings.Count(string(data), "\n"); err != nil || n != 32 || !strings.Contains(string(data), "of another") || !strings.Contains(string(data), `"job":"3"`) {
		t.Errorf("%d lines (%v), want 30 refusals of one user, one of another and the effect", n, err)
	}
	audit(time.Minute, Entry{Peer: 8, Verb: "update", Job: "4", Allowed: true})
	audit(time.Minute, Entry{Peer: 7, Verb: "update", Job: "5", Refused: "again"})
	more, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	lines := strings.Split(strings.TrimSpace(string(more[len(data):])), "\n")
	if err != nil || len(lines) != 3 || !strings.Contains(lines[0], `"peer":7`) || !strings.Contains(lines[0], "970 more requests") || !strings.Contains(lines[2], "again") {
		t.Errorf("a minute later %q (%v), want the number of the others first", lines, err)
	}
}
