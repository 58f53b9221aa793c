package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// lessons draws what ended jobs teach: of a dozen kinds per stratum with 60 features of
// hardware counters each, half of the jobs of the two commonest.
type lessons struct {
	rng     *rand.Rand
	strata  int
	centres map[string][]float64
}

func (l *lessons) draw(i int) knowledge.Observation {
	const kinds, features = 12, 60
	stratum, kind := l.rng.IntN(l.strata), min(l.rng.IntN(kinds), l.rng.IntN(kinds))
	name := fmt.Sprintf("kind-%d-%d", stratum, kind)
	if l.centres[name] == nil {
		for range features {
			l.centres[name] = append(l.centres[name], 0.5*l.rng.NormFloat64())
		}
	}
	f := make(map[string]float64, features)
	for j, v := range l.centres[name] {
		f[fmt.Sprintf("event-%02d", j)] = v + 0.08*l.rng.NormFloat64()
	}
	own := tuning.Settings{tuning.Cores: tuning.Number(float64(1 + stratum%8))}
	other := tuning.Settings{tuning.Cores: tuning.Number(float64(2 + stratum%8))}
	return knowledge.Observation{
		ID: fmt.Sprintf("job-%06d", i), Job: fmt.Sprintf("job-%06d", i), Kind: tuning.JobKind{Owner: "alice", Name: name, Fingerprint: "f"},
		Submitted: time.Unix(int64(i), 0), At: time.Unix(int64(i)+60, 0),
		Profiles: []tuning.Profile{{Schema: "hw/1/60", Machine: fmt.Sprintf("m%d", stratum/8), Settings: own, Epochs: 2, Samples: 60, Seconds: 60, Features: f}},
		Trials: []tuning.Trial{
			{Settings: own, Reference: true, Epochs: 5, Seconds: 10, SDLog: 0.02},
			{Settings: other, Epochs: 5, Seconds: 8, SDLog: 0.02},
		},
	}
}

