package tuning

import (
	"math"
	"slices"
	"time"
)

// Disturbed epochs count this share of a clean one. Where a setting has no clean epoch, the others
// count only if they are this many times as long as the reference.
const (
	disturbedWeight = 0.25
	harmful         = 1.5
)

// TrialsOf summarises epochs into one Trial per setting, in the order of first use. Own marks the
// reference.
//
// A reference is made only of clean epochs: no warm-up, no disturbance, no cut. So is every other
// trial, but harm is never noise: disturbed and cut epochs count, with less weight, where they make
// a setting worse. A setting without a clean epoch has a trial with Epochs 0 only where its epochs,
// warm-up included, are far longer than the reference's.
//
// A job that grows slower or faster by itself does so under any settings: seconds and joules are as
// of its latest epoch, by the trend of those under the same settings.
func TrialsOf(epochs []Epoch, own Settings) []Trial {
	var order []Settings
	groups := map[string]*epochGroup{}
	keys := keysOf(epochs)
	now, slopeSD := asOfNow(epochs, keys)
	for i, e := range now {
		if e.Seconds() <= 0 {
			continue
		}
		g := groups[keys[i]]
		if g == nil {
			g = &epochGroup{}
			groups[keys[i]] = g
			order = append(order, e.Settings)
		}
		g.add(e)
		g.trend += math.Log(epochs[i].Seconds() / e.Seconds())
	}
	reference, at := 0.0, math.NaN()
	if g := groups[own.Key()]; g != nil && len(g.clean) > 0 {
		reference, _, _ = means(g.clean)
		at = g.at()
	}
	trials := make([]Trial, 0, len(order))
	for _, s := range order {
		g := groups[s.Key()]
		if t, ok := g.trial(s, s.Equal(own), reference); ok {
			if away := math.Abs(g.at() - at); away > 0 {
				t.TrendSD = away * slopeSD
			}
			t.Trend = g.trend / float64(len(g.clean)+len(g.disturbed)+len(g.warmup))
			trials = append(trials, t)
		}
	}
	return trials
}

func keysOf(epochs []Epoch) []string {
	out := make([]string, len(epochs))
	for i, e := range epochs {
		if i > 0 && e.Settings.Equal(epochs[i-1].Settings) {
			out[i] = out[i-1]
		} else {
			out[i] = e.Settings.Key()
		}
	}
	return out
}

// trendSD is how much an epoch usually differs from the one before by the job's own trend. More
// than trendMost is not a trend: something else happened.
const (
	trendSD     = 0.003
	trendEpochs = 6
	trendMost   = 0.4
)

// asOfNow scales epochs to the length that they would have now, by the analysis of covariance
// (Fisher, "Statistical Methods for Research Workers", 1932) as a ridge with a prior around no
// trend. slopeSD is what remains unknown of the trend, per epoch, in natural logs.
func asOfNow(epochs []Epoch, keys []string) (out []Epoch, slopeSD float64) {
	type group struct{ n, x, y, xx, xy, yy float64 }
	groups := map[string]group{}
	first, latest := math.MaxInt, 0
	for i, e := range epochs {
		if e.Cut || !e.Counts() {
			continue
		}
		first, latest = min(first, e.Number), max(latest, e.Number)
		x, y := float64(e.Number), math.Log(e.Seconds())
		g := groups[keys[i]]
		groups[keys[i]] = group{g.n + 1, g.x + x, g.y + y, g.xx + x*x, g.xy + x*y, g.yy + y*y}
	}
	if latest-first < trendEpochs {
		return epochs, trendSD
	}
	within, covary, around, spare := 0.0, 0.0, 0.0, 0.0
	for _, g := range groups {
		within += g.xx - g.x*g.x/g.n
		covary += g.xy - g.x*g.y/g.n
		around += g.yy - g.y*g.y/g.n
		spare += g.n - 1
	}
	if spare < trendEpochs || !(within > 0) {
		return epochs, trendSD
	}
	noise := max(epochSD*epochSD, (around-covary*covary/within)/(spare-1)) // variance around the line
	known := within + noise/(trendSD*trendSD)                              // the precision of the slope, times noise
	slope := covary / known
	out = slices.Clone(epochs)
	for i, e := range out {
		factor := math.Exp(min(max(slope*float64(latest-e.Number), -trendMost), trendMost))
		out[i].End = e.Start.Add(time.Duration(float64(e.End.Sub(e.Start)) * factor))
		if e.Joules != nil {
			out[i].Joules = new(Joules(factor) * *e.Joules)
		}
	}
	return out, math.Sqrt(noise / known)
}

type epochGroup struct {
	clean, disturbed, warmup []Epoch
	trend                    float64 // sum of the log ratios of its epochs to as long as they would be now
}

// at is the mean number of the clean epochs; NaN: there are none.
func (g *epochGroup) at() float64 {
	return Sum(g.clean, func(e Epoch) float64 { return float64(e.Number) }) / float64(len(g.clean))
}

func (g *epochGroup) add(e Epoch) {
	switch {
	case e.Warmup && !e.Cut:
		g.warmup = append(g.warmup, e)
	case e.Polluted, e.Cut:
		g.disturbed = append(g.disturbed, e)
	default:
		g.clean = append(g.clean, e)
	}
}

