package classify_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

// rates is a profile of a program that computes, with so many minor faults and
// characters written in a CPU second.
func rates(faults, written float64) tuning.Profile {
	return prof(map[string]float64{
		"minor_faults": math.Log1p(faults), "write_chars": math.Log1p(written), "context_switches": 5.5, "system_share": 2, "cpu_utilisation": 0.95,
	})
}

func TestRatesThatCostNothingTellNoProgramsApart(t *testing.T) {
	t.Parallel()
	m := fit(t, sample("a", "long", rates(2, 15)), sample("b", "long", rates(3, 12)))
	for name, c := range map[string]struct {
		faults, written float64
		want            bool
	}{
		"the same":    {2, 15, true},
		"none at all": {0, 0, true},
		"the start of a short run is spread over it": {250, 15, true},
		"short epochs with a line of progress each":  {250, 900, true},
		"what allocates all the time is another":     {4000, 15, false},
		"what writes all the time is another":        {2, 2e8, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := m.Classify(rates(c.faults, c.written)); got.Known() != c.want {
				t.Errorf("got %+v, want known: %v", got, c.want)
			}
		})
	}
}

// A class's radius follows from how much its own runs spread, what joins it from the
// noise that is documented, so that the two need not agree to the last tenth.
func TestRunsLieWithinTheClassThatHoldsThem(t *testing.T) {
	t.Parallel()
	for step := range 16 {
		apart := 0.25 * float64(step)
		t.Run(fmt.Sprintf("%.2f apart", apart), func(t *testing.T) {
			t.Parallel()
			var samples []classify.Sample
			for i := range 24 {
				v := 3 + 0.1*math.Sin(float64(i))
				if i%6 == 0 {
					v += apart
				}
				samples = append(samples, sample(fmt.Sprintf("r%02d", i), "", prof(map[string]float64{"context_switches": v, "system_share": v, "rss": v})))
			}
			m := fit(t, samples...)
			for _, s := range samples {
				got := m.Classify(s.Profile)
				at := slices.IndexFunc(m.Strata[0].Groups, func(g classify.Group) bool { return g.ID == got.NearestID })
				if got.Distance > 1.1*got.Radius || at < 0 || !slices.Contains(m.Strata[0].Groups[at].Runs, s.Run) {
					t.Errorf("%s is of a class that does not recognise it: %+v", s.Run, got)
				}
			}
		})
	}
}
