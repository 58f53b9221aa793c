package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// What is advised.
type What string

// The kinds of advice.
const (
	TimeLimit What = "time-limit" // seconds
	Nice      What = "nice"       // above the owner's
	Affinity  What = "affinity"   // seconds of a run on nodes of another class, and of the one that is preferred
	Packing   What = "packing"    // cores that the job and another use together; for people alone
)

// Enough is how many ended jobs a forecast needs.
const Enough = 20

// Forecast is how long a job will run, in seconds from its start.
type Forecast struct {
	Samples  int // ended jobs that it is based on
	Median   float64
	Quantile func(q float64) float64
	Busy     float64 // share of its cores that such jobs kept busy; 0 = unknown
	Runs     Runs    // of such jobs that succeeded
}

// Job is a job that waits or runs, with the numbers that it has now.
type Job struct {
	driver.Job

	Own      time.Duration // the time limit that its owner asked for; 0 = none
	Ran      time.Duration // since it began
	Forecast Forecast
	Site     tuning.Site
}

func (j Job) running() bool { return j.State == driver.Running }

// State is how far advice is.
type State string

// The states.
const (
	Recommended State = "recommended" // the scheduler is not asked
	Held        State = "held"        // there is no advice
	Intended    State = "intended"    // written down; it is unknown whether the scheduler has it
	Applied     State = "applied"
	Refused     State = "refused"   // for good
	Extended    State = "extended"  // the job outlived the lower time limit, and has its owner's again
	Withdrawn   State = "withdrawn" // the job has its owner's numbers again
)

// Item is one piece of advice, or why there is none.
type Item struct {
	Job       driver.JobID `json:"job"`
	Name      string       `json:"name"`
	Owner     string       `json:"owner"`
	Partition string       `json:"partition,omitempty"`
	What      What         `json:"what"`
	From      float64      `json:"from"`
	To        float64      `json:"to"`
	With      driver.JobID `json:"with,omitempty"`  // the other job of a pair
	Class     string       `json:"class,omitempty"` // of the nodes that it is to prefer
	Why       string       `json:"why"`
	Rule      string       `json:"rule"` // KEY=VALUE (PLACE), of the site's policy
	State     State        `json:"state"`
	Detail    string       `json:"detail,omitempty"` // of a refusal
}

// For returns the advice about jobs, in their order: all Recommended or Held.
func For(jobs []Job) (out []Item) {
	for _, j := range jobs {
		for _, rule := range []func(Job) (Item, bool){limit, nice, affinity} {
			if i, ok := rule(j); ok {
				out = append(out, i.about(j))
			}
		}
	}
	return append(out, pack(jobs)...)
}

func (i Item) about(j Job) Item {
	i.Job, i.Name, i.Owner, i.Partition, i.State = j.ID, j.Name, j.Owner, j.Partition, cmp.Or(i.State, Recommended)
	return i
}

func limit(j Job) (Item, bool) {
	s, f, has := j.Site, j.Forecast, j.Resources.TimeLimit
	i := Item{What: TimeLimit, From: has.Seconds(), To: has.Seconds(), Rule: rule(s, "advice_quantile", s.AdviceQuantile)}
	switch held := doubt(f); {
	case j.Own == 0, has == 0:
		return i, false // without a limit of its owner there is nothing to return to
	case j.running():
		lead := max(s.AdviceMargin/2, 30*time.Second)
		i.To, i.Rule = j.Own.Seconds(), rule(s, "advice_margin", s.AdviceMargin)
		i.Why = fmt.Sprintf("it has run for %v and outlives its forecast: its owner's limit returns %v before the lower one", j.Ran.Round(time.Second), lead)
		return i, has < j.Own && has-j.Ran <= lead
	case has < j.Own, s.Advice == tuning.AdviceOff:
		return i, false // it was lowered before, or is not to be
	case held != "":
		i.State, i.Why = Held, held
		return i, true
	}
	q := f.Quantile(s.AdviceQuantile)
	want := 60 * math.Ceil((q+s.AdviceMargin.Seconds())/60) // Slurm counts minutes
	i.Why = fmt.Sprintf("%g of jobs like it end within %.0f s (%d jobs seen), plus %v margin", s.AdviceQuantile, q, f.Samples, s.AdviceMargin)
	if i.State = Held; want < j.Own.Seconds() { // what is not known is not less
		i.State, i.To = Recommended, want
	}
	return i, true
}

