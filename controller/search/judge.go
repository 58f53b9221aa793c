package search

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// Joules are taken to vary as the seconds do, and together with them.
func standardError(trial, reference tuning.Trial, p tuning.Policy, sd float64) float64 {
	return p.Measure().Degree() * trial.RatioError(reference, sd)
}

// Gain is what the best trial brings over the reference.
type Gain struct {
	Trial      tuning.Trial `json:"trial"`
	LogRatio   float64      `json:"log_ratio"`  // as measured: the best of several was chosen for its luck too
	SE         float64      `json:"se"`         // of LogRatio
	Candidates int          `json:"candidates"` // among how many trials the best was chosen

	// Expected is LogRatio without the luck: raised by what the best of that many
	// trials without any effect would show, and never above 0.
	Expected float64 `json:"expected"`

	// Clear reports whether the gain is beyond the noise: with the error of 5 %
	// shared among the candidates (Bonferroni), LogRatio lies below 0.
	Clear bool `json:"clear"`
}

// Better picks the trial with the lowest score, which need be no gain, of those that the policy
// allows and that learned what the reference did.
func Better(trials []tuning.Trial, reference tuning.Trial, p tuning.Policy) (Gain, bool) {
	sd, degrees := tuning.EpochSpread(trials)
	var best Gain
	for _, t := range trials {
		v, ok := t.LogRatio(reference, p.Measure())
		if !ok || t.Reference || t.Epochs < 1 || Refusal(t, reference, p) != tuning.ReasonNone || p.Relearns(reference.Settings, t.Settings) {
			continue
		}
		best.Candidates++
		if best.Candidates == 1 || v < best.LogRatio || v == best.LogRatio && t.Settings.Key() < best.Trial.Settings.Key() {
			best.Trial, best.LogRatio = t, v
		}
	}
	if best.Candidates == 0 {
		return Gain{}, false
	}
	best.SE = standardError(best.Trial, reference, p, sd)
	// The expected largest of m standard normal values is Φ⁻¹((m-3/8)/(m+1/4)): Blom,
	// "Statistical Estimates and Transformed Beta-Variables", 1958.
	luck := distuv.UnitNormal.Quantile((float64(best.Candidates) - 0.375) / (float64(best.Candidates) + 0.25))
	best.Expected = min(best.LogRatio+luck*best.SE, 0)
	best.Clear = best.LogRatio < -recurring.Beyond(degrees, best.Candidates)*best.SE
	return best, true
}

// likely is the standard errors beyond the slowdown limit that are right in nine of ten cases.
const likely = 1.2816

