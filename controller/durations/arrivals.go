package durations

import (
	"math"

	"pitchpipe/controller/evaluate"
)

// Arrivals are the jobs submitted in each ten minutes from a start on, and the GPUs that they asked for.
type Arrivals struct {
	Start      float64 // Unix seconds
	Jobs, GPUs []float64
}

// Bins of Arrivals, and how many of them are an hour. What an hour ahead is forecast from is at least as old.
const (
	binSeconds = 600
	hour       = 6
	day        = 24 * hour
	week       = 7 * day
)

// Count counts the arrivals of jobs.
func Count(jobs []Ended) Arrivals {
	a, last := Arrivals{Start: math.Inf(1)}, 0.0
	for _, j := range jobs {
		a.Start, last = min(a.Start, math.Floor(j.Submit/binSeconds)*binSeconds), max(last, j.Submit)
	}
	if len(jobs) > 0 {
		n := 1 + int((last-a.Start)/binSeconds)
		a.Jobs, a.GPUs = make([]float64, n), make([]float64, n)
	}
	for _, j := range jobs {
		i := int((j.Submit - a.Start) / binSeconds)
		a.Jobs[i]++
		a.GPUs[i] += float64(j.GPUs)
	}
	return a
}

// Ahead forecasts what a bin of a series, the jobs or GPUs of a, will hold, from the bins that are an hour older. It
// learns from those before one, on square roots, which evens out the spread of counts and keeps the answers near
// the median.
func (a Arrivals) Ahead(series []float64, before int) func(bin int) float64 {
	var rows []row
	var y []float64
	for i := hour; i < before; i++ {
		rows, y = append(rows, a.row(i)), append(y, math.Sqrt(series[i]))
	}
	terms := append(rhythm(), named(count, false, "jobs of the hour before", "jobs of six hours before", "jobs of the day before",
		"jobs at this hour yesterday", "jobs at this hour a week ago", "GPUs of the hour before", "GPUs of the day before")...)
	shape := fit(terms, rows, y)
	return func(bin int) float64 {
		root := max(0, shape.predict(a.row(bin)))
		return root * root
	}
}

func (a Arrivals) row(i int) row {
	now := i - hour + 1
	return row{nil, append(clock(a.Start+float64(i)*binSeconds),
		mean(a.Jobs, now-hour, now), mean(a.Jobs, now-6*hour, now), mean(a.Jobs, now-day, now),
		mean(a.Jobs, i-day-3, i-day+4), mean(a.Jobs, i-week-3, i-week+4),
		mean(a.GPUs, now-hour, now), mean(a.GPUs, now-day, now))}
}

// mean returns the mean of x[from:to], NaN where the series is too short.
func mean(x []float64, from, to int) float64 {
	if from < 0 || to > len(x) {
		return math.NaN()
	}
	return float64(evaluate.Mean(x[from:to]))
}

// JudgeArrivals forecasts the bins from one on, learning from those before, and compares that with the mean of
// the hour before.
func JudgeArrivals(a Arrivals, from int) []evaluate.Line {
	var out []evaluate.Line
	for _, s := range []struct {
		name   string
		series []float64
	}{{"jobs", a.Jobs}, {"GPUs", a.GPUs}} {
		ahead := a.Ahead(s.series, from)
		var said, last []float64
		for i := max(2*hour, from); i < len(s.series); i++ {
			said, last = append(said, ahead(i)), append(last, mean(s.series, i-2*hour+1, i-hour+1))
		}
		truth := s.series[len(s.series)-len(said):]
		out = append(out, evaluate.Line{"what": s.name, "bins": len(said), "mae": miss(truth, said), "mae_hour_before": miss(truth, last)})
	}
	return out
}
