package simulate

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
)

// qssf starts the job with the least forecast of seconds times units first (quasi-shortest service first, Helios,
// SC 2021), by the forecasts that the log brings along. As published, jobs that come to an empty queue are first
// tried by their size alone.
func qssf() Spec {
	return Spec{Name: "qssf", New: func(_ context.Context, in Input) (func(*Pool) Policy, error) {
		if len(in.Log.Models.EBM) == 0 {
			return nil, fmt.Errorf("%w: qssf needs forecasts of durations: the folder of the log has no *_ebm*.csv", ErrInput)
		}
		return func(p *Pool) Policy { return &qssfPolicy{line: line{pool: p}, forecast: in.Log.Models.EBM} }, nil
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

	forecast map[string]float64
	fresh    []*Job // came at this moment, or to an empty queue a moment ago
}

func (q *qssfPolicy) Arrive(j *Job) { q.fresh = append(q.fresh, j) }

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
		heap.Push(&q.queue, item{key: estimate(q.forecast, j) * float64(j.Units), tie: float64(j.Units), seq: j.Seq, job: j})
	}
	q.fresh = nil
	return q.line.Decide()
}
