package simulate

import (
	"math"

	"pitchpipe/controller/evaluate"
)

// tiresias lets jobs with little attained service run first (two-queue least attained service, NSDI 2019): up to
// 18,000 unit-seconds they are in the upper queue, and within a queue the older comes first. It decides once a minute.
func tiresias() Spec {
	return Spec{Name: "tiresias", Ticks: true, New: whatever(func(p *Pool) Policy {
		order := func(j *Job) (float64, float64) {
			return float64(evaluate.Yes(p.Ran(j)*float64(j.Units) > tiresiasThreshold)), j.Submit
		}
		return &tiresiasPolicy{quota: quota{pool: p, order: order, waiting: map[int]*events{}}}
	})}
}

const (
	tiresiasPeriod    = 60    // s
	tiresiasThreshold = 18000 // unit-seconds
)

type tiresiasPolicy struct {
	quota

	settled bool // nothing happened since a decision that changed nothing
}

func (t *tiresiasPolicy) Arrive(j *Job) {
	t.quota.Arrive(j)
	t.settled = false
}

func (t *tiresiasPolicy) Ended(*Job) { t.settled = false }

// Decide: between two minutes it asks to be woken at the next at which anything can change.
func (t *tiresiasPolicy) Decide() float64 {
	now := t.pool.Now
	minute := math.Floor(now/tiresiasPeriod)*tiresiasPeriod + tiresiasPeriod
	if math.Mod(now, tiresiasPeriod) == 0 {
		t.settled = !t.choose()
	}
	switch {
	case t.units == 0:
		return math.Inf(1)
	case !t.settled:
		return minute
	}
	again := math.Inf(1) // when a job that runs falls into the lower queue
	for _, j := range t.pool.Running {
		if left := tiresiasThreshold/float64(j.Units) - t.pool.Ran(j); left >= 0 {
			again = min(again, math.Floor((now+left)/tiresiasPeriod)*tiresiasPeriod+tiresiasPeriod)
		}
	}
	return again
}
