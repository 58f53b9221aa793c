package stages

import (
	"pitchpipe/controller/forecast"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// left is what is left of a job.
func left(q reconcile.ForecastRequest) tuning.Forecast { return forecast.Left(work(q)) }

// teach is what the forecasts of a job that has ended were worth.
func teach(q reconcile.ForecastRequest) []tuning.CurveLesson { return work(q).Teach() }

func work(q reconcile.ForecastRequest) forecast.Work {
	w := forecast.Work{
		Epochs: q.Epochs, Own: q.Own, Current: q.Current, Done: q.Done, Total: q.Total, Curve: q.Curve, Lessons: q.Lessons, Learns: q.Policy.Learns,
	}
	if q.Policy.Quality != nil {
		w.Direction = forecast.Direction(q.Policy.Quality.Direction)
	}
	if t := q.Kind; t != nil && t.Settings.Equal(q.Own) {
		w.Kind = t
	}
	return w
}
