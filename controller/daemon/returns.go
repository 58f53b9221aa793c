package daemon

import (
	"context"
	"time"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
)

// past are the earlier runs of a kind of job.
func (r *rooms) past(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
	obs, err := r.store.Observations(kind)
	return knowledge.PastRuns(obs, kind, time.Now()), err
}

// curves are what forecasts of earlier jobs of a kind were worth.
func (r *rooms) curves(_ context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error) {
	obs, err := r.store.Observations(kind)
	return knowledge.CurveLessons(obs, kind, forecast.Remembered), err
}
