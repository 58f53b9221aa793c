package knowledge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"pitchpipe/controller/tuning"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Check(); err != nil && !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
			t.Errorf("check: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "knowledge.db") }

func TestAnObservationSurvivesReopening(t *testing.T) {
	t.Parallel()
	path := file(t)
	want := observation("a", 3)
	want.Profiles = []tuning.Profile{{Schema: "sw/1", Features: map[string]float64{"ipc": 1.5}, Settings: onCores(1), PeakRSS: 7}}
	want.Outcome = &tuning.Outcome{Verdict: tuning.Improved, Reason: tuning.ReasonImproved, Low: -.5, High: -.1, Tuned: onCores(2)}
	want.RestartCosts = []time.Duration{time.Second}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if added, err := s.Put(want); err != nil || !added {
		t.Fatalf("Put = %t, %v", added, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path).Observations(want.Kind)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Observation{want}, got); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
}

func TestTheSameIDIsKeptOnce(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	first, second := observation("a", 0), observation("a", 5)
	for i, o := range []Observation{first, second} {
		added, err := s.Put(o)
		if err != nil || added != (i == 0) {
			t.Errorf("Put %d = %t, %v", i, added, err)
		}
	}
	got, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Observation{first}, got); diff != "" {
		t.Errorf("the first stays (-want +got):\n%s", diff)
	}
}

func TestInvalidObservationsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	nan := observation("nan", 0)
	nan.Trials[0].Seconds = math.NaN()
	for name, o := range map[string]Observation{
		"without an id":   {Job: "a", Kind: kind("train")},
		"without a job":   {ID: "a", Kind: kind("train")},
		"without a kind":  {ID: "a", Job: "a"},
		"with not-number": nan,
	} {
		if added, err := s.Put(o); !errors.Is(err, ErrInvalid) || added {
			t.Errorf("%s: Put = %t, %v, want ErrInvalid", name, added, err)
		}
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("All = %v, %v, want none", all, err)
	}
}

func TestWhatIsAskedFollowsWhatIsPut(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	if obs, err := s.Observations(kind("train")); err != nil || len(obs) != 0 {
		t.Fatalf("Observations of nothing = %v, %v", obs, err)
	}
	a := observation("a", 0)
	a.Peak, a.RestartCosts = 123, []time.Duration{3 * time.Second}
	b, c, d := observation("b", 1), observation("c", 2), observation("d", -1) // the last is older than all
	b.Kind = kind("other")
	for i, o := range []Observation{a, b, c, d} {
		if _, err := s.Put(o); err != nil {
			t.Fatal(err)
		}
		all, err := s.All()
		if err != nil || len(all) != i+1 {
			t.Fatalf("after put %d: %d observations, %v", i+1, len(all), err)
		}
	}
	obs, err := s.Observations(kind("train"))
	if diff := cmp.Diff([]Observation{d, a, c}, obs); err != nil || diff != "" {
		t.Errorf("Observations, %v (-want +got):\n%s", err, diff)
	}
	if o, err := s.Observation(a.ID); err != nil || o.Peak != 123 {
		t.Errorf("Observation = %+v, %v", o, err)
	}
	if _, err := s.Observation("never"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Observation of nothing: %v", err)
	}
	if e := Effects(obs, Asker{Kind: kind("train")}, byTimeAlone(), at(10)); len(e) != 1 || e[0].Runs != 3 || e[0].Age != 8 {
		t.Errorf("Effects = %+v, want one of three runs, 8 days old", e)
	}
}

