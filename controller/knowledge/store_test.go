package knowledge

import (
	"bytes"
	"context"
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
	s, err := Open(path, Options{Now: func() time.Time { return epoch0().AddDate(0, 0, 10) }, Wait: 50 * time.Millisecond})
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
	m := tuning.Measure{Objective: tuning.Time}
	class := func(o Observation) string {
		if o.Kind == kind("train") {
			return "c1"
		}
		return ""
	}
	if e, err := s.Effects(kind("train"), nil, m); err != nil || len(e) != 0 {
		t.Fatalf("Effects of nothing = %v, %v", e, err)
	}
	if _, err := s.LastReference(kind("train")); !errors.Is(err, ErrNotFound) {
		t.Fatalf("LastReference of nothing: %v", err)
	}
	a := observation("a", 0)
	a.Peak, a.RestartCosts = 123, []time.Duration{3 * time.Second}
	a.Regressed = []tuning.Settings{onCores(4)}
	b := observation("b", 1)
	b.Kind = kind("other")
	for i, o := range []Observation{a, b, observation("c", 2)} {
		if _, err := s.Put(o); err != nil {
			t.Fatal(err)
		}
		all, err := s.All()
		if err != nil || len(all) != i+1 {
			t.Fatalf("after put %d: %d observations, %v", i+1, len(all), err)
		}
	}
	if e, err := s.Effects(kind("train"), nil, m); err != nil || len(e) != 1 || e[0].Runs != 2 || e[0].Age != 8 {
		t.Errorf("Effects = %+v, %v, want one of two runs, 8 days old", e, err)
	}
	if e, err := s.ClassEffects("c1", class, onCores(1), Target{"m/8", 8}, m); err != nil || len(e) != 1 || e[0].Runs != 2 {
		t.Errorf("ClassEffects = %+v, %v, want one of two runs", e, err)
	}
	if e, err := s.ClassEffects("", class, nil, Target{"m/8", 8}, m); err != nil || len(e) != 0 {
		t.Errorf("ClassEffects of no class = %+v, %v", e, err)
	}
	if p, n, err := s.PeakRSS(kind("train")); err != nil || p != 123 || n != 1 {
		t.Errorf("PeakRSS = %d in %d, %v", p, n, err)
	}
	if r, err := s.Regressions(kind("train")); err != nil || len(r) != 1 || !r[0].Equal(onCores(4)) {
		t.Errorf("Regressions = %v, %v", r, err)
	}
	if r, err := s.LastReference(kind("train")); err != nil || r.Seconds != 10 {
		t.Errorf("LastReference = %v, %v", r, err)
	}
	if c, n, err := s.RestartCost(kind("other")); err != nil || c != 3*time.Second || n != 1 {
		t.Errorf("RestartCost = %s of %d, %v", c, n, err)
	}
	sum, err := s.Inspect(m, Target{"m/8", 8}, 5, class)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Observations != 3 || len(sum.Kinds) != 2 || len(sum.Classes) != 1 || sum.Classes[0].Runs != 2 ||
		sum.Kinds[1].Class != "c1" || sum.Kinds[1].Runs != 2 || sum.Kinds[1].PeakRSS != 123 {
		t.Errorf("Inspect = %s", raw)
	}
	if sum, err := s.Inspect(m, Target{}, 0, nil); err != nil || len(sum.Classes) != 0 || len(sum.Kinds[0].Effects) != 0 {
		t.Errorf("Inspect without classifier and effects = %+v, %v", sum, err)
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

func TestABackupOpensAsAStoreOfItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	if _, err := s.Put(observation("a", 0)); err != nil {
		t.Fatal(err)
	}
	copied := file(t)
	f, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Backup(t.Context(), f), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(observation("b", 0)); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, copied).All()
	if err != nil || len(all) != 1 || all[0].Job != "a" {
		t.Errorf("backup holds %v, %v, want job a alone", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled backup: %v", err)
	}
}

func TestTheModelIsKept(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path)
	if _, err := s.LoadModel(); !errors.Is(err, ErrNotFound) {
		t.Errorf("LoadModel of nothing: %v", err)
	}
	if err := s.SaveModel([]byte("{")); !errors.Is(err, ErrInvalid) {
		t.Errorf("SaveModel of a fragment: %v", err)
	}
	if err := s.SaveModel([]byte(`{"k":3}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadModel(); err != nil || string(got) != `{"k":3}` {
		t.Errorf("LoadModel = %s, %v", got, err)
	}
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
