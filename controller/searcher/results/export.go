package results

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"pitchpipe/controller/report"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// CSV writes one line for each trial, or for each epoch of each trial. The knobs are the last columns;
// what is missing is empty.
func CSV(w io.Writer, s *searcher.Searcher, epochs bool) error {
	knobs := tuning.Knobs(tuning.Each(s.Trials, func(t searcher.Trial) tuning.Settings { return t.Settings }))
	head := []string{"trial", "state", "reason", "attempts", "epochs", "best_value", "best_epoch", "last_value"}
	if epochs {
		head = []string{"trial", "epoch", "value", "seconds_since_begin", "cores", "threads"}
	}
	head = append(head, "seconds", "joules", "joules_source", "core_hours")
	rows := [][]string{append(head, tuning.Each(knobs, func(name string) string { return "knob_" + name })...)}
	row := func(t *searcher.Trial, r searcher.Report, own ...string) {
		used := []string{"", "", "", ""} // nothing is known before the first report, or the end of the job
		if r.Epoch > 0 || r.Seconds > 0 {
			used = []string{number(r.Seconds), report.Field(r.Joules), r.Source, number(r.CoreHours)}
			if r.Joules == nil {
				used[2] = ""
			}
		}
		settings := tuning.Each(knobs, func(name string) string { return t.Settings[name].String() })
		rows = append(rows, tuning.Each(slices.Concat([]string{strconv.Itoa(t.Number)}, own, used, settings), report.Legible))
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		if epochs {
			for _, r := range t.Reports {
				row(t, r, strconv.Itoa(r.Epoch), number(r.Value), number(r.At), positive(r.Cores), positive(r.Threads))
			}
			continue
		}
		values := []string{"", "", "", ""}
		if best := s.Best(t); best.Epoch > 0 {
			values = []string{strconv.Itoa(t.Last().Epoch), number(best.Value), strconv.Itoa(best.Epoch), number(t.Last().Value)}
		}
		row(t, t.Used(), append([]string{string(t.State), t.Reason, strconv.Itoa(t.Attempt)}, values...)...)
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("export trials: %w", err)
	}
	return nil
}

func number(v float64) string { return report.Field(&v) }

// positive prints a number; 0 means that it is unknown.
func positive(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v)
}

// JSON writes the plan, its rungs, and all that is known of the trials.
func JSON(w io.Writer, s *searcher.Searcher) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(struct {
		Plan     searcher.Plan     `json:"plan"`
		Rungs    []int             `json:"rungs"`
		Snapshot searcher.Snapshot `json:"snapshot"`
	}{s.Plan, s.Rungs(), s.Snapshot}); err != nil {
		return fmt.Errorf("export the search: %w", err)
	}
	return nil
}