// Refused returns why the owner would not accept a setting, as far as it was tried.
func Refused(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason {
	reference, measured := tuning.Reference(trials)
	t, tried := tuning.First(trials, func(t tuning.Trial) bool { return !t.Reference && t.Settings.Equal(s) })
	if !measured || !tried {
		return tuning.ReasonNone
	}
	return Refusal(t, reference, p)
}

// Refusal returns why the owner would not accept a trial. Two trials of one job are at different
// epochs, where quality has usually risen, so that this catches only what spoils the result at
// once, and says nothing of the quality of an earlier epoch; verify compares at equal epochs.
func Refusal(trial, reference tuning.Trial, p tuning.Policy) tuning.Reason {
	if trial.Failed || !(trial.Seconds > 0) || !(reference.Seconds > 0) {
		return tuning.ReasonFailed
	}
	slower := math.Log(trial.Seconds / reference.Seconds)
	if p.MaxSlowdown > 0 && slower-likely*trial.RatioError(reference, tuning.EpochSD(trial, reference)) > math.Log(p.MaxSlowdown) {
		return tuning.ReasonSlower
	}
	if p.Quality == nil && p.Relearns(reference.Settings, trial.Settings) {
		return tuning.ReasonNoQualityGuard
	}
	if p.Quality == nil || trial.Quality == nil || reference.Quality == nil || trial.QualityOf < reference.QualityOf {
		return tuning.ReasonNone
	}
	worse := *reference.Quality - *trial.Quality
	if p.Quality.Direction == "min" {
		worse = -worse
	}
	if worse > p.Quality.MaxLoss*math.Abs(*reference.Quality) {
		return tuning.ReasonQualityLost
	}
	return tuning.ReasonNone
}

const (
	// ownEnds is how many runs under the owner's hyperparameters must have ended, since seeds
	// differ.
	ownEnds = 3

	triedEnds = 2

	// guardFloor is the least spread of the final quality, as a share of what may be lost: runs of
	// one seed end alike.
	guardFloor = 0.25
)

// guard is what whole runs of a kind ended with, by what they learned.
type guard struct {
	quality tuning.Quality
	own     string
	ends    map[string][]float64
}

// verdict is what the guard says about settings.
type verdict struct {
	// t is how many standard errors their mean final quality is better than the worst that is
	// accepted; NaN: not known.
	t      float64
	kept   bool // it is better, beyond doubt
	broken bool // it is worse, beyond doubt
}

// of holds the mean final quality under some settings against that under the owner's: the test of
// non-inferiority of two normal means by their ratio (D. Hauschke, M. Kieser, E. Diletti, M. Burke,
// Statistics in Medicine 18, 1999), one-sided at 95 %, the error shared among all settings that
// were tried (Bonferroni).
func (g guard) of(settings string) verdict {
	if settings == g.own {
		return verdict{kept: true}
	}
	own, ends := g.ends[g.own], g.ends[settings]
	if len(own) == 0 || len(ends) == 0 { // as of most points, so that it comes first
		return verdict{t: math.NaN()}
	}
	var spread recurring.Spread
	for _, key := range slices.Sorted(maps.Keys(g.ends)) {
		spread.Add(g.ends[key])
	}
	if spread.Degrees == 0 {
		return verdict{t: math.NaN()}
	}
	better, usual := 1.0, stat.Mean(own, nil)
	if g.quality.Direction == "min" {
		better = -1
	}
	keep := 1 - better*math.Copysign(g.quality.MaxLoss, usual)
	sd := max(math.Sqrt(spread.Variance()), guardFloor*g.quality.MaxLoss*math.Abs(usual))
	out := verdict{t: better * (stat.Mean(ends, nil) - keep*usual) / (sd * math.Sqrt(1/float64(len(ends))+keep*keep/float64(len(own))))}
	beyond := recurring.Beyond(spread.Degrees, len(g.ends)-1)
	out.kept, out.broken = len(ends) >= triedEnds && out.t > beyond, out.t < -beyond
	return out
}

func (h *history) watch() {
	h.guard = guard{own: h.learning(h.Own), ends: map[string][]float64{}}
	if h.Policy.Quality == nil {
		return
	}
	h.guard.quality = *h.Policy.Quality
	for _, p := range h.Past {
		if p.End == tuning.EndReached && p.Quality != nil && len(p.Began) > 0 && h.comparable(p.Began) {
			key := h.learning(p.Began)
			h.guard.ends[key] = append(h.guard.ends[key], *p.Quality)
		}
	}
}

func (h *history) learning(s tuning.Settings) string {
	out := tuning.Settings{}
	for _, d := range h.Space {
		if d.Learns {
			out[d.Knob] = d.of(s)
		}
	}
	return out.Key()
}

// length is how many epochs a run took to be done, or to reach the guard's target. 0: unknown. It
// missed the target where it ended without, under other hyperparameters than the owner's.
func (h *history) length(p tuning.PastRun) (epochs float64, missed bool) {
	if p.End != tuning.EndReached || len(p.Began) == 0 {
		return 0, false
	}
	others := h.learning(p.Began) != h.guard.own
	epochs = float64(p.Epochs)
	if q := h.Policy.Quality; q != nil && q.Target != nil {
		if p.Reached == nil || p.Reached.Target != *q.Target {
			return 0, false
		}
		epochs = float64(p.Reached.Epochs)
		missed = others && epochs == 0
	}
	if others && p.Quality == nil {
		epochs = 0
	}
	return epochs, missed
}

// Breaks reports whether the runs of the kind ended worse under s than the guard allows, at 95 %.
func (r Returning) Breaks(s tuning.Settings) bool {
	h := r.history()
	return h.guard.of(h.learning(s)).broken
}
