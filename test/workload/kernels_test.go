package main

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// queued is the textbook search with one queue.
func queued(g graph, from int32) (reached, total int64) {
	depth := map[int32]int64{from: 0}
	queue := []int32{from}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		reached++
		total += depth[v]
		for _, u := range g.edge[g.start[v]:g.start[v+1]] {
			if _, ok := depth[u]; !ok {
				depth[u] = depth[v] + 1
				queue = append(queue, u)
			}
		}
	}
	return reached, total
}

func TestASearchFindsWhatTheTextbookOneFinds(t *testing.T) {
	t.Parallel()
	teams := []*team{newTeam(1), newTeam(3)}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "vertices")
		g := graph{start: []int32{0}}
		for range n {
			out := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 3).Draw(t, "edges")
			g.edge = append(g.edge, out...)
			g.start = append(g.start, int32(len(g.edge)))
		}
		from := rapid.Int32Range(0, int32(n-1)).Draw(t, "from")
		wantReached, wantTotal := queued(g, from)
		for _, tm := range teams {
			if reached, total := search(tm, g, from); reached != wantReached || total != wantTotal {
				t.Fatalf("%d threads: reached %d at distance %d in all, want %d and %d", tm.threads, reached, total, wantReached, wantTotal)
			}
		}
	})
}

func TestALargeGraphIsSearchedTheSameWay(t *testing.T) {
	t.Parallel()
	tm := newTeam(2)
	g := newGraph(params{input: 1, seed: 3, scale: 1, team: tm}, 40_000) // several pieces a frontier
	reached, total := search(tm, g, 7)
	if wantReached, wantTotal := queued(g, 7); reached != wantReached || total != wantTotal {
		t.Errorf("reached %d at %d, want %d at %d", reached, total, wantReached, wantTotal)
	}
	if reached < 36_000 {
		t.Errorf("reached %d of 40000 vertices, want a connected graph", reached)
	}
}

func TestKeysComeBackInOrder(t *testing.T) {
	t.Parallel()
	teams := []*team{newTeam(1), newTeam(3)}
	rapid.Check(t, func(t *rapid.T) {
		// Few different keys make many equal ones, which is where a merge goes wrong.
		top := rapid.SampledFrom([]uint64{1, 3, 100, 1 << 63}).Draw(t, "top")
		keys := rapid.SliceOfN(rapid.Uint64Max(top), 0, 300).Draw(t, "keys")
		want := slices.Sorted(slices.Values(keys))
		for _, tm := range teams {
			if got := parallelSort(tm, slices.Clone(keys)); !slices.Equal(got, want) {
				t.Fatalf("%d threads: %v became %v", tm.threads, keys, got)
			}
		}
	})
}

// started is a small work of the kind.
func started[W work](t *testing.T, start func(params) (work, error), scale float64, threads int) W {
	t.Helper()
	w, err := start(params{input: 1, seed: 1, scale: scale, epochs: 10, batch: 8, team: newTeam(threads), dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closed(w); err != nil {
			t.Error(err)
		}
	})
	return w.(W)
}

