package classify_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

func prof(features map[string]float64) tuning.Profile {
	return tuning.Profile{Schema: "sw/1", Machine: "m/2", Settings: cores(2).With("batch_size", tuning.Number(8)), Features: features}
}

// at is a profile of four features that all have the same value.
func at(v float64) tuning.Profile {
	return prof(map[string]float64{"minor_faults": v, "context_switches": v, "system_share": v, "read_chars": v})
}

func sample(run, kind string, p tuning.Profile) classify.Sample {
	return classify.Sample{Profile: p, Run: run, Kind: kind}
}

func fit(t interface {
	Helper()
	Fatal(...any)
}, samples ...classify.Sample,
) *classify.Model {
	t.Helper()
	m, err := classify.Fit(samples)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// partition lists the runs of each class, sorted.
func partition(m *classify.Model) []string {
	var out []string
	for _, s := range m.Strata {
		for _, g := range s.Groups {
			out = append(out, s.Key.Settings+": "+strings.Join(slices.Sorted(slices.Values(g.Runs)), " "))
		}
	}
	slices.Sort(out)
	return out
}

func TestHowManyClassesThereAre(t *testing.T) {
	t.Parallel()
	many := func(n int, centers ...float64) []classify.Sample {
		rng := source(4)
		var out []classify.Sample
		for i := range n {
			f := map[string]float64{}
			for _, name := range []string{"minor_faults", "context_switches", "system_share", "read_chars"} {
				f[name] = centers[i%len(centers)] + 0.5*rng.NormFloat64()
			}
			out = append(out, sample(fmt.Sprintf("r%04d", i), fmt.Sprint(i%len(centers)), prof(f)))
		}
		return out
	}
	apart := func(n int) []float64 {
		var out []float64
		for i := range n {
			out = append(out, 8*float64(i))
		}
		return out
	}
	for name, c := range map[string]struct {
		samples []classify.Sample
		want    int
	}{
		"nothing learned":                         {nil, 0},
		"one run is one class":                    {many(1, 5), 1},
		"equal runs are one class":                {[]classify.Sample{sample("a", "", at(3)), sample("b", "", at(3))}, 1},
		"runs apart by noise are one class":       {[]classify.Sample{sample("a", "", at(3)), sample("b", "", at(4))}, 1},
		"runs far apart are two":                  {[]classify.Sample{sample("a", "", at(3)), sample("b", "", at(8))}, 2},
		"many runs of one kind are one class":     {many(300, 5), 1},
		"many runs of three kinds are three":      {many(300, 2, 8, 14), 3},
		"no more classes than allowed":            {many(300, apart(70)...), 64},
		"profiles of one run are one run":         {[]classify.Sample{sample("a", "", at(1)), sample("a", "", at(20))}, 1},
		"profiles without features teach nothing": {[]classify.Sample{sample("a", "", prof(nil))}, 0},
		"features that are none teach nothing":    {[]classify.Sample{sample("a", "", at(math.NaN())), sample("b", "", at(math.Inf(1)))}, 0},
		"features no other run has teach nothing": {[]classify.Sample{sample("a", "", prof(map[string]float64{"x": 1})), sample("b", "", prof(map[string]float64{"y": 1})), sample("c", "", prof(map[string]float64{"z": 1}))}, 0},
		"disjoint features tell no runs apart":    {[]classify.Sample{sample("a", "", prof(map[string]float64{"x": 1})), sample("b", "", prof(map[string]float64{"y": 1}))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := fit(t, c.samples...)
			if got := len(partition(m)); got != c.want {
				t.Errorf("%d classes, want %d: %q", got, c.want, partition(m))
			}
			for _, s := range m.Strata {
				if s.Silhouette > 0.2 != (c.want > 1 && len(c.samples) > 3) {
					t.Errorf("silhouette %v of %d classes", s.Silhouette, c.want)
				}
			}
		})
	}
}

func TestEveryAnswerHasItsReason(t *testing.T) {
	t.Parallel()
	known := fit(t, sample("a", "dense", at(3)), sample("b", "sort", at(9)))
	nothing := func(run, feature string) classify.Sample {
		return sample(run, "", prof(map[string]float64{feature: 1}))
	}
	classless := fit(t, nothing("a", "x"), nothing("b", "y"), nothing("c", "z"))
	other := func(change func(*tuning.Profile)) tuning.Profile { p := at(3); change(&p); return p }
	for name, c := range map[string]struct {
		model   *classify.Model
		profile tuning.Profile
		id      string
		nearest string
		want    tuning.Reason
	}{
		"the same profile is its class":              {known, at(3), "c1", "c1", tuning.ReasonNearest},
		"another input of the kind is":               {known, at(4), "c1", "c1", tuning.ReasonNearest},
		"the other kind":                             {known, at(8.5), "c2", "c2", tuning.ReasonNearest},
		"between both is neither":                    {known, at(6), "", "c1", tuning.ReasonTooFar},
		"far out is neither":                         {known, at(40), "", "c2", tuning.ReasonTooFar},
		"one feature of many log units is enough":    {known, prof(map[string]float64{"minor_faults": 3, "context_switches": 3, "system_share": 3, "read_chars": 23}), "", "c1", tuning.ReasonTooFar},
		"half of the features suffice":               {known, prof(map[string]float64{"minor_faults": 3, "system_share": 3}), "c1", "c1", tuning.ReasonNearest},
		"less than half does not":                    {known, prof(map[string]float64{"minor_faults": 3}), "", "", tuning.ReasonSchemaMismatch},
		"no features at all":                         {known, prof(nil), "", "", tuning.ReasonSchemaMismatch},
		"features that are none count as missing":    {known, at(math.NaN()), "", "", tuning.ReasonSchemaMismatch},
		"features that were not learned are ignored": {known, other(func(p *tuning.Profile) { p.Features["ipc"] = 1e6 }), "c1", "c1", tuning.ReasonNearest},
		"other hyperparameters are compared":         {known, other(func(p *tuning.Profile) { p.Settings = cores(2) }), "c1", "c1", tuning.ReasonNearest},
		"another schema is not":                      {known, other(func(p *tuning.Profile) { p.Schema = "acct/1" }), "", "", tuning.ReasonSchemaMismatch},
		"another machine is not":                     {known, other(func(p *tuning.Profile) { p.Machine = "m/64" }), "", "", tuning.ReasonNoModel},
		"other cores are not":                        {known, other(func(p *tuning.Profile) { p.Settings = cores(1) }), "", "", tuning.ReasonOtherSettings},
		"without a model":                            {nil, at(3), "", "", tuning.ReasonNoModel},
		"without samples":                            {fit(t), at(3), "", "", tuning.ReasonNoModel},
		"without classes":                            {classless, at(3), "", "", tuning.ReasonNoModel},
		"without classes under any other setting":    {classless, other(func(p *tuning.Profile) { p.Settings = cores(1) }), "", "", tuning.ReasonNoModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.model.Classify(c.profile)
			if got.ID != c.id || got.NearestID != c.nearest || got.Reason != c.want {
				t.Errorf("got %+v, want id %q, nearest %q, %s", got, c.id, c.nearest, c.want)
			}
			if got.Known() && got.Distance > got.Radius || got.NearestID != "" && got.Radius <= 0 {
				t.Errorf("distance %v, radius %v", got.Distance, got.Radius)
			}
			if c.model != nil && got.Model != c.model.ID {
				t.Errorf("model %q, want %q", got.Model, c.model.ID)
			}
		})
	}
}

