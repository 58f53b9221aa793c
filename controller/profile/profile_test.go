package profile_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

func spec() profile.Spec {
	return profile.Spec{WarmupEpochs: 1, Epochs: 2, Settings: twoCores().With("batch_size", tuning.Number(32)), Machine: "m/4", NodeCores: 4}
}

func of(w api.Window, s profile.Spec) (tuning.Profile, tuning.Reason) {
	return profile.Profile(w, profile.Epochs(w, s), s)
}

func TestAProfileHoldsEveryFeatureOfASteadyJob(t *testing.T) {
	t.Parallel()
	got, reason := of(steady().window(8, every(2, 3)...), spec())
	if reason != tuning.ReasonNone {
		t.Fatalf("reason %q", reason)
	}
	// By hand from the slopes: two CPU seconds a second on two cores.
	want := tuning.Profile{
		Schema: "sw/1",
		Features: map[string]float64{
			"minor_faults":     math.Log(1 + 1000),
			"major_faults":     math.Log(1 + 1),
			"context_switches": math.Log(1 + 100),
			"voluntary_ratio":  math.Log(76.0 / 26.0),
			"cpu_migrations":   math.Log(1 + 2),
			"system_share":     math.Log(1 + 200),
			"cpu_utilisation":  1,
			"read_chars":       math.Log(1 + 2e6),
			"write_chars":      math.Log(1 + 1e4),
			"read_bytes":       math.Log(1 + 1e6),
			"write_bytes":      math.Log(1 + 5e3),
			"rss":              math.Log(1 + 64*1024),
			"rss_growth":       0,
			"threads_per_core": math.Log(2),
			"cpu_pressure":     0.1,
			"memory_pressure":  0.05,
			"io_pressure":      0.2,
		},
		Settings: twoCores(),
		Machine:  "m/4",
		Epochs:   2,
		Samples:  8,
		Seconds:  4,
		PeakRSS:  112 << 20, // the kernel's peak less the file pages
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
}

func TestWhatIsMissingIsNotZero(t *testing.T) {
	t.Parallel()
	whole, _ := of(onGPU().window(8, every(2, 3)...), spec())
	for _, c := range []struct {
		name   string
		gone   []string
		absent []string
	}{
		{"no faults", []string{api.ColMinorFaults}, []string{"minor_faults"}},
		{"no own clock of either kind", []string{api.ColUserSeconds}, []string{"system_share"}},
		{"no resident size", []string{api.ColRSS}, []string{"rss", "rss_growth"}},
		{"no threads", []string{api.ColThreads}, []string{"threads_per_core"}},
		{"no voluntary switches", []string{api.ColVoluntary}, []string{"voluntary_ratio"}},
		{"no switches at all", []string{api.ColVoluntary, api.ColContextSwitch}, []string{"voluntary_ratio", "context_switches"}},
		{"no pressure", []string{api.ColCPUPressure, api.ColIOPressure}, []string{"cpu_pressure", "io_pressure"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, reason := of(onGPU().without(c.gone...).window(8, every(2, 3)...), spec())
			if reason != tuning.ReasonNone {
				t.Fatalf("reason %q", reason)
			}
			var absent []string
			for name := range whole.Features {
				if _, ok := p.Features[name]; !ok {
					absent = append(absent, name)
				}
			}
			slices.Sort(absent)
			slices.Sort(c.absent)
			if diff := cmp.Diff(c.absent, absent); diff != "" {
				t.Errorf("absent features (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutPerfTheSchemaSaysSo(t *testing.T) {
	t.Parallel()
	w := steady().without(api.ColContextSwitch, api.ColMinorFaults, api.ColMajorFaults, api.ColMigrations, api.ColTaskClock).window(8, every(2, 3)...)
	p, reason := of(w, spec())
	if p.Schema != api.SchemaAccounting || !slices.Equal(p.Flags, []tuning.Flag{tuning.FlagNoPerf}) || reason != tuning.ReasonNone {
		t.Errorf("schema %q, flags %v, reason %q", p.Schema, p.Flags, reason)
	}
	if got, want := p.Features["context_switches"], math.Log(101); math.Abs(got-want) > 1e-6 {
		t.Errorf("context switches %v from voluntary and involuntary, want %v", got, want)
	}
}

func TestWhenAProfileCanBeUsed(t *testing.T) {
	t.Parallel()
	noisy := steady().with(api.ColNodeBusy, 5)
	for name, c := range map[string]struct {
		window api.Window
		want   tuning.Reason
		flags  []tuning.Flag
		epochs int
	}{
		"not without samples":                     {api.Window{}, tuning.ReasonNoSamples, nil, 0},
		"not before the first mark":               {steady().window(9), tuning.ReasonWarmingUp, nil, 0},
		"not in warm-up":                          {steady().window(9, every(2, 1)...), tuning.ReasonWarmingUp, nil, 0},
		"not after one of two epochs":             {steady().window(9, every(2, 2)...), tuning.ReasonProfiling, nil, 1},
		"after two":                               {steady().window(9, every(2, 3)...), tuning.ReasonNone, nil, 2},
		"two short ones hold three snapshots":     {steady().window(0.2, every(0.1, 3)...), tuning.ReasonNone, nil, 2},
		"five of 0.3 s":                           {steady().window(3, every(0.3, 6)...), tuning.ReasonNone, nil, 5},
		"short ones without snapshots need more":  {steady().window(3, ended(1, 1.6), unsampled(2, 1.7), unsampled(3, 1.8), unsampled(4, 1.9)), tuning.ReasonProfiling, []tuning.Flag{tuning.FlagFewSamples}, 3},
		"not where others disturbed all":          {noisy.window(9, every(2, 3)...), tuning.ReasonPolluted, []tuning.Flag{tuning.FlagContended}, 0},
		"an ended job gives what it has":          {gone(steady().window(9, every(2, 2)...)), tuning.ReasonNone, nil, 1},
		"an ended job with two samples is marked": {gone(steady().window(0.2, every(0.1, 2)...)), tuning.ReasonNone, []tuning.Flag{tuning.FlagFewSamples}, 1},
		"an ended job that was disturbed":         {gone(noisy.window(9, every(2, 2)...)), tuning.ReasonPolluted, []tuning.Flag{tuning.FlagContended}, 0},
		"an ended job without readings behind the marks": {
			gone(steady().window(1, unsampled(1, 0.9), unsampled(2, 1.4))), tuning.ReasonNoSamples, nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, reason := of(c.window, spec())
			if reason != c.want || p.Epochs != c.epochs {
				t.Errorf("reason %q after %d epochs, want %q after %d", reason, p.Epochs, c.want, c.epochs)
			}
			if diff := cmp.Diff(c.flags, p.Flags); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			if reason == tuning.ReasonNone && p.Samples < 3 && !slices.Contains(p.Flags, tuning.FlagFewSamples) {
				t.Errorf("%d samples without a flag", p.Samples)
			}
		})
	}
}

func gone(w api.Window) api.Window { w.Job.Ended = true; return w }

func TestDisturbedEpochsAreLeftOutAndCounted(t *testing.T) {
	t.Parallel()
	w := steady().window(20, every(2, 7)...)
	s := spec()
	epochs := profile.Epochs(w, s)
	epochs[2].Polluted, epochs[4].Polluted = true, true
	p, reason := profile.Profile(w, epochs, s)
	if reason != tuning.ReasonNone || p.Epochs != 4 || p.Seconds != 8 {
		t.Errorf("reason %q, %d epochs, %v s; want 4 epochs of 8 s", reason, p.Epochs, p.Seconds)
	}
	epochs[4].Polluted = false
	if p, reason := profile.Profile(w, epochs, s); reason != tuning.ReasonNone || len(p.Flags) != 0 {
		t.Errorf("reason %q, flags %v where one of six was disturbed", reason, p.Flags)
	}
	if !slices.Equal(p.Flags, []tuning.Flag{tuning.FlagContended}) {
		t.Errorf("flags %v: two of six epochs were disturbed", p.Flags)
	}
}

// Short epochs, hardly two in a row undisturbed. More may come while the job runs. Of
// an ended job the whole is a profile, and two samples are not.
func TestWhereTooLittleIsLeftUndisturbedAnEndedJobIsProfiledAsAWhole(t *testing.T) {
	t.Parallel()
	w := steady().window(1.3, every(0.1, 13)...)
	s := spec()
	epochs := profile.Epochs(w, s)
	for i := range epochs {
		epochs[i].Polluted = i != 2
	}
	if p, reason := profile.Profile(w, epochs, s); reason == tuning.ReasonNone || !slices.Contains(p.Flags, tuning.FlagFewSamples) {
		t.Errorf("running: reason %q, flags %v", reason, p.Flags)
	}
	p, reason := profile.Profile(gone(w), epochs, s)
	if reason != tuning.ReasonNone || !slices.Equal(p.Flags, []tuning.Flag{tuning.FlagContended}) || p.Epochs != 12 {
		t.Errorf("ended: reason %q, flags %v, %d epochs; want all 12, contended", reason, p.Flags, p.Epochs)
	}
}

func TestEpochsOfOtherAttemptsAndSettingsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := steady().window(20, every(2, 7)...)
	s := spec()
	epochs := profile.Epochs(w, s)
	epochs[2].Attempt = 9
	epochs[3].Settings = epochs[3].Settings.With(tuning.Cores, tuning.Number(1))
	epochs[4].Settings = epochs[4].Settings.With("batch_size", tuning.Number(64))
	if p, reason := profile.Profile(w, epochs, s); reason != tuning.ReasonNone || p.Epochs != 4 {
		t.Errorf("reason %q, %d epochs, want 4", reason, p.Epochs)
	}
}

func TestOneStrangeWindowDoesNotCount(t *testing.T) {
	t.Parallel()
	w := steady().window(20, every(2, 7)...)
	for i, s := range w.Samples {
		if s.Time.After(at(8)) { // a burst of faults in epoch 5
			w.Samples[i].Values[api.ColMinorFaults] += 1e9
		}
	}
	p, _ := of(w, spec())
	if got, want := p.Features["minor_faults"], math.Log(1001); math.Abs(got-want) > 1e-6 {
		t.Errorf("minor faults %v, want %v", got, want)
	}
}

func TestCountersOfThreadsThatEndDoNotRunBackwards(t *testing.T) {
	t.Parallel()
	w := steady().window(20, every(2, 7)...)
	for i, s := range w.Samples {
		if s.Time.After(at(8)) { // a thread ended and took its count along
			w.Samples[i].Values[api.ColVoluntary] -= 1000
		}
	}
	p, _ := of(w, spec())
	if got, want := p.Features["voluntary_ratio"], math.Log(76.0/26.0); math.Abs(got-want) > 1e-6 {
		t.Errorf("voluntary ratio %v, want %v", got, want)
	}
}

func TestCountersThatSharedThePMUAreFlagged(t *testing.T) {
	t.Parallel()
	p, _ := of(steady().with(api.ColPerfRunning, 0.89).window(9, every(2, 3)...), spec())
	if !slices.Equal(p.Flags, []tuning.Flag{tuning.FlagMultiplexed}) {
		t.Errorf("flags %v", p.Flags)
	}
}

func TestFurtherPerfEventsAreFeaturesUnderTheirNames(t *testing.T) {
	t.Parallel()
	events := []string{"cycles", "instructions", "cpu/mem-loads/"}
	j := steady()
	for i, name := range events {
		j = j.with(api.PerfEvent(name), 1e6*float64(i+1))
	}
	j = j.with(api.PerfEnabled("cpu-1"), 1).with(api.PerfRunning("cpu-1"), 0.95)
	w := j.window(20, every(2, 7)...)
	// What is not known at a moment is not in its sample.
	for i, s := range w.Samples {
		if i%3 == 1 {
			delete(s.Values, api.PerfEvent("cycles"))
		}
	}
	p, reason := of(w, spec())
	if reason != tuning.ReasonNone || len(p.Flags) != 0 {
		t.Fatalf("reason %q, flags %v", reason, p.Flags)
	}
	if p.Schema != "perf/1:cpu/mem-loads/,cycles,instructions" {
		t.Errorf("schema %q", p.Schema)
	}
	for i, name := range events {
		if got, want := p.Features[name], math.Log1p(1e6*float64(i+1)/2); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	// An event that never counted while the job ran is missing, and the schema still
	// says that it is among those that are counted.
	for i, s := range w.Samples {
		if i > 0 {
			delete(s.Values, api.PerfEvent("cycles"))
		}
	}
	p, _ = of(w, spec())
	if _, ok := p.Features["cycles"]; ok || p.Schema != "perf/1:cpu/mem-loads/,cycles,instructions" {
		t.Errorf("cycles %v, schema %q", p.Features["cycles"], p.Schema)
	}
	// One group that shares its counters is enough.
	p, _ = of(j.with(api.PerfRunning("cpu-1"), 0.4).window(20, every(2, 7)...), spec())
	if !slices.Equal(p.Flags, []tuning.Flag{tuning.FlagMultiplexed}) {
		t.Errorf("flags %v", p.Flags)
	}
}

func TestAJobThatOnlyWaitsHasFiniteRates(t *testing.T) {
	t.Parallel()
	idle := steady().with(api.ColCPUSeconds, 0).with(api.ColUserSeconds, 0).with(api.ColSystemSeconds, 0).with(api.ColNodeBusy, 0.5)
	p, reason := of(idle.window(9, every(2, 3)...), spec())
	if reason != tuning.ReasonNone {
		t.Fatalf("reason %q", reason)
	}
	if got, want := p.Features["minor_faults"], math.Log(1+2000/0.01); math.Abs(got-want) > 1e-6 {
		t.Errorf("minor faults %v, want %v", got, want)
	}
	if _, ok := p.Features["system_share"]; ok {
		t.Error("a share of no CPU time")
	}
}

func TestRatesDoNotDependOnLengthOrLoad(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Float64Range(0.2, 5).Draw(t, "epoch seconds")
		scale := rapid.Float64Range(0.2, 1).Draw(t, "load")
		j := steady()
		for c, slope := range j.slopes {
			j = j.with(c, slope*scale)
		}
		p, reason := of(j.window(length*6+1, every(length, 6)...), profile.Spec{})
		q, _ := of(steady().window(8, every(2, 3)...), profile.Spec{})
		if reason != tuning.ReasonNone {
			t.Fatalf("reason %q", reason)
		}
		for _, name := range []string{"minor_faults", "context_switches", "voluntary_ratio", "system_share", "read_chars", "rss"} {
			if math.Abs(p.Features[name]-q.Features[name]) > 1e-3 {
				t.Fatalf("%s is %v in epochs of %v s at load %v, else %v", name, p.Features[name], length, scale, q.Features[name])
			}
		}
	})
}

func TestAJobOnGPUsHasASchemaOfItsOwn(t *testing.T) {
	t.Parallel()
	want := map[string]float64{"gpu_busy": 0.8, "gpu_watts": math.Log1p(300), "gpu_memory": math.Log1p(2048)}
	for _, c := range []struct {
		name   string
		job    job
		schema string
		lacks  string
	}{
		{"with the events of perf", onGPU(), "sw/1+gpu/1", ""},
		{"by accounting alone", onGPU().without(api.ColContextSwitch), "acct/1+gpu/1", ""},
		{"whose energy is unknown", onGPU().without(api.ColGPUJoules), "sw/1+gpu/1", "gpu_watts"},
		{"whose part of a GPU does not show how busy it is", onGPU().without(api.ColGPUBusy), "sw/1+gpu/1", "gpu_busy"},
	} {
		p, reason := of(c.job.window(8, every(2, 3)...), profile.Spec{})
		if reason != tuning.ReasonNone || p.Schema != c.schema {
			t.Errorf("%s: %s, schema %s, want %s", c.name, reason, p.Schema, c.schema)
		}
		for name, v := range want {
			if got, ok := p.Features[name]; ok == (name == c.lacks) || ok && math.Abs(got-v) > 1e-6 {
				t.Errorf("%s: %s is %g, %t, want %g", c.name, name, got, ok, v)
			}
		}
	}
	if p, _ := of(steady().window(8, every(2, 3)...), profile.Spec{}); p.Schema != "sw/1" || p.Features["gpu_busy"] != 0 {
		t.Errorf("a job without a GPU has schema %s and %v", p.Schema, p.Features)
	}
}

func TestFeaturesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("FEATURES.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for row := range strings.Lines(string(page)) {
		if cells := strings.Split(row, "|"); len(cells) > 3 && !strings.HasPrefix(cells[1], "-") && cells[1] != " feature " {
			documented[strings.TrimSpace(cells[1])] = true
		}
	}
	p, _ := of(onGPU().window(8, every(2, 3)...), spec())
	got := map[string]bool{}
	for name := range p.Features {
		got[name] = true
	}
	if diff := cmp.Diff(documented, got); diff != "" {
		t.Errorf("features of a job with every column (-FEATURES.md +profile):\n%s", diff)
	}
}

// The readings that come with the reports of a burst lie close together at its end.
func TestAWindowHoldsWholeReports(t *testing.T) {
	t.Parallel()
	reports := []api.Sample{ended(1, 2)}
	for n := range 4 {
		reports = append(reports, delivered(2+n, 6+float64(n)/1e4, 6+float64(n)/20))
	}
	got, reason := of(steady().window(9, reports...), spec())
	if reason != tuning.ReasonNone || got.Epochs != 4 || math.Abs(got.Seconds-4) > 0.01 {
		t.Errorf("%d epochs in %g s, %q; want the 4 epochs of 4 s", got.Epochs, got.Seconds, reason)
	}
}
