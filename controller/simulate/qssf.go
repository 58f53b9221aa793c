package simulate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"pitchpipe/controller/durations"
)

// qssf starts the job with the least forecast of seconds times units first (quasi-shortest service first, Helios,
// SC 2021), by the forecasts that the log brings along; where it brings none, by the median that a model forecasts from
// the jobs of the site that have ended. As published, jobs that come to an empty queue are first tried by their size
// alone.
func qssf() Spec {
	return Spec{Name: "qssf", New: func(_ context.Context, in Input) (func(*Pool) Policy, error) {
		var model *durations.Model
		if len(in.Log.Models.EBM) == 0 {
			model = durations.New()
		}
		return func(p *Pool) Policy {
			return &qssfPolicy{line: line{pool: p}, published: in.Log.Models.EBM, model: model, origin: in.Log.Origin}
		}, nil
	}}
}

// estimate is a forecast of seconds by the id of a job, as published: what is negative counts as 1000.
func estimate(of map[string]float64, j *Job) float64 {
	if seconds := of[j.ID]; seconds >= 0 {
		return seconds
	}
	return 1000
}

type qssfPolicy struct {
	line

	published map[string]float64 // forecasts by the id of a job
	model     *durations.Model   // nil: they are published
	origin    float64
	fresh     []*Job // came at this moment, or to an empty queue a moment ago
}

func (q *qssfPolicy) Arrive(j *Job) {
	n := &expected{run: estimate(q.published, j)}
	j.Note, q.fresh = n, append(q.fresh, j)
	if q.model != nil {
		var said durations.Forecast
		if n.features, said = q.model.Submitted(*j.Job, q.origin); said.Known() {
			n.run = said.Median
		}
	}
}

func (q *qssfPolicy) Ended(j *Job) {
	if q.model != nil {
		q.model.Learn(durations.Ended{Features: expect(j).features, Duration: q.pool.Ran(j), End: j.End + q.origin})
	}
}

func (q *qssfPolicy) Decide() float64 {
	again := math.Inf(1)
	if len(q.queue) == 0 && len(q.fresh) > 0 && q.fresh[0].Submit == q.pool.Now {
		slices.SortStableFunc(q.fresh, func(a, b *Job) int { return cmp.Compare(a.Units, b.Units) })
		for len(q.fresh) > 0 && q.pool.Start(q.fresh[0]) {
			q.fresh = q.fresh[1:]
		}
		if len(q.fresh) > 0 {
			again = q.pool.Now + 1 // they are rated then
		}
		return again
	}
	for _, j := range q.fresh {
		q.queue.push(item{key: expect(j).run * float64(j.Units), tie: float64(j.Units), seq: j.Seq, job: j})
	}
	q.fresh = nil
	return q.line.Decide()
}