// closed closes a work that can be closed.
func closed(w work) error {
	if c, ok := w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// The sine is an eigenfunction of the discrete equation: with a source of
// sin(pi x) sin(pi y) the field is that divided by 4 - 4 cos(pi h).
func TestSweepsConvergeToTheKnownSolution(t *testing.T) {
	t.Parallel()
	s := started[*jacobi](t, newJacobi, 0.0001, 2)
	h := math.Pi / float64(s.n+1)
	wave := func(i, j int) float64 { return math.Sin(float64(i)*h) * math.Sin(float64(j)*h) }
	for i := 1; i <= s.n; i++ {
		for j := 1; j <= s.n; j++ {
			s.row(s.heat, i)[j] = wave(i, j)
		}
	}
	s.first = s.residual()
	for n := 1; n <= 100; n++ {
		if _, err := s.epoch(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	scale := 1 / (4 - 4*math.Cos(h))
	for i := range s.n + 2 {
		for j := range s.n + 2 {
			want := 0.0
			if i > 0 && i <= s.n && j > 0 && j <= s.n {
				want = scale * wave(i, j)
			}
			if got := s.row(s.field, i)[j]; math.Abs(got-want) > 1e-6*scale {
				t.Fatalf("%d cells a side: field at %d,%d is %g, want %g", s.n, i, j, got, want)
			}
		}
	}
}

func TestTheResidualFalls(t *testing.T) {
	t.Parallel()
	s := started[*jacobi](t, newJacobi, 0.0001, 2)
	last := result{loss: s.first}
	for n := 1; n <= 3; n++ {
		r, err := s.epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if r.loss >= last.loss || r.acc <= last.acc || r.loss <= 0 {
			t.Errorf("epoch %d: %+v after %+v", n, r, last)
		}
		last = r
	}
}

func TestTheInertiaNeverRises(t *testing.T) {
	t.Parallel()
	c := started[*kmeans](t, newKMeans, 0.01, 2)
	last := math.Inf(1)
	var first, acc float64
	for n := 1; n <= 8; n++ {
		r, err := c.epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if r.loss > last*(1+1e-6) {
			t.Errorf("epoch %d: inertia %g after %g", n, r.loss, last)
		}
		if n == 1 {
			first = r.loss
		}
		last, acc = r.loss, r.acc
	}
	if last > 0.97*first || acc < 0.7 {
		t.Errorf("inertia %g at first, %g at last, %g explained: want it to get better", first, last, acc)
	}
}

func TestOnePassIsWhatPlainArithmeticSays(t *testing.T) {
	t.Parallel()
	c := started[*kmeans](t, newKMeans, 0.001, 2)
	before := c.centres
	got, err := c.epoch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var sum [kmeansClusters][kmeansDims]float64
	var count [kmeansClusters]float64
	inertia := 0.0
	for _, p := range c.points {
		best, near := 0, math.Inf(1)
		for k, centre := range before {
			d := 0.0
			for i := range p {
				d += math.Pow(float64(p[i])-float64(centre[i]), 2)
			}
			if d < near {
				best, near = k, d
			}
		}
		inertia += near
		count[best]++
		for i := range p {
			sum[best][i] += float64(p[i])
		}
	}
	if want := inertia / float64(len(c.points)); math.Abs(got.loss-want) > 1e-4*want {
		t.Errorf("inertia %g, want %g", got.loss, want)
	}
	for k := range sum {
		for i := range kmeansDims {
			want := float64(before[k][i])
			if count[k] > 0 {
				want = sum[k][i] / count[k]
			}
			if d := math.Abs(float64(c.centres[k][i]) - want); d > 1e-3 {
				t.Errorf("centre %d, coordinate %d: off by %g", k, i, d)
			}
		}
	}
}

func TestEveryElementIsWhatTheArithmeticSays(t *testing.T) {
	t.Parallel()
	s := started[*stream](t, newStream, 0.002, 2)
	start := s.want
	for n := 1; n <= 3; n++ {
		r, err := s.epoch(t.Context(), n)
		if err != nil || r.loss != 0 || r.acc != 1 {
			t.Fatalf("epoch %d: %+v, %v", n, r, err)
		}
	}
	s.each(func(piece int, a, b, c []float64) {
		for i := range a {
			if w := s.want[piece]; a[i] != w.A || b[i] != w.B || c[i] != w.C {
				t.Errorf("piece %d, element %d: %g %g %g, want %+v", piece, i, a[i], b[i], c[i], w)
				return
			}
		}
		if drift := relative(a[0], start[piece].A); drift > 1e-9 {
			t.Errorf("piece %d drifted by %g", piece, drift)
		}
	})
}

func TestAWrongElementIsFound(t *testing.T) {
	t.Parallel()
	s := started[*stream](t, newStream, 0.002, 1)
	s.b[len(s.b)-1] *= 1 + 1e-12
	if r := s.check(); r.loss == 0 || r.acc == 1 {
		t.Errorf("got %+v for a wrong element", r)
	}
}

func TestATextBecomesSmallerAndComesBack(t *testing.T) {
	t.Parallel()
	k := started[*pack](t, newPack, 0.01, 1)
	for n := range 2 {
		r, err := k.epoch(t.Context(), n+1)
		if err != nil || r.acc != 1 || r.loss <= 0 || r.loss > 0.6 {
			t.Errorf("epoch %d: %+v, %v", n+1, r, err)
		}
	}
}

func TestABlockThatCameBackOtherwiseIsFound(t *testing.T) {
	t.Parallel()
	k := started[*pack](t, newPack, 0.01, 1)
	k.sums[1]++
	r, err := k.epoch(t.Context(), 1)
	if want := float64(len(k.blocks)-1) / float64(len(k.blocks)); err != nil || math.Abs(r.acc-want) > 1e-12 {
		t.Errorf("%+v, %v; want the share %v", r, err, want)
	}
}

func TestWhatWasWrittenIsReadAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	r := started[*hash](t, newHash, 0.01, 2)
	res, err := r.epoch(t.Context(), 1)
	if err != nil || res.acc != 1 || res.loss != 0 || r.digest == 0 {
		t.Errorf("got %+v, %v, digest %x", res, err, r.digest)
	}
	if entries, err := os.ReadDir(r.params.dir); err != nil || len(entries) != 0 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestAChangedBlockIsFound(t *testing.T) {
	t.Parallel()
	r := started[*hash](t, newHash, 0.01, 2)
	if _, err := r.file.WriteAt([]byte("changed"), 3*hashBlock+5); err != nil {
		t.Fatal(err)
	}
	if wrong, err := r.pass(); err != nil || wrong != 1 {
		t.Errorf("%d wrong blocks, %v; want 1", wrong, err)
	}
}

func TestADirectoryThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := newHash(params{input: 1, scale: 0.01, team: newTeam(2), dir: "/nonexistent"}); err == nil {
		t.Error("no error")
	}
}

func TestTheGradientIsTheSlopeOfTheLoss(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	ls, total := layers(7, 6, 5, 4) // no multiples of the unrolled four
	w := initial(ls, total, rng)
	x := make([]float32, 7)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	s := newScratch(ls)
	grad := make([]float32, total)
	learn(ls, w, grad, x, 2, s)
	lossAt := func(i int, by float32) float64 {
		was := w[i]
		defer func() { w[i] = was }()
		w[i] += by
		return learn(ls, w, make([]float32, total), x, 2, s)
	}
	const step = 1e-2
	moved := 0
	for i := range w {
		slope := (lossAt(i, step) - lossAt(i, -step)) / (2 * step)
		if math.Abs(slope-float64(grad[i])) > 2e-3 {
			t.Errorf("weight %d: gradient %.5f, slope %.5f", i, grad[i], slope)
		}
		if grad[i] != 0 {
			moved++
		}
	}
	if moved < total/4 {
		t.Errorf("only %d of %d gradients are not zero: the test proves little", moved, total)
	}
}

func TestLargeBatchesReachTheAccuracyOfSmallOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("trains four networks: make check runs it")
	}
	t.Parallel()
	acc := func(batch int) float64 {
		tr := started[*dense](t, newDense, 0.04, 1)
		tr.params.batch = batch
		before := tr.judge()
		var last result
		for n := 1; n <= tr.params.epochs; n++ {
			var err error
			if last, err = tr.epoch(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if before > 0.3 || last.acc < 0.85 {
			t.Errorf("batch %d: accuracy %.3f before and %.3f after, want to learn", batch, before, last.acc)
		}
		return last.acc
	}
	if a, b := acc(8), acc(64); math.Abs(a-b) > 0.02 {
		t.Errorf("accuracy %.4f with batches of 8 and %.4f with 64", a, b)
	}
}

func TestTheLearningRateGrowsWithTheBatchAndEndsNearZero(t *testing.T) {
	t.Parallel()
	if a, b := learningRate(10, 40, 8), learningRate(10, 40, 64); math.Abs(b/a-8) > 1e-9 {
		t.Errorf("rates %g and %g for batches of 8 and 64, want eight times", a, b)
	}
	if a, b := learningRate(0, 40, 64), learningRate(0, 40, 8); a != b {
		t.Errorf("first rates %g and %g, want the same gentle start", a, b)
	}
	if last := learningRate(39.99, 40, 8); last > rate/1000 {
		t.Errorf("last rate %g", last)
	}
}

func TestExamplesHeldOutAreNotTrainedOn(t *testing.T) {
	t.Parallel()
	tr := started[*dense](t, newDense, 0.04, 1)
	seen := map[float32]bool{}
	for i := range tr.train.len() {
		seen[tr.train.row(i)[0]] = true
	}
	same := 0
	for i := range tr.test.len() {
		if seen[tr.test.row(i)[0]] {
			same++
		}
	}
	if same > tr.test.len()/10 {
		t.Errorf("%d of %d examples held out begin like one trained on", same, tr.test.len())
	}
}

func TestAnEpochTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tk, err := newTick(params{epochs: 4, epochLength: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r, err := tk.epoch(t.Context(), 1)
		if took := time.Since(began); err != nil || took != 3*time.Second || r.acc != 0.25 {
			t.Errorf("took %v, %+v, %v", took, r, err)
		}
	})
}

func TestEpochsAreNotedInOrderOverSeveralRuns(t *testing.T) {
	t.Parallel()
	p := params{epochs: 4, journal: filepath.Join(t.TempDir(), "journal")}
	for run := range 2 {
		tk, err := newTick(p)
		if err != nil {
			t.Fatal(err)
		}
		for n := 2*run + 1; n <= 2*run+2; n++ {
			if _, err := tk.epoch(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if err := closed(tk); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(p.journal); err != nil || string(got) != "1\n2\n3\n4\n" {
		t.Errorf("journal %q, %v", got, err)
	}
}

func TestTwoRunsDoNotShareAJournal(t *testing.T) {
	t.Parallel()
	p := params{epochs: 1, journal: filepath.Join(t.TempDir(), "journal")}
	first, err := newTick(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newTick(p); !errors.Is(err, errBusy) {
		t.Errorf("second run: error %v, want errBusy", err)
	}
	if err := closed(first); err != nil {
		t.Fatal(err)
	}
	third, err := newTick(p)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	if err := closed(third); err != nil {
		t.Fatal(err)
	}
}

func TestACancelledEpochIsNotNoted(t *testing.T) {
	t.Parallel()
	p := params{epochs: 1, epochLength: time.Hour, journal: filepath.Join(t.TempDir(), "journal")}
	tk, err := newTick(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closed(tk) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tk.epoch(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got, err := os.ReadFile(p.journal); err != nil || len(got) != 0 {
		t.Errorf("journal %q, %v", got, err)
	}
}
