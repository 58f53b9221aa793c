package classify_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

// memory recalls what was learned before.
type memory map[string][]classify.Sample

func (m memory) recall(run string) ([]classify.Sample, error) { return m[run], nil }

// learn refits with one run after the other.
func learn(t interface {
	Helper()
	Fatal(...any)
}, old *classify.Model, kept memory, samples ...classify.Sample,
) *classify.Model {
	t.Helper()
	for _, s := range samples {
		m, err := classify.Refit(old, []classify.Sample{s}, kept.recall)
		if err != nil {
			t.Fatal(err)
		}
		old, kept[s.Run] = m, append(kept[s.Run], s)
	}
	return old
}

// kindsOf lists the kinds of each class.
func kindsOf(m *classify.Model) []string {
	var out []string
	for _, s := range m.Strata {
		for _, g := range s.Groups {
			out = append(out, fmt.Sprint(g.Kinds))
		}
	}
	slices.Sort(out)
	return out
}

func TestRunByRunTheKindsAreTheClasses(t *testing.T) {
	t.Parallel()
	const kinds = 6
	samples := many(60, kinds)
	at, step := fit(t, samples...), learn(t, nil, memory{}, samples...)
	if diff := cmp.Diff(kindsOf(at), kindsOf(step)); diff != "" || len(kindsOf(step)) != kinds {
		t.Errorf("classes (-of all runs at once +run by run):\n%s", diff)
	}
}

