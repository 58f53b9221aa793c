package results_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/searcher/results"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func knobs() []tuning.Knob {
	return []tuning.Knob{
		{Name: "lr", Min: tuning.Number(1e-4), Max: tuning.Number(1), Scale: tuning.Log},
		{Name: "batch", Values: []tuning.Value{tuning.Number(32), tuning.Number(64), tuning.Number(128), tuning.Number(256)}},
		{Name: "optimizer", Values: []tuning.Value{tuning.Word("adam"), tuning.Word("sgd")}},
		{
			Name: "momentum", Min: tuning.Number(0.5), Max: tuning.Number(0.99),
			When: &tuning.Condition{Knob: "optimizer", Value: tuning.Word("sgd")},
		},
	}
}

// search is one in which the learning rate matters most, the optimizer less, and the other knobs do
// not. Trials with a rate above 0.5 diverge.
func search(t interface{ Fatal(...any) }, method tuning.SearchMethod, trials int, seed uint64) *searcher.Searcher {
	p := searcher.Plan{Search: tuning.DefaultSearch(), Settings: searcher.Candidates(knobs(), 200, seed)}
	p.Method, p.Search.Trials, p.Epochs, p.Seed, p.Failures = method, trials, 27, seed, trials
	rng := rand.New(rand.NewPCG(seed, 9))
	s, err := preview.Play(p, preview.Cluster{Every: true, Epoch: func(t *searcher.Trial, epoch int) preview.Epoch {
		off := math.Log10(t.Settings["lr"].Float()) + 2
		v := 0.9 - 0.05*off*off - 0.3/float64(epoch) + 0.02*rng.NormFloat64()
		if t.Settings["optimizer"] == tuning.Word("sgd") {
			v -= 0.04
		}
		joules := 100 + t.Settings["batch"].Float()
		e := preview.Epoch{Value: v, Seconds: 2, Cores: 2, Joules: &joules}
		if t.Settings["lr"].Float() > 0.5 && epoch > 1 {
			e.Value = math.NaN()
		}
		return e
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheKnobsThatMatterAreFoundAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, method := range []tuning.SearchMethod{tuning.Random, tuning.ASHA, tuning.Hyperband} {
		first, second, wrong := 0, 0, 0
		const searches = 20
		for seed := range uint64(searches) {
			i := results.Weigh(search(t, method, 64, seed))
			if i.Unknown != "" {
				t.Fatalf("%s, seed %d: %s", method, seed, i.Unknown)
			}
			for at, k := range i.Knobs {
				switch {
				case k.Name == "lr" && at == 0 && k.Verdict == results.Matters:
					first++
				case k.Name == "optimizer" && k.Verdict == results.Matters:
					second++
				case k.Name != "lr" && k.Name != "optimizer" && k.Verdict == results.Matters:
					wrong++
				}
			}
		}
		t.Logf("%s: of %d searches %d find the learning rate, %d the optimizer, %d another knob", method, searches, first, second, wrong)
		if first < searches*9/10 || second < searches*9/10 || wrong > searches/10 {
			t.Errorf("%s: of %d searches %d find the learning rate, %d the optimizer, %d another knob", method, searches, first, second, wrong)
		}
	}
}

func TestWithoutAnyEffectKnobsMatterOnceInTwentySearches(t *testing.T) {
	t.Parallel()
	wrong := 0
	const searches = 200
	for seed := range uint64(searches) {
		s := search(t, tuning.Random, 20, seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		for i := range s.Trials {
			for j := range s.Trials[i].Reports {
				s.Trials[i].Reports[j].Value = rng.NormFloat64()
			}
			s.Trials[i].State = searcher.Done
		}
		if slices.ContainsFunc(results.Weigh(s).Knobs, func(k results.Knob) bool { return k.Verdict == results.Matters }) {
			wrong++
		}
	}
	t.Logf("%d of %d", wrong, searches)
	if wrong > searches*8/100 { // 5 % and three standard errors
		t.Errorf("%d of %d searches name a knob", wrong, searches)
	}
}

func TestTrialsThatEndedEarlyAreComparedAfterTheSameEpochs(t *testing.T) {
	t.Parallel()
	s := search(t, tuning.ASHA, 64, 1)
	i := results.Weigh(s)
	reached := tuning.Count(s.Trials, func(t searcher.Trial) bool { return t.Last().Epoch >= i.Epoch })
	if !slices.Contains(s.Rungs(), i.Epoch) || i.Epoch >= 27 || i.Trials < reached {
		t.Errorf("%d trials after %d epochs, which %d reached, of the rungs %v", i.Trials, i.Epoch, reached, s.Rungs())
	}
}

func TestImportanceIsUnknownWhereItHasTo(t *testing.T) {
	t.Parallel()
	same := search(t, tuning.Random, 20, 1)
	alike := search(t, tuning.Random, 20, 1)
	for i := range same.Trials {
		same.Trials[i].State, alike.Trials[i].State = searcher.Done, searcher.Done
		alike.Trials[i].Settings = tuning.Settings{"lr": tuning.Number(1)}
		for j := range same.Trials[i].Reports {
			same.Trials[i].Reports[j].Value = 1
		}
	}
	for _, tc := range []struct {
		name, want string
		search     *searcher.Searcher
	}{
		{"no trial", "0 comparable trials, and at least 10 are needed", searcher.New(searcher.Plan{Search: tuning.DefaultSearch()}, searcher.Snapshot{})},
		{"one trial", "1 comparable trials, and at least 10 are needed", search(t, tuning.Random, 1, 2)},
		{"nine trials", "9 comparable trials, and at least 10 are needed", search(t, tuning.Random, 9, 2)},
		{"equal values", "all trials have the same value", same},
		{"equal settings", "no knob differs between the trials", alike},
	} {
		if got := results.Weigh(tc.search); got.Unknown != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got.Unknown, tc.want)
		}
	}
}

func TestResultsAsPeopleAndProgramsReadThem(t *testing.T) {
	t.Parallel()
	s := search(t, tuning.ASHA, 24, 4)
	s.Trials[3].Settings = s.Trials[3].Settings.With("optimizer", tuning.Word("a\x1b[31m,b"))
	for i := range s.Trials[4].Reports {
		s.Trials[4].Reports[i].Joules = nil
	}
	s.Trials = append(s.Trials, searcher.Trial{Number: 25, Settings: tuning.Settings{"lr": tuning.Number(0.1)}, State: searcher.Running, Busy: true, Attempt: 1})
	for n, batch := range []float64{512, 1024} {
		settings := tuning.Settings{"batch": tuning.Number(batch), "optimizer": tuning.Word("adam")}
		s.Trials = append(s.Trials, searcher.Trial{Number: 26 + n, Settings: settings, State: searcher.Failed, Attempt: 1, Reason: "out of memory"})
	}
	fixtures.Golden(t, *update, filepath.Join("testdata", "importance.txt"), results.Weigh(s).Text())
	fixtures.Golden(t, *update, filepath.Join("testdata", "front.txt"), results.Front(s, tuning.ByQuality, tuning.ByEnergy).Text())
	fixtures.Golden(t, *update, filepath.Join("testdata", "front-time-cost.txt"), results.Front(s, tuning.ByQuality, tuning.ByTime, tuning.ByCost).Text())
	for name, epochs := range map[string]bool{"trials.csv": false, "epochs.csv": true} {
		var b bytes.Buffer
		if err := results.CSV(&b, s, epochs); err != nil {
			t.Fatal(err)
		}
		fixtures.Golden(t, *update, filepath.Join("testdata", name), b.String())
		rows, err := csv.NewReader(&b).ReadAll() // which wants as many cells in each row
		if err != nil || len(rows) < 26 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	var b bytes.Buffer
	if err := results.JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Plan     searcher.Plan
		Snapshot searcher.Snapshot
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Plan, back.Plan); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s.Snapshot, back.Snapshot); diff != "" {
		t.Error(diff)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAnExportThatCannotBeWrittenSaysSo(t *testing.T) {
	t.Parallel()
	s := search(t, tuning.Random, 1, 1)
	if err := results.CSV(full{}, s, false); err == nil {
		t.Error("CSV: no error")
	}
	if err := results.JSON(full{}, s); err == nil {
		t.Error("JSON: no error")
	}
}

func TestTheFrontHoldsWhatNoOtherBeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := searcher.New(searcher.Plan{Search: tuning.DefaultSearch(), Minimize: rapid.Bool().Draw(t, "minimize")}, searcher.Snapshot{})
		without := 0
		for n := range rapid.IntRange(0, 12).Draw(t, "trials") {
			r := searcher.Report{Epoch: 1, Value: float64(rapid.IntRange(0, 4).Draw(t, "value"))}
			if rapid.Bool().Draw(t, "measured") {
				joules := float64(rapid.IntRange(0, 4).Draw(t, "joules"))
				r.Joules = &joules
			} else {
				without++
			}
			s.Trials = append(s.Trials, searcher.Trial{Number: n + 1, Reports: []searcher.Report{r}})
		}
		f := results.Front(s, tuning.ByQuality, tuning.ByEnergy)
		if len(f.Points)+without != len(s.Trials) || f.Unmeasured != without {
			t.Fatalf("%d points and %d unmeasured of %d", len(f.Points), f.Unmeasured, len(s.Trials))
		}
		better := func(a, b float64) bool { return a != b && (a < b) == s.Minimize }
		for i, p := range f.Points {
			beaten := slices.ContainsFunc(f.Points, func(o results.Point) bool {
				return !better(p.Amounts[0], o.Amounts[0]) && o.Amounts[1] <= p.Amounts[1] && (better(o.Amounts[0], p.Amounts[0]) || o.Amounts[1] < p.Amounts[1])
			})
			if beaten == p.Front {
				t.Errorf("point %+v of %+v", p, f.Points)
			}
			if i > 0 && better(p.Amounts[0], f.Points[i-1].Amounts[0]) {
				t.Errorf("%+v stands after %+v", p, f.Points[i-1])
			}
		}
	})
}

func TestByTheQualityAloneTheFrontIsTheBestTrial(t *testing.T) {
	t.Parallel()
	s := search(t, tuning.Random, 5, 5)
	f := results.Front(s, tuning.ByQuality)
	for i, p := range f.Points {
		if p.Front != (i == 0) || i == 0 && p.Trial != s.Ranking()[0].Number {
			t.Errorf("%+v", f.Points)
		}
	}
}

func TestAFrontSaysWhatDoesNotCompare(t *testing.T) {
	t.Parallel()
	s := search(t, tuning.Random, 3, 5)
	for i, source := range []string{"rapl", "modelled", ""} {
		for j := range s.Trials[i].Reports {
			if s.Trials[i].Reports[j].Source = source; source == "" {
				s.Trials[i].Reports[j].Joules = nil
			}
		}
	}
	got := strings.Join(results.Front(s, tuning.ByQuality, tuning.ByEnergy).Notes(), " ")
	for _, want := range []string{"1 of 3 trials lack joules", "and cannot be compared"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for i := range s.Trials {
		for j := range s.Trials[i].Reports {
			s.Trials[i].Reports[j].Joules = nil
		}
	}
	if got := results.Front(s, tuning.ByQuality, tuning.ByEnergy).Notes(); len(got) != 1 || got[0] != "Joules were not measured." {
		t.Errorf("%q", got)
	}
}
