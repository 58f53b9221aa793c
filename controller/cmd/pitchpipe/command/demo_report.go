package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/report"
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

// demoRow is a kind: its first encounter, and the pair when it returned. A job that has no
// pair has the first alone.
type demoRow struct {
	Name    string   `json:"name"`
	First   api.Job  `json:"first"`
	Tuned   *api.Job `json:"tuned"`
	Untuned *api.Job `json:"untuned"`
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
	var ratios []float64
	for _, row := range r.Jobs {
		if row.Tuned != nil && *took(*row.Untuned) > 0 {
			ratios = append(ratios, *took(*row.Tuned) / *took(*row.Untuned))
		}
	}
	if len(ratios) > 0 {
		r.GeometricMean = float64(evaluate.GeometricOf(ratios))
	}
}

func (r *demoReport) text() string {
	var b strings.Builder
	head := []string{
		"JOB", "CLASS", "SECONDS user → tuned", "CORE-HOURS", "EPOCHS", "QUALITY", "JOULES (" + cmp.Or(r.EnergySource, "not measured") + ")",
		"SETTINGS user → tuned", "MOVES", "REASON",
	}
	b.WriteString(report.List(head, r.Jobs, func(row demoRow) []string {
		own, tuned, from, moves := row.First, row.First, api.Job{}, row.First.Restarts+row.First.Probes
		seconds := arrow("%.1f", took(row.First), nil)
		if row.Tuned != nil {
			own, tuned, from = *row.Untuned, *row.Tuned, *row.Untuned
			seconds, moves = arrow("%.1f", took(own), took(tuned)), moves+tuned.Restarts+tuned.Probes
		} else {
			tuned.CoreHours, tuned.Quality, tuned.Joules = nil, nil, nil // there is nothing to compare them with
		}
		return []string{
			row.Name, demoClass(tuned), seconds, arrow("%.3f", from.CoreHours, tuned.CoreHours), strconv.Itoa(tuned.Epoch),
			arrow("%.4g", from.Quality, tuned.Quality), arrow("%.0f", from.Joules, tuned.Joules),
			own.Own.String() + " → " + tuned.Current.String(), strconv.Itoa(moves), demoReason(tuned),
		}
	}))
	fmt.Fprintf(&b, "\nRecurring jobs took %.2f of their untuned time (geometric mean of the five kinds, restarts included). Lost %d, duplicated %d.\n",
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