func TestOldObservationsAreDeletedAndThoseBeyondTheMostOfAKind(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, now := open(t, path), time.Unix(1e9, 0)
	for i, days := range []int{900, 40, 30, 20, 0} {
		o := observation(strconv.Itoa(i), 1)
		if o.At = now.AddDate(0, 0, -days); days == 40 {
			o.Kind.Name = "another"
		}
		if _, err := s.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 0} {
		if n, err := s.Prune(now.AddDate(0, 0, -899), 2); n != want || err != nil {
			t.Errorf("deleted %d, %v; want %d", n, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var left string
	all, err := open(t, path).All()
	for _, o := range all {
		left += o.ID
	}
	if left != "1/final3/final4/final" || err != nil {
		t.Errorf("left %s, %v", left, err)
	}
}

func TestNewerAndForeignFilesAreRefusedUnchanged(t *testing.T) {
	t.Parallel()
	write := func(fill func(tx *bolt.Tx) error) func(string) error {
		return func(path string) error {
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				return err
			}
			return errors.Join(db.Update(fill), db.Close())
		}
	}
	schema := func(v string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucketMeta))
			if err != nil {
				return err
			}
			return b.Put([]byte(keySchema), []byte(v))
		}
	}
	tests := map[string]struct {
		make func(path string) error
		says string
	}{
		"a newer schema":     {write(schema(strconv.Itoa(SchemaVersion + 1))), "this version knows 1"},
		"a schema of words":  {write(schema("two")), `"two"`},
		"another program's":  {write(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("foo")); return err }), `"foo"`},
		"no database at all": {func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("text "), 4000), 0o600) }, "invalid"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t)
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			s, err := Open(path, Options{})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, ErrSchema) || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("Open: %v, want ErrSchema with %q", err, tt.says)
			}
			after, _ := os.ReadFile(path)
			if !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAFileInUseIsLocked(t *testing.T) {
	t.Parallel()
	path := file(t)
	open(t, path)
	if _, err := Open(path, Options{Wait: 10 * time.Millisecond}); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open: %v, want ErrLocked", err)
	}
	if _, err := Open(filepath.Join(path, "no", "such"), Options{}); err == nil {
		t.Error("a path that cannot be opened was opened")
	}
}

func TestTheModelIsKept(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path)
	if _, err := s.LoadModel(); !errors.Is(err, ErrNotFound) {
		t.Errorf("LoadModel of nothing: %v", err)
	}
	save := func(model string) error {
		return s.Update(func(tx *Tx) error { return tx.SaveModel(json.RawMessage(model)) })
	}
	if err := save("{"); !errors.Is(err, ErrInvalid) {
		t.Errorf("SaveModel of a fragment: %v", err)
	}
	if err := save(`{"k":3}`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadModel(); err != nil || string(got) != `{"k":3}` {
		t.Errorf("LoadModel = %s, %v", got, err)
	}
}

func TestADamagedFileIsNamedWithWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(path string, size int64) error
		mirror Mirror
		says   string
	}{
		{"it is cut within its first pages", func(path string, _ int64) error { return os.Truncate(path, 5000) }, nil, "jobs are not"},
		{"it is cut after its first pages", func(path string, _ int64) error { return os.Truncate(path, 2*int64(os.Getpagesize())) }, nil, "jobs are not"},
		{"other bytes follow its first pages", overwrite, nil, "jobs are not"},
		{"a copy of a shared store", overwrite, struct{ Mirror }{}, "filled again from the shared store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := file(t)
			s, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err = errors.Join(err, s.Close()); err == nil {
				err = c.damage(path, info.Size())
			}
			if err != nil {
				t.Fatal(err)
			}
			if s, err = Open(path, Options{Mirror: c.mirror}); s != nil || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s and %q", err, path, c.says)
			}
		})
	}
}

func overwrite(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	first := 2 * int64(os.Getpagesize())
	_, err = f.WriteAt(bytes.Repeat([]byte("damage"), int(size-first)/6), first)
	return errors.Join(err, f.Close())
}

func TestCheckFindsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s, err := Open(file(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Check(); err != nil {
		t.Fatalf("a new file: %v", err)
	}
	err = s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucketObservations))
		return errors.Join(b.Put([]byte("x"), []byte("{")), b.Put([]byte("y"), []byte(`{"id":"z"}`)))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("Check: %v, want both damaged observations named", err)
	}
	if _, err := s.All(); !errors.Is(err, ErrDamaged) {
		t.Errorf("All: %v, want ErrDamaged", err)
	}
}
