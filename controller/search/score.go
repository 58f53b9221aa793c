package search

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// Noise of one epoch. Trials are short, so their own spread is shared among them
// and joined with what is usual, which counts as much as priorDegrees epochs.
const (
	priorSD      = 0.05
	priorDegrees = 4
	noiseFloor   = 0.005
)

// spread is that of ln(seconds) of an epoch over all trials.
func spread(trials []tuning.Trial) (sd, degrees float64) {
	out := recur.Usual(priorSD, priorDegrees)
	for _, t := range trials {
		if t.Epochs > 1 && !t.Failed && t.SDLog >= 0 {
			out.AddVariance(t.SDLog*t.SDLog, float64(t.Epochs-1))
		}
	}
	return max(math.Sqrt(out.Variance()), noiseFloor), out.Degrees
}

// standardError is that of the score of a trial against the reference. Joules
// are taken to vary as the seconds do, and together with them.
func standardError(trial, reference tuning.Trial, p tuning.Policy, sd float64) float64 {
	n, m := float64(max(trial.Epochs, 1)), float64(max(reference.Epochs, 1))
	return p.Measure().Degree() * sd * math.Sqrt(1/n+1/m)
}

// Gain is what the best trial brings over the reference.
type Gain struct {
	Trial tuning.Trial `json:"trial"`

	// LogRatio is the score as measured. It flatters: the best of several was
	// chosen for its luck too.
	LogRatio float64 `json:"log_ratio"`

	// SE is the standard error of LogRatio.
	SE float64 `json:"se"`

	// Candidates is among how many trials the best was chosen.
	Candidates int `json:"candidates"`

	// Expected is LogRatio without the luck: raised by what the best of that many
	// trials without any effect would show, and never above 0.
	Expected float64 `json:"expected"`

	// Clear reports whether the gain is beyond the noise: with the error of 5 %
	// shared among the candidates (Bonferroni), LogRatio lies below 0.
	Clear bool `json:"clear"`
}

// Better picks, of the trials that the policy allows to be used and that learned what the
// reference did, the one with the lowest score. False: there is none but the reference. That the gain is
// above 0 or clear of noise is not implied; the caller looks at Gain.
func Better(trials []tuning.Trial, reference tuning.Trial, p tuning.Policy) (Gain, bool) {
	sd, degrees := spread(trials)
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
	best.Expected = min(best.LogRatio+luck(best.Candidates)*best.SE, 0)
	best.Clear = best.LogRatio < -recur.Beyond(degrees, best.Candidates)*best.SE
	return best, true
}

// luck is the expected largest of m standard normal values, by Blom's formula
// Φ⁻¹((m-3/8)/(m+1/4)) (Blom, "Statistical Estimates and Transformed
// Beta-Variables", 1958); 0 for a single one.
func luck(m int) float64 {
	return distuv.UnitNormal.Quantile((float64(m) - 0.375) / (float64(m) + 0.25))
}

// likely is how many standard errors beyond the owner's slowdown limit a trial has to be for
// it to be so in nine of ten cases.
const likely = 1.2816

// Refusal says why the owner would not accept a trial, or ReasonNone: it did not fail, is not
// likely to be slower than allowed, changes what the job learns only under a quality guard, and
// its quality, where both are known, is not worse than the guard allows. Two
// trials of one job are at different epochs, where quality has usually risen, so
// that this catches only what spoils the result at once; verify compares at
// equal epochs.
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
	if p.Quality == nil || trial.Quality == nil || reference.Quality == nil {
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
