package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/figure"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func knobs() []tuning.Knob {
	return []tuning.Knob{
		{Name: "lr", Min: tuning.Number(1e-4), Max: tuning.Number(1), Scale: tuning.Log},
		{Name: "batch_size", Values: []tuning.Value{tuning.Number(32), tuning.Number(64), tuning.Number(128), tuning.Number(256)}},
		{Name: "optimizer", Values: []tuning.Value{tuning.Word("adam"), tuning.Word("sgd"), tuning.Word("<&>")}},
		{Name: "momentum", Min: tuning.Number(0.5), Max: tuning.Number(0.99), When: &tuning.Condition{Knob: "optimizer", Value: tuning.Word("sgd")}},
	}
}

// search is one in which trials end in every way. Those with checkpoints are paused.
func search(t *testing.T, trials int, joules bool, change ...func(*searcher.Plan)) *searcher.Searcher {
	t.Helper()
	p := searcher.Plan{Search: tuning.DefaultSearch(), Resumes: true, Settings: searcher.Candidates(knobs(), 2*trials, 4)}
	p.Search.Trials, p.Epochs, p.Seed, p.Failures = trials, 27, 4, trials
	for _, f := range change {
		f(&p)
	}
	sign := 1.0
	if p.Minimize {
		sign = -1
	}
	rng := rand.New(rand.NewPCG(1, 9))
	s, err := preview.Play(p, preview.Cluster{Start: 30, Every: true, Epoch: func(t *searcher.Trial, epoch int) preview.Epoch {
		off := math.Log10(t.Settings["lr"].Float()) + 2
		e := preview.Epoch{
			Value:   sign * (0.95 - 0.05*off*off - 0.3/float64(epoch) + 0.02*rng.NormFloat64()),
			Seconds: 10 + 800/t.Settings["batch_size"].Float(), Cores: 2,
			Fails: t.Number%11 == 5 && epoch == 2,
		}
		if joules {
			j := 30 * e.Seconds
			e.Joules = &j
		}
		if t.Settings["lr"].Float() > 0.3 && epoch > 1 {
			e.Value = math.NaN()
		}
		return e
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawn(t *testing.T, kind figure.Kind, format picture.Format, s *searcher.Searcher) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := figure.Draw(&b, kind, format, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// texts are what an SVG says; it has to be well-formed.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var out []string
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			out = append(out, string(text))
		}
	}
}

func minimum(p *searcher.Plan) { p.Minimize = true }

func TestPicturesAsTheyAre(t *testing.T) {
	t.Parallel()
	target := func(p *searcher.Plan) { at := 0.93; p.Target, p.Total = &at, 30 }
	for name, s := range map[string]*searcher.Searcher{
		"":        search(t, 14, true),
		"one-":    search(t, 1, true),
		"target-": search(t, 6, true, target),
		"loss-":   search(t, 12, true, minimum),
	} {
		for _, kind := range figure.Kinds() {
			t.Run(name+string(kind), func(t *testing.T) {
				t.Parallel()
				got := drawn(t, kind, picture.SVG, s)
				texts(t, got)
				if name == "" { // the others are looked at by what is on them
					file := filepath.Join("testdata", string(kind)+".svg")
					fixtures.Golden(t, *update, file, string(got))
				}
				if name != "" && name != "one-" { // to make pixels takes a second with the race detector
					return
				}
				picture, err := png.Decode(bytes.NewReader(drawn(t, kind, picture.PNG, s)))
				if err != nil {
					t.Fatal(err)
				}
				if size := picture.Bounds().Size(); size != image.Pt(800, 500) {
					t.Errorf("%v pixels", size)
				}
				marked := 0 // pixels with a colour: neither text nor grid
				for x := range 800 {
					for y := range 460 { // the legend lies below
						r, g, b, _ := picture.At(x, y).RGBA()
						if max(r, g, b)-min(r, g, b) > 0x4000 {
							marked++
						}
					}
				}
				if least := 20; marked < least {
					t.Errorf("%d pixels with a colour, want %d at least", marked, least)
				}
			})
		}
	}
}

func TestPicturesSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	loss := search(t, 12, true, minimum)
	partly := search(t, 12, true)
	for i := range partly.Trials[0].Reports {
		partly.Trials[0].Reports[i].Joules = nil
	}
	far := search(t, 12, true, minimum)
	far.Trials[2].Reports = []searcher.Report{{Seq: 3, Epoch: 1, Value: 1e9, At: 3, Seconds: 3}}
	long := search(t, 12, true)
	best := long.Ranking()[0]
	title := fmt.Sprintf("%.4g, trial %d", long.Best(best).Value, best.Number)
	long.Trials[0].Reports = append(long.Trials[0].Reports, searcher.Report{Seq: 1000, Epoch: 28, Value: 99})
	modelled := search(t, 12, true)
	for i := range modelled.Trials {
		for k := range modelled.Trials[i].Reports {
			modelled.Trials[i].Reports[k].Source = tuning.Modelled
		}
	}
	ended := func(as searcher.State, by searcher.EventKind) *searcher.Searcher {
		return searcher.New(loss.Plan, searcher.Snapshot{Trials: []searcher.Trial{{
			Number: 1, State: as, Began: 1, Log: []searcher.Event{{Kind: by, Seq: 2, Report: searcher.Report{At: 300}}},
		}}})
	}
	for _, tc := range []struct {
		name   string
		kind   figure.Kind
		search *searcher.Searcher
		want   []string
	}{
		{"time has a unit", figure.BestTime, loss, []string{"time since the search began (min)", "value (lower is better)", "best so far"}},
		{"energy has a unit", figure.BestEnergy, loss, []string{"energy of the whole search (kJ)"}},
		{"epochs without joules are counted", figure.BestEnergy, partly, []string{"Joules were not measured in "}},
		{"trials without joules are left out", figure.FrontEnergy, partly, []string{"1 of 12 trials lack joules"}},
		{"joules of a search carry their source", figure.BestEnergy, modelled, []string{"Source of the joules: modelled."}},
		{"joules of trials carry their source", figure.FrontEnergy, modelled, []string{"Source of the joules: modelled."}},
		{"cost is in core-hours", figure.FrontCost, loss, []string{"(core-hours)"}},
		{"a value far from all others does not hide them", figure.BestTime, far, []string{"1 epoch with a far worse value drawn at the edge."}},
		{"an epoch after a whole trial is not the best", figure.BestTime, long, []string{title}},
		{"nor on an axis", figure.Parallel, far, []string{"1 trial with a far worse value drawn at the edge."}},
		{"a knob that does not count is not set", figure.Parallel, loss, []string{"not set", "<&>", "batch_size", "value"}},
		{"a trial that failed before its first epoch is where it failed", figure.Rungs, ended(searcher.Failed, searcher.Ended), []string{"(min)", "No trial has reported an epoch."}},
		{"one that diverged is where it diverged", figure.Rungs, ended(searcher.Diverged, searcher.Broke), []string{"(min)"}},
		{"states and rungs have a legend", figure.Rungs, loss, []string{"\ndone\n", "\nstopped\n", "\nrung\n", "\nwaits or is paused\n", "\nfailed or diverged here\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(texts(t, drawn(t, tc.kind, picture.SVG, tc.search)), "\n")
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

func TestAThousandTrialsAreAllDrawn(t *testing.T) {
	t.Parallel()
	s := search(t, 1000, true, func(p *searcher.Plan) { p.Parallel, p.Resumes, p.Method = 50, false, tuning.Random; p.Epochs = 3 })
	begun := tuning.Count(s.Trials, func(t searcher.Trial) bool { return len(t.Reports) > 0 })
	for kind, least := range map[figure.Kind]int{figure.BestTime: begun, figure.Parallel: begun, figure.FrontTime: begun, figure.Rungs: 1000} {
		svg := drawn(t, kind, picture.SVG, s)
		texts(t, svg)
		if got := bytes.Count(svg, []byte("<path")); got < least {
			t.Errorf("%s: %d marks, want %d at least", kind, got, least)
		}
		if most := 500_000; len(svg) > most {
			t.Errorf("%s: %d bytes, want %d at most", kind, len(svg), most)
		}
	}
	if got := texts(t, drawn(t, figure.Rungs, picture.SVG, s)); !slices.Contains(got, "There are too many trials to mark their rungs.") {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeDrawnIsSaidAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	nothing := searcher.New(searcher.Plan{Search: tuning.DefaultSearch()}, searcher.Snapshot{})
	for _, tc := range []struct {
		name   string
		kind   figure.Kind
		format picture.Format
		search *searcher.Searcher
		is     error
		want   string
	}{
		{"no trial over time", figure.BestTime, picture.SVG, nothing, figure.ErrEmpty, "no trial has reported an epoch"},
		{"no trial side by side", figure.Parallel, picture.SVG, nothing, figure.ErrEmpty, "no trial has reported an epoch"},
		{"no trial on a front", figure.FrontTime, picture.PNG, nothing, figure.ErrEmpty, "no trial has reported an epoch"},
		{"no trial with rungs", figure.Rungs, picture.PNG, nothing, figure.ErrEmpty, "no trial has begun"},
		{"no joules", figure.BestEnergy, picture.SVG, search(t, 3, false), figure.ErrEmpty, "joules were not measured"},
		{"no joules on a front", figure.FrontEnergy, picture.SVG, search(t, 3, false), figure.ErrEmpty, "joules were not measured"},
		{"an unknown kind", "pie", picture.SVG, nothing, figure.ErrKind, "want one of [best-time"},
		{"an unknown format", figure.Rungs, "gif", search(t, 3, false), picture.ErrFormat, "want one of [svg png]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			err := figure.Draw(&b, tc.kind, tc.format, tc.search)
			if !errors.Is(err, tc.is) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%v, want %v with %q", err, tc.is, tc.want)
			}
			if b.Len() > 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAPictureThatCannotBeWrittenSaysSo(t *testing.T) {
	t.Parallel()
	if err := figure.Draw(full{}, figure.Rungs, picture.PNG, search(t, 1, false)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Searches that have not ended, and values and times of any size.
func TestWhateverASearchHoldsIsDrawnOrSaidToBeMissing(t *testing.T) {
	t.Parallel()
	states := []searcher.State{searcher.Running, searcher.Paused, searcher.Stopped, searcher.Done, searcher.Failed, searcher.Diverged}
	rapid.Check(t, func(t *rapid.T) {
		p := searcher.Plan{Search: tuning.DefaultSearch(), Minimize: rapid.Bool().Draw(t, "minimize")}
		p.Epochs = 9
		s := searcher.New(p, searcher.Snapshot{})
		amount := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e12))
		value := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1, 1), rapid.Float64Range(-1e30, 1e30))
		word := rapid.OneOf(rapid.Map(value, tuning.Number), rapid.Map(rapid.SampledFrom([]string{"a", "\x1b[31m", "a long word that is not read"}), tuning.Word), rapid.Just(tuning.Value{}))
		for n := range rapid.IntRange(1, 6).Draw(t, "trials") {
			trial := searcher.Trial{Number: n + 1, State: rapid.SampledFrom(states).Draw(t, "state"), Began: s.Seq, Settings: tuning.Settings{}}
			for _, knob := range []string{"lr", tuning.Memory, "a knob with a name of many words"} {
				if v := word.Draw(t, knob); v.IsSet() {
					trial.Settings[knob] = v
				}
			}
			for epoch := range rapid.IntRange(0, 3).Draw(t, "epochs") {
				s.Seq++
				r := searcher.Report{Seq: s.Seq, Epoch: epoch + 1, Value: value.Draw(t, "value"), At: amount.Draw(t, "at"), Seconds: amount.Draw(t, "seconds"), CoreHours: amount.Draw(t, "hours")}
				if rapid.Bool().Draw(t, "measured") {
					joules := amount.Draw(t, "joules")
					r.Joules = &joules
				}
				trial.Reports = append(trial.Reports, r)
			}
			s.Trials = append(s.Trials, trial)
		}
		for _, kind := range figure.Kinds() {
			var b bytes.Buffer
			err := figure.Draw(&b, kind, picture.SVG, s)
			switch {
			case err != nil && !errors.Is(err, figure.ErrEmpty):
				t.Errorf("%s: %v", kind, err)
			case err == nil && (bytes.Contains(b.Bytes(), []byte("NaN")) || bytes.Contains(b.Bytes(), []byte("Inf"))):
				t.Errorf("%s: has no number:\n%s", kind, b.String())
			}
		}
	})
}
