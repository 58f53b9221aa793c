package propose

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func TestScoresOrderTrialsAsTheirLossesDo(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, tc := range []struct {
		name   string
		trials []Trial
		want   []int // places of the trials that have a score, the best first
	}{
		{"by the loss at the first rung", []Trial{{Losses: []float64{3}}, {Losses: []float64{1}}, {Losses: []float64{2}}}, []int{1, 2, 0}},
		{"one that failed comes last", []Trial{{Losses: []float64{nan}}, {Losses: []float64{9}}, {}}, []int{1, 0}},
		{"a further rung orders those that came to it again", []Trial{{Losses: []float64{1, 8}}, {Losses: []float64{2, 7}}, {Losses: []float64{3}}}, []int{1, 0, 2}},
		{"a bad trial that went on stays behind a good one that ended early", []Trial{{Losses: []float64{9, 5, 1}}, {Losses: []float64{1}}, {Losses: []float64{2}}}, []int{1, 2, 0}},
	} {
		_, scores := Scores(tc.trials)
		if got := Ascending(scores); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v; scores %v", tc.name, got, tc.want, scores)
		}
	}
}

func TestAnotherUnitOfTheLossChangesNoScore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var plain, other []Trial
		for range rapid.IntRange(1, 20).Draw(t, "trials") {
			losses := rapid.SliceOfN(rapid.Map(rapid.IntRange(-9, 9), func(i int) float64 { return float64(i) }), 0, 3).Draw(t, "losses")
			plain, other = append(plain, Trial{Losses: losses}), append(other, Trial{})
			for _, l := range losses {
				other[len(other)-1].Losses = append(other[len(other)-1].Losses, math.Exp(l))
			}
		}
		_, a := Scores(plain)
		_, b := Scores(other)
		if !cmp.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

// line is a job of 21 settings with the best at a place of 0 to 20.
func line(best float64) Past {
	var p Past
	for x := range 21 {
		p.Settings = append(p.Settings, tuning.Settings{"x": tuning.Number(float64(x))})
		p.Losses = append(p.Losses, math.Abs(float64(x)-best))
	}
	return p
}

func TestEarlierJobsAreBelievedAsFarAsTheyAgree(t *testing.T) {
	t.Parallel()
	c := Of(line(0).Settings)
	for _, tc := range []struct {
		name string
		past []Past
		best int // that is expected; -1: nothing is
	}{
		{"no job says nothing", nil, -1},
		{"a job without a difference says nothing", []Past{{Settings: line(0).Settings, Losses: make([]float64, 21)}}, -1},
		{"a single job is believed a little", []Past{line(5)}, 5},
		{"jobs that agree are believed", []Past{line(5), line(5), line(5)}, 5},
		{"jobs that contradict each other are not", []Past{line(0), line(20), line(10)}, -1},
	} {
		got, err := c.Recall(tc.past)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if tc.best < 0 {
			if got != nil {
				t.Errorf("%s: %v", tc.name, got)
			}
			continue
		}
		first, err := c.Guide(got).Next(nil)
		if err != nil || len(got) != len(tc.past) || first < tc.best-1 || first > tc.best+1 {
			t.Errorf("%s: the first is %d: %v", tc.name, first, err)
		}
	}
}

func TestTheGuideOverrulesWhatItRecalls(t *testing.T) {
	t.Parallel()
	now := line(17)
	c := Of(now.Settings)
	past, err := c.Recall([]Past{line(5), line(5)})
	if err != nil {
		t.Fatal(err)
	}
	best, _ := play(t, c.Guide(past), 10, func(at int) float64 { return now.Losses[at] })
	if best < 16 || best > 18 {
		t.Errorf("after 10 of 21 the best is %d, want 17 although earlier jobs say 5", best)
	}
}

func TestWhatIsUnderWayCountsAsExpected(t *testing.T) {
	t.Parallel()
	c := Of(line(0).Settings)
	p, err := c.fit(c.data([]int{0, 6, 20}, []float64{2, 0, 1}, make([][]float64, 21), 0), scatter, noiseSD, coarse)
	if err != nil {
		t.Fatal(err)
	}
	mean, sd := p.predict(c.Points[13], nil)
	q := p.believe([]Trial{{At: 13, Running: true}}, make([][]float64, 21))
	if now, sure := q.predict(c.Points[13], nil); math.Abs(now-mean) > 0.05 || sure > sd/2 {
		t.Errorf("%g±%g, and %g±%g before it began: want the same, and less doubt", now, sure, mean, sd)
	}
}