// fullNice is the expected work, in core-hours or GPU-hours, that gets the site's full nice value.
const fullNice = 1000

// nice advises how much a waiting job gives way. It grows with the logarithm of the work, so
// that it stays the same while other jobs come and go, and a job is advised once.
func nice(j Job) (Item, bool) {
	s := j.Site
	i := Item{What: Nice, Rule: rule(s, "advice_nice", s.AdviceNice)}
	if s.AdviceNice == 0 || s.Advice == tuning.AdviceOff || j.running() || doubt(j.Forecast) != "" {
		return i, false
	}
	units, unit := j.Resources.Cores, "core"
	if j.Resources.GPUs > 0 {
		units, unit = j.Resources.GPUs, "GPU"
	}
	work := j.Forecast.Median / 3600 * float64(max(units, 1))
	i.To = math.Round(float64(s.AdviceNice) * min(1, math.Log1p(work)/math.Log1p(fullNice)))
	i.Why = fmt.Sprintf("%.3g %s-hours are expected of it, by %d jobs like it", work, unit, j.Forecast.Samples)
	return i, i.To > 0
}

// affinity advises the class of nodes on which jobs like it ended sooner.
func affinity(j Job) (Item, bool) {
	s := j.Site
	i := Item{What: Affinity, Rule: rule(s, "advice", s.Advice)}
	if s.Advice == tuning.AdviceOff || j.running() || j.Prefers != "" {
		return i, false
	}
	i.Class, i.To, i.From = j.Forecast.Runs.fastest()
	i.Why = fmt.Sprintf("%d jobs like it ended sooner on nodes of class %s than on others, at %g confidence", len(j.Forecast.Runs[i.Class]), i.Class, confidence)
	return i, i.Class != ""
}

// idle is how much of their cores jobs may use that are worth packing.
const idle = 0.5

// pack pairs waiting jobs of one owner that together need the cores of one: Slurm lets jobs share
// cores where their owner oversubscribes them.
func pack(jobs []Job) (out []Item) {
	cores := func(j Job) int { return j.Resources.Cores }
	used := func(j Job) float64 { return j.Forecast.Busy * float64(cores(j)) }
	loose := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool {
		busy := j.Forecast.Busy
		return j.running() || j.Site.Advice == tuning.AdviceOff || j.Resources.GPUs > 0 || cores(j) < 2 || busy <= 0 || busy > idle || doubt(j.Forecast) != ""
	})
	slices.SortStableFunc(loose, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Partition, b.Partition), cmp.Compare(cores(a), cores(b)))
	})
	for k := 1; k < len(loose); k++ {
		a, b := loose[k-1], loose[k]
		most := float64(max(cores(a), cores(b)))
		if a.Owner != b.Owner || a.Partition != b.Partition || used(a)+used(b) > most {
			continue
		}
		out = append(out, Item{
			What: Packing, With: b.ID, From: float64(cores(a) + cores(b)), To: most, Rule: rule(a.Site, "advice", a.Site.Advice),
			Why: fmt.Sprintf("jobs like them keep %.2g of %d and %.2g of %d cores busy", used(a), cores(a), used(b), cores(b)),
		}.about(a))
		k++
	}
	return out
}

// doubt says why not to act on a forecast; empty: it is good enough.
func doubt(f Forecast) string {
	if f.Samples < Enough || f.Quantile == nil {
		return fmt.Sprintf("%d ended jobs are like it, and %d are needed", f.Samples, Enough)
	}
	return ""
}

func rule(s tuning.Site, key string, value any) string {
	return fmt.Sprintf("%s=%v (%s)", key, value, cmp.Or(s.Sources[key], tuning.FromDefault))
}