func TestStrataAreLearnedApart(t *testing.T) {
	t.Parallel()
	one := at(9)
	one.Settings = cores(1)
	m := fit(t, sample("a", "", at(3)), sample("a", "", one))
	want := []string{"cores=1 threads=1: a", "cores=2 threads=2: a"}
	if diff := cmp.Diff(want, partition(m)); diff != "" {
		t.Fatalf("classes (-want +got):\n%s", diff)
	}
	if a, b := m.Classify(at(3)), m.Classify(one); !a.Known() || !b.Known() || a.ID == b.ID {
		t.Errorf("classes %+v and %+v", a, b)
	}
	if got := m.Classify(at(9)); got.Known() {
		t.Errorf("a profile of one core is known at two: %+v", got)
	}
}

func TestTheRadiusShrinksWithEvidenceAndNeverVanishes(t *testing.T) {
	t.Parallel()
	radius := func(spread float64, runs int) float64 {
		rng := source(9)
		var samples []classify.Sample
		for i := range runs {
			f := map[string]float64{}
			for _, name := range []string{"minor_faults", "context_switches", "system_share", "read_chars"} {
				f[name] = 5 + spread*rng.NormFloat64()
			}
			samples = append(samples, sample(fmt.Sprintf("r%03d", i), "", prof(f)))
		}
		return fit(t, samples...).Classify(at(5)).Radius
	}
	one, few, many := radius(0.01, 1), radius(0.01, 5), radius(0.01, 200)
	if !(one > few && few > many) {
		t.Errorf("radii %v, %v, %v of 1, 5 and 200 runs of one input", one, few, many)
	}
	if many < 0.9 {
		t.Errorf("radius %v: another input would not fit", many)
	}
	if wide := radius(0.8, 200); wide <= many {
		t.Errorf("radius %v of runs that differ, %v of runs that do not", wide, many)
	}
}

