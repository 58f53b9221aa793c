package preview

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/report"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// Range is a number that is expected, with the bounds that it lies between nine times of ten.
type Range struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Spread is the range of what was measured; nil: nothing was.
func Spread(measured []float64) *Range {
	if len(measured) == 0 {
		return nil
	}
	m := slices.Sorted(slices.Values(measured))
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.LinInterp, m, nil) }
	return &Range{stat.Mean(m, nil), quantile(0.05), quantile(0.95)}
}

// Estimate is what an epoch takes under the settings of the job file.
type Estimate struct {
	Seconds *Range  `json:"seconds,omitempty"` // nil: unknown
	Joules  *Range  `json:"joules,omitempty"`  // nil: unknown
	Cores   float64 `json:"cores,omitempty"`   // 0: unknown
	Start   float64 `json:"start,omitempty"`   // seconds from the submission of a job until it runs

	Unenforced bool `json:"unenforced,omitempty"` // the joules are modelled, and the site lets such enforce no budget
}

// Rung is an epoch at which trials are compared; the last is a whole trial.
type Rung struct {
	Epoch  int   `json:"epoch"`
	Trials Range `json:"trials"` // that come so far
	Most   int   `json:"most"`   // if every trial is better than all before it
}

// Preview is what a search will use.
type Preview struct {
	Rungs     []Rung   `json:"rungs"`            // none: how many epochs a trial has is unknown
	Epochs    *Range   `json:"epochs,omitempty"` // of all trials; nil: unknown
	Most      int      `json:"most_epochs,omitempty"`
	Seconds   *Range   `json:"seconds,omitempty"` // from begin to end; nil: unknown
	Joules    *Range   `json:"joules,omitempty"`  // nil: unknown
	CoreHours *Range   `json:"core_hours,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// spread is how many standard deviations lie between the middle and a bound of a Range.
const spread = 1.645

// at is a number of the range, that many standard deviations from its middle; 0 where it is unknown.
func (r *Range) at(deviations float64) float64 {
	if r == nil {
		return 0
	}
	if !(r.Low > 0) || !(r.High > r.Low) {
		return r.Mean
	}
	return r.Mean * math.Exp(deviations*math.Log(r.High/r.Low)/(2*spread))
}

// Of previews a search. Its randomness is drawn from the seed of the plan.
func Of(p searcher.Plan, e Estimate) (Preview, error) {
	out, n := Preview{Rungs: []Rung{}}, p.Trials
	if p.Target != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("The search ends earlier for trials that reach %g.", *p.Target))
	}
	if p.Epochs <= 0 {
		out.Notes = append(out.Notes, "The epochs of a trial are unknown until its first job reports them: set epochs= in the search block.")
		return out, nil
	}
	p.Target, p.History, p.Settings = nil, nil, make([]tuning.Settings, n)
	switch p.Method { // which trials begin makes no difference here
	case tuning.GP:
		p.Method = tuning.Random
	case tuning.ASHAGP:
		p.Method = tuning.ASHA
	default:
	}
	if e.Seconds == nil && (p.Time > 0 || p.CoreHours > 0) {
		p.Time, p.CoreHours = 0, 0
		out.Notes = append(out.Notes, "How long an epoch takes is unknown, so budgets of time and core-hours are left out.")
	}
	if p.Energy > 0 && e.Unenforced {
		p.Energy = 0
		out.Notes = append(out.Notes, "The budget of energy is not enforced: the joules are modelled, not measured.")
	}
	const least, most, together = 20, 100, 10_000 // simulations, and the trials of all of them
	sims := make([]*searcher.Searcher, min(max(together/max(n, 1), least), most))
	for i := range sims {
		var err error
		if sims[i], err = simulate(p, e, rand.New(rand.NewPCG(p.Seed, uint64(i)))); err != nil {
			return Preview{}, err
		}
	}
	for _, epoch := range p.Rungs() {
		out.Rungs = append(out.Rungs, Rung{Epoch: epoch, Most: n, Trials: over(sims, func(t *searcher.Trial) float64 {
			if t.Last().Epoch >= epoch {
				return 1
			}
			return 0
		})})
	}
	out.Most = n * p.Epochs
	out.Epochs = new(over(sims, func(t *searcher.Trial) float64 { return float64(t.Last().Epoch) }))
	if e.Seconds != nil {
		out.Seconds = new(summary(sims, func(s *searcher.Searcher) (end float64) {
			for _, t := range s.Trials {
				end = max(end, t.Last().At)
			}
			return end
		}))
		if e.Cores > 0 {
			out.CoreHours = new(over(sims, func(t *searcher.Trial) float64 { return t.Last().CoreHours }))
		}
	}
	if e.Seconds != nil && e.Start == 0 {
		out.Notes = append(out.Notes, "The time excludes job starts and queue waits, which are not known yet.")
	}
	if e.Joules != nil {
		out.Joules = new(summary(sims, func(s *searcher.Searcher) float64 { j, _, _ := s.Spent(); return j }))
	}
	if early := summary(sims, func(s *searcher.Searcher) float64 { return 100 * float64(min(len(s.Closing), 1)) }); early.Mean > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("A budget ends %.0f %% of such searches early.", early.Mean))
	}
	return out, nil
}

// simulate plays a search whose trials differ by luck alone. More than half of the luck of a trial stays
// with it, the rest is drawn at each epoch: its ranks at two rungs are alike, not equal.
func simulate(p searcher.Plan, e Estimate, rng *rand.Rand) (*searcher.Searcher, error) {
	doubt := rng.NormFloat64() // about the estimate, which all trials share
	epoch := Epoch{Seconds: e.Seconds.at(doubt), Cores: e.Cores}
	if e.Seconds == nil {
		epoch.Seconds = 1
	}
	if e.Joules != nil {
		epoch.Joules = new(e.Joules.at(doubt))
	}
	luck := make([]float64, p.Search.Trials)
	for i := range luck {
		luck[i] = rng.NormFloat64()
	}
	return Play(p, Cluster{
		Start: e.Start,
		Every: p.Energy > 0 || p.Time > 0 || p.CoreHours > 0, // a budget is checked after each epoch
		Epoch: func(t *searcher.Trial, _ int) Epoch {
			epoch.Value = 1.2*luck[t.Number-1] + rng.NormFloat64()
			return epoch
		},
	})
}

// over sums a number up over the trials of each search.
func over(sims []*searcher.Searcher, of func(*searcher.Trial) float64) Range {
	return summary(sims, func(s *searcher.Searcher) float64 {
		return tuning.Sum(s.Trials, func(t searcher.Trial) float64 { return of(&t) })
	})
}

func summary(sims []*searcher.Searcher, of func(*searcher.Searcher) float64) Range {
	return *Spread(tuning.Each(sims, of))
}

// Text prints the preview for people.
func Text(p Preview) string {
	var b strings.Builder
	if p.Epochs != nil {
		table := report.List([]string{"EPOCHS", "TRIALS THAT GET SO FAR", "AT MOST"}, p.Rungs, func(r Rung) []string {
			return []string{strconv.Itoa(r.Epoch), r.Trials.text(whole), strconv.Itoa(r.Most)}
		})
		fmt.Fprintf(&b, "%s\nIn all %s epochs, at most %d.\n", table, p.Epochs.text(whole), p.Most)
	}
	for _, line := range []struct {
		name string
		of   *Range
		form func(float64) string
	}{
		{"Time", p.Seconds, report.Duration},
		{"Energy", p.Joules, report.Joules},
		{"Core-hours", p.CoreHours, func(v float64) string { return fmt.Sprintf("%.3g", v) }},
	} {
		text := "unknown"
		if line.of != nil {
			text = line.of.text(line.form)
		}
		fmt.Fprintf(&b, "%s: %s\n", line.name, text)
	}
	if p.Epochs != nil && p.Epochs.Low < p.Epochs.High || p.Seconds != nil {
		b.WriteString("The ranges in brackets hold for nine of ten searches.\n")
	}
	for _, n := range p.Notes {
		b.WriteString(n + "\n")
	}
	return b.String()
}

func (r Range) text(form func(float64) string) string {
	mean, low, high := form(r.Mean), form(r.Low), form(r.High)
	if low == high {
		return mean
	}
	return fmt.Sprintf("%s (%s to %s)", mean, low, high)
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }
