package knowledge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// learnt is a trial of a search: seconds of an epoch on 4 cores and, by a ratio, on 2.
func learnt(seconds, ratio float64, hyper ...any) Observation {
	own := onCores(4)
	for i := 0; i < len(hyper); i += 2 {
		own[hyper[i].(string)] = tuning.ParseValue(fmt.Sprint(hyper[i+1]))
	}
	o := observation(own.Key(), 0)
	o.Trials = []tuning.Trial{
		reference(trial(own, seconds, 0)), trial(own.With(tuning.Cores, tuning.Number(2)), seconds*ratio, 0),
	}
	return o
}

// asks is a trial of the same search.
func asks(hyper ...any) Asker {
	return Asker{Kind: kind("train"), Own: learnt(1, 1, hyper...).Trials[0].Settings, Learns: func(knob string) bool { return !tuning.IsSystem(knob) }}
}

func TestWhatATrialShowedServesOthers(t *testing.T) {
	t.Parallel()
	rates := []Observation{learnt(10, .6, "lr", .1), learnt(10, .6, "lr", .01), learnt(10, .6, "lr", .001)}
	batches := []Observation{learnt(10, .6, "batch", 64), learnt(20, .8, "batch", 32), learnt(40, 1, "batch", 16)}
	words := []Observation{learnt(10, .6, "lr", .1, "optimizer", "adam"), learnt(10, .6, "lr", .01, "optimizer", "sgd"), learnt(10, .6, "lr", .01, "optimizer", "adam")}
	measured := func(a Asker, seconds float64) Asker { a.Seconds = seconds; return a }
	for _, tc := range []struct {
		name         string
		obs          []Observation
		a            Asker
		ratio, apart float64 // of two cores; 0: nothing is known of them
	}{
		{"a knob that no epoch's work depends on carries all over", rates, asks("lr", .03), .6, .02},
		{"a word too, once it was seen", words, asks("lr", .1, "optimizer", "sgd"), .6, .05},
		{"a word that none had is not foretold", words, asks("lr", .1, "optimizer", "lion"), 0, 0},
		{"one trial alone does not show what the work of another is", rates[:1], asks("lr", .0001), 0, 0},
		{"but the other's own epochs do", rates[:1], measured(asks("lr", .0001), 10), .6, 0},
		{"epochs that take three times as long make it doubtful", rates[:1], measured(asks("lr", .0001), 30), .6, .2},
		{"between two amounts of work it lies between", batches[1:], measured(asks("batch", 22), 28), .9, .1},
		{"beyond them it goes on, with more doubt", batches, measured(asks("batch", 128), 5), .6, .2},
		{"the same hyperparameters are known as they are", batches, asks("batch", 32), .8, .12},
		{"other cores of the owner's are another question", rates, Asker{Kind: kind("train"), Own: onCores(8).With("lr", tuning.Number(.03)), Learns: asks().Learns}, 0, 0},
		{"who does not know what is learned shares nothing", rates, Asker{Kind: kind("train"), Own: asks("lr", .03).Own}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			effects := Effects(tc.obs, tc.a, byTimeAlone(), at(0))
			if tc.ratio == 0 {
				if len(effects) > 0 {
					t.Errorf("Effects = %+v, want none", effects)
				}
				return
			}
			want := tc.a.Own.With(tuning.Cores, tuning.Number(2))
			if len(effects) != 1 || !effects[0].Settings.Equal(want) {
				t.Fatalf("Effects = %+v, want one of %s", effects, want)
			}
			e := effects[0]
			if math.Abs(math.Exp(e.LogRatio)-tc.ratio) > .05 || e.Apart > tc.apart || e.Apart < tc.apart/3 {
				t.Errorf("ratio %.3f and apart by %.3f, want about %.3f and at most %.3f", math.Exp(e.LogRatio), e.Apart, tc.ratio, tc.apart)
			}
		})
	}
}

func TestRunsWithOtherCoresHintAtHowAJobScales(t *testing.T) {
	t.Parallel()
	ran := func(cores, seconds float64, day int) Observation {
		o := observation(fmt.Sprint(cores, day), day)
		o.Trials = []tuning.Trial{reference(trial(onCores(cores), seconds, 0))}
		return o
	}
	obs := []Observation{ran(8, 9, 0), ran(8, 5, 1), ran(2, 20, 2), ran(4, 12, 3)}
	got := Carried(obs, Asker{Kind: kind("train"), Own: onCores(4), Seconds: 10}, byTimeAlone(), at(3))
	if len(got) != 2 || !got[0].Between || !got[0].From.Equal(onCores(2)) || !got[1].From.Equal(onCores(8)) ||
		math.Abs(got[0].LogTime-math.Log(.5)) > 1e-9 || math.Abs(got[1].LogTime-math.Log(2)) > 1e-9 {
		t.Errorf("%+v, want half of the time on 2 cores and twice that of the newer run on 8", got)
	}
	if got := Carried(obs, Asker{Kind: kind("train"), Own: onCores(4)}, byTimeAlone(), at(3)); len(got) > 0 {
		t.Errorf("of a job that measured nothing yet: %+v", got)
	}
}