func TestNoiseIsLearnedWithinKindsOnly(t *testing.T) {
	t.Parallel()
	scale := func(within, between float64) float64 {
		rng := source(5)
		var samples []classify.Sample
		for i := range 40 {
			v := between*float64(i%4) + within*rng.NormFloat64()
			samples = append(samples, sample(fmt.Sprintf("r%02d", i), fmt.Sprint(i%4), prof(map[string]float64{"system_share": v})))
		}
		return fit(t, samples...).Strata[0].Axes[0].Scale
	}
	if got := scale(0, 0); got != 0.9 {
		t.Errorf("scale %v of a constant, want the documented noise", got)
	}
	if got := scale(0.1, 50); got != 0.9 {
		t.Errorf("scale %v: what differs between kinds is no noise", got)
	}
	if got := scale(3, 0); got < 2 || got > 4 {
		t.Errorf("scale %v of a standard deviation of 3", got)
	}
}

func TestIdsSurviveARefit(t *testing.T) {
	t.Parallel()
	samples := []classify.Sample{sample("m", "dense", at(3)), sample("n", "sort", at(9))}
	old := fit(t, samples...)
	// One of the new runs sorts first, so that ids by order would be others.
	more := append(slices.Clone(samples), sample("a", "hash", at(30)), sample("b", "dense", at(3.5)), sample("c", "sort", at(8.5)))
	m, err := classify.Refit(old, more, memory{}.recall)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[float64]string{3: "c1", 9: "c2", 30: "c3"} {
		if got := m.Classify(at(v)); got.ID != want {
			t.Errorf("%v is %q, want %q", v, got.ID, want)
		}
	}
	if m.ID == old.ID || m.Generation != 2 {
		t.Errorf("model %q of generation %d after %q", m.ID, m.Generation, old.ID)
	}
	// A class that is gone leaves its number unused.
	again, err := classify.Refit(m, []classify.Sample{sample("z", "", at(3)), sample("y", "", at(60))}, memory{}.recall)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := again.Classify(at(3)).ID, again.Classify(at(60)).ID; a != "c1" || b != "c4" {
		t.Errorf("ids %q and %q, want c1 and c4", a, b)
	}
}

func TestAnIdIsGivenToOneClassOnly(t *testing.T) {
	t.Parallel()
	old := fit(t, sample("a", "", at(5)))
	m, err := classify.Refit(old, []classify.Sample{sample("a", "", at(3.5)), sample("b", "", at(6.2))}, memory{}.recall)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Classify(at(3.5)).ID, m.Classify(at(6.2)).ID; a != "c2" || b != "c1" {
		t.Errorf("ids %q and %q: the nearer of both is c1", a, b)
	}
}