func TestAnEndCostsTheSameHoweverManyRunsWereLearned(t *testing.T) {
	t.Parallel()
	samples, kept, recalled := many(1500, 3), memory{}, 0
	var m *classify.Model
	for _, s := range samples {
		var err error
		m, err = classify.Refit(m, []classify.Sample{s}, func(run string) ([]classify.Sample, error) {
			recalled++
			return kept[run], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		kept[s.Run] = []classify.Sample{s}
	}
	if recalled > 400*100 {
		t.Errorf("%d runs were recalled while %d were learned", recalled, len(samples))
	}
	if got := m.Strata[0].Runs; got > 400 {
		t.Errorf("the stratum is learned from %d runs, want at most 400", got)
	}
}

func TestARunThatAWellKnownClassRecognisesChangesNothing(t *testing.T) {
	t.Parallel()
	samples, kept := many(100, 2), memory{}
	m := learn(t, nil, kept, samples[:90]...)
	settled := 0
	for _, s := range samples[90:] {
		if c := m.Classify(s.Profile); !c.Known() || c.Support < 16 {
			continue
		}
		settled++
		if again := learn(t, m, kept, s); again != m {
			t.Fatalf("run %s changes the model", s.Run)
		}
	}
	if settled == 0 {
		t.Error("no class is well known")
	}
	stranger := sample("stranger", "", samples[0].Profile)
	stranger.Profile.Features = map[string]float64{}
	for name := range samples[0].Profile.Features {
		stranger.Profile.Features[name] = 5
	}
	if again := learn(t, m, kept, stranger); again == m || len(kindsOf(again)) != len(kindsOf(m))+1 {
		t.Errorf("a stranger makes %d classes of %d", len(kindsOf(again)), len(kindsOf(m)))
	}
}

func TestOnlyTheStratumOfARunIsFittedAnew(t *testing.T) {
	t.Parallel()
	one := at(9)
	one.Settings = cores(1)
	kept := memory{}
	old := learn(t, nil, kept, sample("a", "", at(3)), sample("b", "", one))
	m := learn(t, old, kept, sample("c", "", at(20)))
	ignore := cmpopts.IgnoreUnexported(classify.Stratum{})
	for i, s := range m.Strata {
		if same, mine := cmp.Equal(old.Strata[i], s, ignore), s.Key == classify.KeyOf(one); same != mine {
			t.Errorf("stratum %v is as before: %t, want %t", s.Key, same, mine)
		}
	}
	if m.Generation != 3 || m.ID == old.ID {
		t.Errorf("model %s of generation %d after %s", m.ID, m.Generation, old.ID)
	}
	if a, b := old.Classify(one), m.Classify(one); a.ID != b.ID {
		t.Errorf("the class of the other stratum is %q after %q", b.ID, a.ID)
	}
}

func TestOfTooManyRunsTheNewestOfEachKindAreLearned(t *testing.T) {
	t.Parallel()
	samples := many(2500, 5)
	rare := many(3, 1)
	for i := range rare {
		rare[i].Run, rare[i].Kind = fmt.Sprintf("rare-%d", i), "rare"
		for name := range rare[i].Profile.Features {
			rare[i].Profile.Features[name] = 9
		}
	}
	kept := memory{}
	for _, s := range slices.Concat(rare, samples) {
		kept[s.Run] = []classify.Sample{s}
	}
	check := func(what string, m *classify.Model, newest string) {
		t.Helper()
		runs := []string{}
		for _, g := range m.Strata[0].Groups {
			runs = append(runs, g.Runs...)
		}
		if len(kindsOf(m)) != 6 || len(runs) > 400 || len(runs) < 390 || !slices.Contains(runs, "rare-0") || !slices.Contains(runs, newest) {
			t.Errorf("%s: classes of %v, %d runs", what, kindsOf(m), len(runs))
		}
	}
	m := fit(t, slices.Concat(rare, samples)...)
	check("at once", m, samples[2499].Run)
	// A class is learned from further runs, too, where half of it is new.
	more := many(2505, 5)[2500:]
	for i := range more {
		for name := range more[i].Profile.Features {
			more[i].Profile.Features[name] += 0.25
			break
		}
	}
	check("run by run", learn(t, m, kept, more...), samples[2499].Run)
	unnamed := slices.Clone(samples)
	for i := range unnamed {
		unnamed[i].Kind = unnamed[i].Run
	}
	if got := fit(t, unnamed...); got.Strata[0].Runs != 400 || len(got.Strata[0].Groups) != 5 {
		t.Errorf("of as many kinds as runs %d are learned in %d classes", got.Strata[0].Runs, len(got.Strata[0].Groups))
	}
}

func TestWhatIsLearnedRunByRunDependsOnTheRunsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(t)
		kept := memory{}
		once := learn(t, nil, kept, samples...)
		// A restart at any point reads the model back.
		var again *classify.Model
		kept = memory{}
		for _, s := range samples {
			again = learn(t, again, kept, s)
			text, err := again.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err = classify.Decode(text); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(once, again, cmpopts.IgnoreUnexported(classify.Stratum{})); diff != "" {
			t.Fatalf("with restarts another model (-without +with):\n%s", diff)
		}
	})
}

func TestARunThatHasNothingInCommonWithTheOthersIsLeftOut(t *testing.T) {
	t.Parallel()
	of := func(feature string) tuning.Profile { return prof(map[string]float64{feature: 1}) }
	m := learn(t, nil, memory{}, sample("a", "odd", of("system_share")), sample("b", "", of("rss")), sample("c", "", of("rss")))
	if s := m.Strata[0]; s.Runs != 2 || len(s.Groups) != 1 || !m.Classify(of("rss")).Known() {
		t.Errorf("learned %+v", s)
	}
}

func TestARunThatCannotBeRecalled(t *testing.T) {
	t.Parallel()
	m := fit(t, sample("a", "", at(3)))
	lost, err := classify.Refit(m, []classify.Sample{sample("b", "", at(9))}, memory{}.recall)
	if err != nil || len(kindsOf(lost)) != 1 || lost.Classify(at(9)).ID != "c2" {
		t.Errorf("without the run that is lost: %+v, %v", lost, err)
	}
	broken := errors.New("no disk")
	if _, err := classify.Refit(m, []classify.Sample{sample("b", "", at(9))}, func(string) ([]classify.Sample, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