// reference is the seconds of the owner's, 0 = unknown.
func (g *epochGroup) trial(s Settings, own bool, reference float64) (Trial, bool) {
	if len(g.clean) == 0 {
		worse := slices.Concat(g.disturbed, g.warmup)
		if own || reference == 0 || len(worse) == 0 {
			return Trial{}, false
		}
		t := Trial{Settings: s, Disturbed: len(worse)}
		t.Seconds, t.Joules, t.Source = means(worse)
		return t, t.Seconds > harmful*reference
	}
	t := Trial{
		Settings: s, Epochs: len(g.clean), Source: g.clean[0].Source, Reference: own, Quality: Last(g.clean).Quality, QualityOf: Last(g.clean).Number,
	}
	t.Seconds, t.Joules, _ = means(g.clean)
	t.SDLog = sd(Each(g.clean, func(e Epoch) float64 { return math.Log(e.Seconds()) }))
	if own || len(g.disturbed) == 0 {
		return t, true
	}
	n, m := float64(len(g.clean)), disturbedWeight*float64(len(g.disturbed))
	seconds, joules, source := means(g.disturbed)
	if mixed := (n*t.Seconds + m*seconds) / (n + m); mixed > t.Seconds {
		t.Seconds, t.Disturbed = mixed, len(g.disturbed)
	}
	if t.Joules != nil && joules != nil && source == t.Source {
		mixed := (Joules(n)**t.Joules + Joules(m)**joules) / Joules(n+m)
		*t.Joules = max(*t.Joules, mixed)
	}
	return t, true
}

// joules are nil where an epoch lacks them or has them from another source than the first.
func means(epochs []Epoch) (seconds float64, joules *Joules, source string) {
	var sum Joules
	measured := true
	source = epochs[0].Source
	for _, e := range epochs {
		seconds += e.Seconds() / float64(len(epochs))
		if e.Joules == nil || e.Source != source {
			measured = false
			continue
		}
		sum += *e.Joules / Joules(len(epochs))
	}
	if measured {
		joules = &sum
	}
	return seconds, joules, source
}

func sd(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean := Sum(x, func(v float64) float64 { return v / float64(len(x)) })
	sum := Sum(x, func(v float64) float64 { return (v - mean) * (v - mean) })
	return math.Sqrt(sum / float64(len(x)-1))
}

// Weight is how many clean epochs a trial is worth.
func (t Trial) Weight() float64 {
	return float64(t.Epochs) + disturbedWeight*float64(t.Disturbed)
}

// epochSD is the usual log difference between epochs, as long as few were measured.
const epochSD = 0.05

// EpochSD is the spread of the epochs of a job; what is usual counts as four more epochs.
func EpochSD(trials ...Trial) float64 {
	sd, _ := EpochSpread(trials)
	return sd
}

// EpochSpread is EpochSD with its degrees of freedom.
func EpochSpread(trials []Trial) (sd, degrees float64) {
	squares, degrees := 4*epochSD*epochSD, 4.0
	for _, t := range trials {
		if t.Epochs > 1 && t.SDLog >= 0 {
			squares += float64(t.Epochs-1) * t.SDLog * t.SDLog
			degrees += float64(t.Epochs - 1)
		}
	}
	return math.Sqrt(squares / degrees), degrees
}

// RatioError is the standard error of the log ratio of a trial to the reference.
func (t Trial) RatioError(reference Trial, sd float64) float64 {
	return math.Hypot(sd*math.Sqrt(1/max(t.Weight(), 0.25)+1/max(reference.Weight(), 1)), t.TrendSD)
}

// Reference returns the trial of the owner's own settings.
func Reference(trials []Trial) (Trial, bool) {
	return First(trials, func(t Trial) bool { return t.Reference })
}

// Quantile returns the q-quantile of x, between order statistics; 0 of none.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	at := min(max(q, 0), 1) * float64(len(s)-1)
	i := min(int(at), len(s)-2)
	if i < 0 {
		return s[0]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// Median is the middle of numbers; 0 of none.
func Median[T time.Duration | float64](x []T) T {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Finite reports whether v is a number that can be stored.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Each returns the results of a function over a list; nil for an empty one.
func Each[T, U any](list []T, of func(T) U) (out []U) {
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

// Last is the last of a list; the zero value where it has none.
func Last[T any](list []T) (out T) {
	if n := len(list); n > 0 {
		return list[n-1]
	}
	return out
}

// Count returns for how many of a list so is true.
func Count[T any](list []T, so func(T) bool) (n int) {
	for _, x := range list {
		if so(x) {
			n++
		}
	}
	return n
}

// Sum adds up a number of each of a list.
func Sum[T any, N int | float64](list []T, of func(T) N) (sum N) {
	for _, x := range list {
		sum += of(x)
	}
	return sum
}

// First returns the first of a list for which so is true.
func First[T any](list []T, so func(T) bool) (out T, found bool) {
	if i := slices.IndexFunc(list, so); i >= 0 {
		return list[i], true
	}
	return out, false
}

// emptier is how many times as many jobs of a kind ran on a node where a comparison would take the
// gain of an emptier node for that of a setting.
const emptier = 1.4

// InCompany returns epochs as they can be compared where jobs of one kind run side by side on a node all
// the time. Siblings that crowd an epoch then do not disturb it, unless the setting has more cores than the
// owner's, which it takes from the siblings. An epoch under another setting than the owner's counts as
// disturbed where clearly fewer siblings ran than under the owner's.
func InCompany(epochs []Epoch, own Settings) []Epoch {
	if !slices.ContainsFunc(epochs, func(e Epoch) bool { return e.Siblings > 0 }) {
		return epochs
	}
	var usual []int // siblings
	for _, e := range epochs {
		if !e.Warmup && e.Settings.Equal(own) {
			usual = append(usual, e.Siblings)
		}
	}
	slices.Sort(usual)
	out := slices.Clone(epochs)
	for i, e := range out {
		if e.Crowded && e.Siblings > 0 && e.Settings[Cores].Float() <= own[Cores].Float() {
			out[i].Polluted = false
		}
		if n := len(usual); n > 0 && !e.Settings.Equal(own) && emptier*float64(1+e.Siblings) < float64(1+usual[n/2]) {
			out[i].Polluted = true
		}
	}
	return out
}