func TestFlagsOfAProfileAreNotOverlooked(t *testing.T) {
	t.Parallel()
	known := fit(t, sample("a", "dense", at(3)), sample("b", "sort", at(9)))
	flagged := func(flags ...tuning.Flag) tuning.Profile { p := at(3); p.Flags = flags; return p }
	for name, c := range map[string]struct {
		profile  tuning.Profile
		id       string
		want     tuning.Reason
		cautions []tuning.Flag
	}{
		"a clean profile has no caution":                {flagged(), "c1", tuning.ReasonNearest, nil},
		"few samples are not classified":                {flagged(tuning.FlagFewSamples), "", tuning.ReasonThinProfile, []tuning.Flag{tuning.FlagFewSamples}},
		"nor with another flag":                         {flagged(tuning.FlagContended, tuning.FlagFewSamples), "", tuning.ReasonThinProfile, []tuning.Flag{tuning.FlagContended, tuning.FlagFewSamples}},
		"multiplexed counters are named":                {flagged(tuning.FlagMultiplexed), "c1", tuning.ReasonNearest, []tuning.Flag{tuning.FlagMultiplexed}},
		"contention is named":                           {flagged(tuning.FlagContended), "c1", tuning.ReasonNearest, []tuning.Flag{tuning.FlagContended}},
		"that there is no perf is the schema's to tell": {flagged(tuning.FlagNoPerf), "c1", tuning.ReasonNearest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := known.Classify(c.profile)
			if got.ID != c.id || got.Reason != c.want || !slices.Equal(got.Cautions, c.cautions) {
				t.Errorf("got %+v, want %q because %s with the cautions %v", got, c.id, c.want, c.cautions)
			}
		})
	}
	for flag, want := range map[tuning.Flag]int{
		tuning.FlagFewSamples: 0, tuning.FlagContended: 0, tuning.FlagMultiplexed: 1, tuning.FlagNoPerf: 1,
	} {
		if got := len(partition(fit(t, sample("a", "", flagged(flag))))); got != want {
			t.Errorf("a profile with the flag %s makes %d classes, want %d", flag, got, want)
		}
	}
}

func TestWhatLiesBetweenTwoClassesIsAmbiguous(t *testing.T) {
	t.Parallel()
	// Two classes of one run each, further apart than noise explains and near
	// enough for their radii to meet.
	m := fit(t, sample("a", "dense", at(3)), sample("b", "sort", at(5.4)))
	if got := len(partition(m)); got != 2 {
		t.Fatalf("%d classes, want 2", got)
	}
	for name, c := range map[string]struct {
		at                  float64
		id, nearest, second string
		reason              tuning.Reason
	}{
		"half-way":                    {4.2, "", "c1", "c2", tuning.ReasonAmbiguous},
		"a little nearer to one":      {4.3, "", "c2", "c1", tuning.ReasonAmbiguous},
		"clearly nearer to the first": {3.6, "c1", "c1", "", tuning.ReasonNearest},
		"clearly nearer to the other": {4.8, "c2", "c2", "", tuning.ReasonNearest},
		"outside of both":             {40, "", "c2", "", tuning.ReasonTooFar},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := m.Classify(at(c.at))
			if got.ID != c.id || got.NearestID != c.nearest || got.RunnerUpID != c.second || got.Reason != c.reason {
				t.Errorf("got %+v, want %q, nearest %q, next %q, %s", got, c.id, c.nearest, c.second, c.reason)
			}
			if got.Support != 1 {
				t.Errorf("support %d, want one run", got.Support)
			}
		})
	}
}

// Two kinds of six runs each, whose three counters lie apart by 0.12; 0.1 is documented as
// the noise of one.
func TestWhetherKindsShareAClassIsForTheirRepeatsToSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema       string
		apart, noise float64
		want         int
	}{
		"repeats that agree tell them apart":                  {"hw/1/3", 0.12, 0.01, 2},
		"repeats that differ as documented do not":            {"hw/1/3", 0.12, 0.1, 1},
		"what is alike stays together, however repeats agree": {"hw/1/3", 0, 0.01, 1},
		"other features are as noisy as documented":           {"sw/1", 0.12, 0.01, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := source(5)
			var samples []classify.Sample
			for i := range 12 {
				p := prof(map[string]float64{})
				p.Schema = c.schema
				for _, f := range []string{"ipc", "branches", "branch-misses"} {
					p.Features[f] = 3 + c.apart*float64(i%2) + c.noise*rng.NormFloat64()
				}
				samples = append(samples, sample(fmt.Sprintf("r%02d", i), fmt.Sprint(i%2), p))
			}
			m := fit(t, samples...)
			if got := len(m.Strata[0].Groups); got != c.want {
				t.Errorf("%d classes, want %d", got, c.want)
			}
		})
	}
}