func TestWhatATrialWouldTakeIsForetold(t *testing.T) {
	t.Parallel()
	var obs []Observation
	for i, batch := range []float64{16, 32, 64, 128} {
		o := learnt(1600/batch, .6, "batch", batch, "lr", []float64{.1, .01}[i%2])
		o.Peak = tuning.Bytes(1e6 * batch)
		obs = append(obs, o)
	}
	if s, n := KindSeconds(obs, asks("batch", 256, "lr", .05)); math.Abs(math.Log(s/6.25)) > .2 || n != 4 {
		t.Errorf("an epoch takes %.2f s by %d runs, want about 6.25 by 4", s, n)
	}
	if p, n := PeakRSS(obs, asks("batch", 256, "lr", .05)); p < 200e6 || n != 4 {
		t.Errorf("it needs %d bytes by %d runs, want 256 MB or more by 4", p, n)
	}
	if p, n := PeakRSS(obs[:1], asks("batch", 4096)); p != 0 || n != 0 {
		t.Errorf("from one run it needs %d bytes by %d runs: want that it is unknown", p, n)
	}
	if p := KindProfile(profiled(obs), asks("batch", 30, "lr", .05)); p == nil || p.PeakRSS != 2 {
		t.Errorf("its profile is %+v, want that of batch size 32", p)
	}
	if p := KindProfile(profiled(obs), asks("batch", 1024, "lr", .05)); p != nil {
		t.Errorf("its profile is %+v, want none", p)
	}
}

func profiled(obs []Observation) (out []Observation) {
	for i, o := range obs {
		o.Profiles = []tuning.Profile{{Settings: onCores(4), PeakRSS: tuning.Bytes(i + 1)}}
		out = append(out, o)
	}
	return out
}

// Whatever the trials are, what is shared is finite, and of the asker's own hyperparameters.
func TestWhatIsSharedIsFinite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]any{-1, 0, 1e-300, .1, 32, 1e300, "adam", ""})
		var obs []Observation
		for range rapid.IntRange(0, 6).Draw(t, "trials") {
			obs = append(obs, learnt(rapid.Float64Range(1e-3, 1e6).Draw(t, "seconds"), rapid.Float64Range(.1, 9).Draw(t, "ratio"), "x", number.Draw(t, "x"), "y", number.Draw(t, "y")))
		}
		a := asks("x", number.Draw(t, "own x"), "y", number.Draw(t, "own y"))
		a.Seconds = rapid.SampledFrom([]float64{0, 1e-3, 1, 1e6}).Draw(t, "own seconds")
		for _, e := range Effects(obs, a, byTimeAlone(), at(0)) {
			if sum := e.LogRatio + e.LogTime + e.SD + e.Apart; math.IsNaN(sum) || math.IsInf(sum, 0) || !e.Settings.Only(a.Learns).Equal(a.Own.Only(a.Learns)) {
				t.Fatalf("%+v for %s", e, a.Own)
			}
		}
		if s, _ := KindSeconds(obs, a); math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
			t.Fatalf("%g seconds", s)
		}
	})
}

