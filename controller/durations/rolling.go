package durations

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// History lists the jobs of a log.
func History(l joblog.Log) []Ended {
	out := make([]Ended, len(l.Jobs))
	for i, j := range l.Jobs {
		if out[i] = (Ended{Features: Of(j, l.Origin), Duration: j.Duration}); j.Start > 0 {
			out[i].End = l.Origin + j.Start + j.Duration
		}
	}
	return out
}

// The forecasts that Rolling compares. The median of a user without an ended job is that of all.
func compared() []string {
	return []string{"model, as of the Monday", "model, learning on", "median of all", "median of the user"}
}

// score is what forecasts of some jobs were worth.
type score struct {
	truth, median, mean []float64
	within, lost        [4]float64 // sums, by quantile
}

func judged() [4]float64 { return [...]float64{0.5, 0.9, 0.95, 0.99} }

func (s *score) add(truth float64, f Forecast) {
	s.truth, s.median, s.mean = append(s.truth, truth), append(s.median, f.Median), append(s.mean, f.Mean)
	for i, q := range judged() {
		over := truth - f.Quantile(q)
		s.lost[i] += loss(q, over)
		if !(over > 0) {
			s.within[i] += 1 + 0*over // NaN stays
		}
	}
}

func (s *score) line(week, forecast string) evaluate.Line {
	out := evaluate.Line{
		"week": week, "forecast": forecast, "jobs": len(s.truth), "mae": miss(s.truth, s.median), "mean_mae": miss(s.truth, s.mean),
		"r2":       evaluate.Figure(stat.RSquaredFrom(s.mean, s.truth, nil)),
		"spearman": evaluate.Figure(stat.Correlation(propose.Ranks(s.truth), propose.Ranks(s.median), nil)),
	}
	for i, q := range judged() {
		out[fmt.Sprintf("within_%.0f", 100*q)] = evaluate.Figure(s.within[i] / float64(len(s.truth)))
		out[fmt.Sprintf("pinball_%.0f", 100*q)] = evaluate.Figure(s.lost[i] / float64(len(s.truth)))
	}
	return out
}

// miss is the mean absolute error of forecasts, in the unit of truth.
func miss(truth, said []float64) evaluate.Figure {
	return evaluate.Figure(floats.Distance(truth, said, 1) / float64(len(truth)))
}

// Rolling forecasts each job of a log from the jobs that had ended before: all of a week from those before its
// first submission, then each one from those before its own, next to simple medians. Weeks begin on Mondays, UTC;
// the first before which 50 jobs have ended is the first that counts. The model of the whole log comes back, too.
func Rolling(ctx context.Context, jobs []Ended, progress evaluate.Progress) (evaluate.Report, *Model, error) {
	r, m, scores := evaluate.Report{Command: "durations"}, New(), map[[2]string]*score{}
	weeks, now, past := []string{}, "", map[string][]float64{}
	add := func(forecast int, j Ended, f Forecast) {
		for _, at := range [][2]string{{"", compared()[forecast]}, {now, compared()[forecast]}} { // "": of all weeks
			if scores[at] == nil {
				scores[at] = &score{}
			}
			scores[at].add(j.Duration, f)
		}
	}
	begin := func(rest []Ended) {
		weeks = append(weeks, now)
		progress(len(jobs)-len(rest), len(jobs), "jobs")
		m.refit()
		medians := map[string]Forecast{}
		for user, durations := range past {
			x := float64(evaluate.Median(durations))
			medians[user] = Forecast{Median: x, Mean: x}
		}
		for _, j := range rest {
			if monday(j.Submit) != now {
				return
			}
			own, known := medians[j.User]
			if !known {
				own = medians[""]
			}
			add(0, j, m.Predict(j.Features))
			add(2, j, medians[""])
			add(3, j, own)
		}
	}
	replay(jobs, func(rest []Ended) {
		j := rest[0]
		if week := monday(j.Submit); week != now && ctx.Err() == nil {
			if now = week; m.fitted > 0 {
				begin(rest)
			}
		}
		m.Note(j.Features)
		if len(weeks) > 0 {
			add(1, j, m.Predict(j.Features))
		}
	}, func(j Ended) {
		m.Learn(j)
		past[""] = append(past[""], j.Duration)
		if j.User != "" {
			past[j.User] = append(past[j.User], j.Duration)
		}
	})
	if err := ctx.Err(); err != nil {
		return r, m, fmt.Errorf("durations: %w", err)
	}
	if len(weeks) == 0 {
		return r, m, evaluate.Invalid("%d jobs: want a log in which %d jobs ended before a Monday with later submissions", len(jobs), first)
	}
	m.refit()
	for _, week := range append(weeks, "") {
		for _, forecast := range compared() {
			r.Rows = append(r.Rows, scores[[2]string{week, forecast}].line(week, forecast))
		}
	}
	r.Summary = evaluate.Line{"jobs": len(jobs), "terms": lines(m.Terms())}
	for i, name := range []string{"mae", "mae_online", "mae_median_of_all", "mae_median_of_user"} {
		r.Summary[name] = r.Rows[len(r.Rows)-4+i]["mae"]
	}
	return r, m, nil
}

// monday is the date on which the week of a time began.
func monday(unix float64) string {
	at := time.Unix(int64(unix), 0).UTC()
	return at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format(time.DateOnly)
}

// lines sums up terms by their levels with enough jobs.
func lines(terms []Term) []evaluate.Line {
	var out []evaluate.Line
	for _, t := range terms {
		levels := slices.DeleteFunc(slices.Clone(t.Levels), func(l Level) bool { return l.Jobs < 10 })
		slices.SortStableFunc(levels, func(a, b Level) int { return cmp.Compare(b.Factor, a.Factor) })
		names := tuning.Each(levels, func(l Level) string { return fmt.Sprintf("%s: x%.3g", l.Name, l.Factor) })
		if n := len(levels); n > 1 {
			k := min(2, n/2)
			out = append(out, evaluate.Line{
				"term": t.Name, "levels": len(t.Levels), "least": evaluate.Figure(levels[n-1].Factor), "most": evaluate.Figure(levels[0].Factor),
				"longest": names[:k], "shortest": names[n-k:],
			})
		}
	}
	return out
}