// BenchmarkLearn is what a job's end costs once as many were learned, and what the next
// question about a class costs.
func BenchmarkLearn(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, strata := range []int{1, 24} {
			b.Run(fmt.Sprintf("%d profiles in %d strata", n, strata), func(b *testing.B) {
				store := openStore(b, b.TempDir())
				defer store.Close() //nolint:errcheck // the test is over
				draw := &lessons{rand.New(rand.NewPCG(3, 3)), strata, map[string][]float64{}}
				err := store.Update(func(tx *knowledge.Tx) error {
					for i := range n {
						if _, err := tx.Put(draw.draw(i)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				r := learner(b, store)
				if err := r.refit(); err != nil {
					b.Fatal(err)
				}
				i, asked, longest := n, time.Duration(0), time.Duration(0)
				for b.Loop() {
					begun := time.Now()
					l := draw.draw(i)
					i++
					if err := r.learn(b.Context(), l, ""); err != nil {
						b.Fatal(err)
					}
					longest = max(longest, time.Since(begun))
					b.StopTimer()
					begun = time.Now()
					class := r.classify(l.Profiles[0])
					if _, err := r.recall(b.Context(), reconcile.Question{Kind: l.Kind, Class: &class, Site: tuning.Site{ShareClasses: true}}); err != nil {
						b.Fatal(err)
					}
					asked += time.Since(begun)
					b.StartTimer()
				}
				b.ReportMetric(float64(asked.Milliseconds())/float64(i-n), "ms/question")
				b.ReportMetric(float64(longest.Milliseconds()), "ms/longest")
			})
		}
	}
}

// learner is a controller that has only its knowledge; each is one start of it.
func learner(t testing.TB, store *knowledge.Store) *services {
	t.Helper()
	r := &services{driver: listing{}, nodes: nodes.One(unit{}, nil), store: store, log: slog.New(slog.DiscardHandler)}
	if err := r.loadModel(); err != nil {
		t.Fatal(err)
	}
	return r
}

// model is what is stored of the classes.
func model(t *testing.T, store *knowledge.Store) string {
	t.Helper()
	raw, err := store.LoadModel()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheClassesAreTheSameWhateverRestartsAndRepeats(t *testing.T) {
	t.Parallel()
	one, other := openStore(t, t.TempDir()), openStore(t, t.TempDir())
	defer one.Close()   //nolint:errcheck // the test is over
	defer other.Close() //nolint:errcheck // the test is over
	steady := learner(t, one)
	draw := &lessons{rand.New(rand.NewPCG(5, 5)), 3, map[string][]float64{}}
	for i := range 60 {
		l := draw.draw(i)
		if err := steady.learn(t.Context(), l, ""); err != nil {
			t.Fatal(err)
		}
		for range 1 + i%2 { // a controller that died before it knew learns again
			if err := learner(t, other).learn(t.Context(), l, ""); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := model(t, one), model(t, other); a != b {
			t.Fatalf("after job %d:\n%s\nwith restarts:\n%s", i, a, b)
		}
	}
}

// refusing is a shared store that takes no change once it is full.
type refusing struct{ room int }

func (refusing) Load(_ context.Context, apply func(knowledge.Snapshot) error) error {
	return apply(knowledge.Snapshot{Full: true})
}

func (r *refusing) Write(context.Context, map[string][]byte) error {
	if r.room--; r.room < 0 {
		return errors.New("full")
	}
	return nil
}

func TestAJobIsLearnedTogetherWithItsClassOrNotAtAll(t *testing.T) {
	t.Parallel()
	store, err := knowledge.Open(filepath.Join(t.TempDir(), "knowledge.db"), knowledge.Options{Mirror: &refusing{room: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()                              //nolint:errcheck // the test is over
	if err := store.Adopt(t.Context()); err != nil { // takes one change
		t.Fatal(err)
	}
	r := learner(t, store)
	draw := &lessons{rand.New(rand.NewPCG(6, 6)), 1, map[string][]float64{}}
	first, second := draw.draw(0), draw.draw(1)
	if err := r.learn(t.Context(), first, ""); err != nil {
		t.Fatal(err)
	}
	was := model(t, store)
	if err := r.learn(t.Context(), second, ""); err == nil {
		t.Fatal("the second job is learned, though nothing can be stored")
	}
	if all, err := store.All(); err != nil || len(all) != 1 {
		t.Errorf("%d jobs are stored (%v), want one", len(all), err)
	}
	if now := model(t, store); now != was {
		t.Errorf("the classes were\n%s\nand are\n%s", was, now)
	}
	if n := r.model.Load().Strata[0].Runs; n != 1 {
		t.Errorf("classes of %d runs are used", n)
	}
}

func TestAnotherStratumIsNotClassifiedAgain(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r := learner(t, store)
	draw := &lessons{rand.New(rand.NewPCG(7, 7)), 2, map[string][]float64{}}
	of := map[string][]knowledge.Observation{}
	for i := range 8 {
		l := draw.draw(i)
		key := l.Profiles[0].Settings.Key()
		of[key] = append(of[key], l)
		if err := r.learn(t.Context(), l, ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(of) != 2 {
		t.Fatalf("%d strata, want 2", len(of))
	}
	// What is stored never changes: an observation that lost its profiles shows whether it
	// is asked about again.
	asked := map[string]knowledge.Observation{}
	for key, ls := range of {
		o := ls[0]
		if r.classOf(o) == "" {
			t.Fatalf("under %s the class is unknown", key)
		}
		o.Profiles = nil
		asked[key] = o
	}
	stranger := draw.draw(9)
	for name := range stranger.Profiles[0].Features {
		stranger.Profiles[0].Features[name] = 5
	}
	if err := r.learn(t.Context(), stranger, ""); err != nil {
		t.Fatal(err)
	}
	for key, o := range asked {
		if again, want := r.classOf(o) == "", key == stranger.Profiles[0].Settings.Key(); again != want {
			t.Errorf("under %s it is classified again: %t, want %t", key, again, want)
		}
	}
}