// A search whose trials each ran on one number of cores only: the effect of fewer cores is separated from that of the hyperparameters,
// with an error that holds.
func TestTrialsThatRanOnOtherCoresThroughoutAreCompared(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	const searches = 300
	for _, trials := range []int{4, 6, 12} {
		within, known := 0, 0
		for range searches {
			ratio, slopes := r.NormFloat64()*.4, [3]float64{}
			for i := range slopes {
				if r.IntN(2) == 0 {
					slopes[i] = r.NormFloat64()
				}
			}
			var obs []Observation
			took := func(x [3]float64) float64 {
				return 3 + slopes[0]*x[0] + slopes[1]*x[1] + slopes[2]*x[2] + r.NormFloat64()*workNoise/2
			}
			draw := func() (x [3]float64, named []any) {
				x = [3]float64{r.NormFloat64() * .8, r.NormFloat64() * .4, r.NormFloat64() * 2}
				return x, []any{"batch", math.Exp(x[0]), "width", math.Exp(x[1]), "lr", math.Exp(x[2])}
			}
			for i := range trials {
				x, named := draw()
				o := learnt(1, 1, named...)
				o.ID = fmt.Sprint(i)
				if o.Job = o.ID; i%2 == 0 {
					o.Trials = o.Trials[:1]
					o.Trials[0].Seconds = math.Exp(took(x))
				} else {
					o.Trials = o.Trials[1:]
					o.Trials[0].Seconds = math.Exp(took(x) + ratio)
				}
				obs = append(obs, o)
			}
			_, named := draw()
			a := asks(named...)
			if effects := Effects(obs, a, byTimeAlone(), at(0)); len(effects) > 0 {
				t.Fatalf("Effects of jobs that are no trials of a search = %+v, want none", effects)
			}
			a.Search = "s"
			effects := Effects(obs, a, byTimeAlone(), at(0))
			if len(effects) == 0 {
				continue
			}
			if known++; len(effects) != 1 || effects[0].Runs != trials/2 || !effects[0].Settings.Equal(a.Own.With(tuning.Cores, tuning.Number(2))) {
				t.Fatalf("Effects = %+v, want one of two cores", effects)
			}
			if e := effects[0]; math.Abs(e.LogRatio-ratio) < 1.645*e.Error(0) {
				within++
			}
		}
		t.Logf("of %d trials: %d effects known, %d of them within their 90 %% interval", trials, known, within)
		if within < known*85/100 || trials == 12 && known < searches*3/5 {
			t.Errorf("of %d trials: %d of %d effects known, %d of them within their 90 %% interval", trials, known, searches, within)
		}
	}
}

func TestWhatDiffersBesidesTheSettingIsNotAttributedToIt(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{tuning.Cores: tuning.Number(4), tuning.Memory: tuning.Number(16 << 30)}
	ran := func(cores, seconds, joules float64, in func(*Observation)) (out []Observation) {
		for i := range 6 {
			o := observation(fmt.Sprint(cores, i), i)
			o.Search, o.Trials = "s", []tuning.Trial{trial(own.With(tuning.Cores, tuning.Number(cores)), seconds, joules)}
			if in(&o); o.Trials[0].Settings.Equal(own) {
				o.Trials[0].Reference = true
			}
			out = append(out, o)
		}
		return out
	}
	as := func(*Observation) {}
	elsewhere := func(o *Observation) { o.Machine = "slow/8" }
	before := func(o *Observation) { o.Search = "earlier" }
	cost := tuning.Measure{Objective: tuning.Cost, Tariff: tuning.Tariff{CoreHour: .01, GiBHour: .01, KWh: .3}}
	for _, tc := range []struct {
		name  string
		obs   []Observation
		m     tuning.Measure
		ratio float64 // 0: nothing is known
	}{
		{"with the same data on the same machine it is the setting", slices.Concat(ran(4, 10, 0, as), ran(2, 19, 0, as)), byTimeAlone(), 1.9},
		{"another machine is not", slices.Concat(ran(4, 20, 0, elsewhere), ran(2, 10, 0, as)), byTimeAlone(), 0},
		{"nor is the data of another search", slices.Concat(ran(4, 20, 0, before), ran(2, 10, 0, as)), byTimeAlone(), 0},
		{"but where both ran in that search it is known", slices.Concat(ran(4, 20, 0, before), ran(2, 38, 0, before), ran(2, 19, 0, as)), byTimeAlone(), 1.9},
		{"a price counts as in a pair", slices.Concat(ran(4, 10, 2000, as), ran(2, 19, 3000, as)), cost, (19*(2+16)*.01/3600 + 3000*.3/3.6e6) / (10*(4+16)*.01/3600 + 2000*.3/3.6e6)},
		{"joules that none has under its owner's settings are unknown", slices.Concat(ran(4, 10, 0, as), ran(2, 19, 3000, as)), tuning.Measure{Objective: tuning.Energy}, 0},
		{"where nothing ran under those, nothing is", ran(2, 19, 0, as), byTimeAlone(), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			effects := Effects(tc.obs, Asker{Kind: kind("train"), Own: own, Learns: asks().Learns, Machine: "m/8", Search: "s"}, tc.m, at(6))
			switch {
			case tc.ratio == 0 && len(effects) == 0:
			case tc.ratio == 0 || len(effects) != 1 || math.Abs(effects[0].LogRatio-math.Log(tc.ratio)) > .06:
				t.Errorf("Effects = %+v, want one of ln %.3f = %.3f (0: none)", effects, tc.ratio, math.Log(tc.ratio))
			}
		})
	}
}
