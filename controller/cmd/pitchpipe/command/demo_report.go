package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"text/tabwriter"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
)

type demoReport struct {
	Jobs       []demoRow `json:"jobs"`
	Lost       int       `json:"lost"`       // jobs that did not succeed, or did not do every epoch
	Duplicated int       `json:"duplicated"` // epochs that were done more than once

	GeometricMean float64  `json:"geometric_mean"` // of tuned over untuned seconds, over the pairs
	Machine       string   `json:"machine"`
	Schema        string   `json:"schema"` // which counters there were
	EnergySource  string   `json:"energy_source"`
	Sources       []string `json:"sources"`
}

// demoRow is one kind: its first encounter, and the pair when it returned. Numbers
// that do not exist are null.
type demoRow struct {
	Name              string   `json:"name"`
	Kind              string   `json:"kind"`
	Class             string   `json:"class"` // unknown where it resembles nothing
	Recognised        bool     `json:"recognised"`
	Regret            *float64 `json:"regret"` // cost of its setting over the best that its kind's probes found
	BaselineSeconds   *float64 `json:"baseline_seconds"`
	RecognisedSeconds *float64 `json:"recognised_seconds"`
	FirstSeconds      *float64 `json:"first_seconds"`
	BaselineJoules    *float64 `json:"baseline_joules"`
	RecognisedJoules  *float64 `json:"recognised_joules"`
	EnergySource      string   `json:"energy_source"`
	BaselineHours     *float64 `json:"baseline_core_hours"`
	RecognisedHours   *float64 `json:"recognised_core_hours"`
	BaselineQuality   *float64 `json:"baseline_quality"`
	RecognisedQuality *float64 `json:"recognised_quality"`
	Epochs            int      `json:"epochs"`
	BaselineEpochs    int      `json:"baseline_epochs"`
	Resubmissions     int      `json:"resubmissions"` // of all its runs, first encounter included
	Own               string   `json:"own"`
	Setting           string   `json:"setting"`
	Reason            string   `json:"reason"`
}

func compareJobs(kind string, first, tuned, untuned api.Job) demoRow {
	return demoRow{
		Name: kind, Kind: kind, Class: demoClass(tuned), Recognised: tuned.Recalled, Regret: regret(first, tuned),
		BaselineSeconds: took(untuned), RecognisedSeconds: took(tuned), FirstSeconds: took(first),
		BaselineJoules: untuned.Joules, RecognisedJoules: tuned.Joules, EnergySource: tuned.Source,
		BaselineHours: untuned.CoreHours, RecognisedHours: tuned.CoreHours,
		BaselineQuality: untuned.Quality, RecognisedQuality: tuned.Quality,
		Epochs: tuned.Epoch, BaselineEpochs: untuned.Epoch,
		Resubmissions: first.Restarts + first.Probes + tuned.Restarts + tuned.Probes,
		Own:           untuned.Own.String(), Setting: tuned.Current.String(), Reason: demoReason(tuned),
	}
}

func aloneJob(name, kind string, j api.Job) demoRow {
	return demoRow{
		Name: name, Kind: kind, Class: demoClass(j), Recognised: j.Recalled || j.Class != nil && j.Class.Known(),
		FirstSeconds: took(j), EnergySource: j.Source, Epochs: j.Epoch, Resubmissions: j.Restarts + j.Probes,
		Own: j.Own.String(), Setting: j.Current.String(), Reason: demoReason(j),
	}
}

// took is the time from submission to the end: restarts and the queue count.
func took(j api.Job) *float64 { return new(j.Seconds + j.Waited) }

func demoClass(j api.Job) string {
	switch {
	case j.Class == nil:
		return "not classified"
	case j.Class.Known():
		return j.Class.ID
	}
	return "unknown"
}

func demoReason(j api.Job) string {
	switch {
	case j.RightSized:
		return tuning.ReasonRightSized.Sentence()
	case j.Recalled:
		return tuning.ReasonRecalled.Sentence()
	}
	return j.Sentence
}

// regret compares the setting of the returning job with what the first
// encounter measured; nil where it was not measured there.
func regret(first, tuned api.Job) *float64 {
	best, own := math.Inf(1), math.NaN()
	for _, t := range first.Trials {
		best = math.Min(best, t.Seconds)
		if t.Settings.EqualButMemory(tuned.Current) {
			own = t.Seconds
		}
	}
	r := own / best
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return nil
	}
	return &r
}

var epochLine = regexp.MustCompile(`(?m)^epoch (\d+)/`)

// account checks in the job's own output that every epoch was done once.
func (r *demoReport) account(ctx context.Context, client *api.Client, j api.Job) {
	var out bytes.Buffer
	if _, err := client.Logs(ctx, j.ID, 0, &out); err != nil {
		r.Lost++
		return
	}
	done := map[string]int{}
	for _, m := range epochLine.FindAllStringSubmatch(out.String(), -1) {
		done[m[1]]++
		if done[m[1]] > 1 {
			r.Duplicated++
		}
	}
	if j.State != "succeeded" || len(done) < j.Total || j.Total == 0 {
		r.Lost++
	}
}

func (r *demoReport) finish() {
	sum, n := 0.0, 0
	for _, row := range r.Jobs {
		if row.BaselineSeconds != nil && row.RecognisedSeconds != nil && *row.BaselineSeconds > 0 {
			sum += math.Log(*row.RecognisedSeconds / *row.BaselineSeconds)
			n++
		}
	}
	if n > 0 {
		r.GeometricMean = math.Exp(sum / float64(n))
	}
}

func (r *demoReport) text() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tCLASS\tSECONDS user → tuned\tCORE-HOURS\tEPOCHS\tQUALITY\tJOULES ("+cmp.Or(r.EnergySource, "not measured")+")\tSETTINGS user → tuned\tMOVES\tREASON")
	for _, row := range r.Jobs {
		seconds := arrow("%.1f", row.BaselineSeconds, row.RecognisedSeconds)
		if row.BaselineSeconds == nil {
			seconds = arrow("%.1f", row.FirstSeconds, nil)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s → %s\t%d\t%s\n", row.Name, row.Class, seconds,
			arrow("%.3f", row.BaselineHours, row.RecognisedHours), row.Epochs,
			arrow("%.4g", row.BaselineQuality, row.RecognisedQuality), arrow("%.0f", row.BaselineJoules, row.RecognisedJoules),
			row.Own, row.Setting, row.Resubmissions, row.Reason)
	}
	_ = t.Flush() // a Builder takes all
	fmt.Fprintf(&b, "\nReturning jobs took %.2f of their untuned time (geometric mean of the five kinds, restarts included). Lost %d, duplicated %d.\n",
		r.GeometricMean, r.Lost, r.Duplicated)
	fmt.Fprintf(&b, "Machine %s, counters %s. Joules that are modelled are an estimate and support no claim.\n", r.Machine, r.Schema)
	return b.String()
}

func arrow(format string, from, to *float64) string {
	one := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(format, *v)
	}
	if to == nil {
		return one(from)
	}
	return one(from) + " → " + one(to)
}
