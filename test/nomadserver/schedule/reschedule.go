package schedule

import (
	"time"

	"github.com/hashicorp/nomad/api"
)

// window is how much too early a failed allocation is replaced rather than waited for.
const window = time.Second

// rescheduleAt says when a failed allocation may be replaced, false = never.
func rescheduleAt(a *api.Allocation, p *api.ReschedulePolicy) (time.Time, bool) {
	if p == nil || *p.Attempts == 0 && !*p.Unlimited {
		return time.Time{}, false
	}
	ended := EndOf(a)
	var events []*api.RescheduleEvent
	if a.RescheduleTracker != nil {
		events = a.RescheduleTracker.Events
	}
	delay := delayOf(*p, len(events))
	recent := 0
	for _, e := range events {
		if ended.Sub(time.Unix(0, e.RescheduleTime)) < *p.Interval {
			recent++
		}
	}
	return ended.Add(delay), *p.Unlimited || recent < *p.Attempts && delay < *p.Interval
}

func delayOf(p api.ReschedulePolicy, before int) time.Duration {
	delay, last := *p.Delay, time.Duration(0)
	for range before {
		switch *p.DelayFunction {
		case "exponential":
			delay *= 2
		case "fibonacci":
			delay, last = delay+last, delay
		}
		if *p.MaxDelay > 0 && delay > *p.MaxDelay {
			return *p.MaxDelay
		}
	}
	return delay
}

// EndOf is when the last task of an allocation ended; where none has run, when it was
// changed last.
func EndOf(a *api.Allocation) time.Time {
	var end time.Time
	for _, s := range a.TaskStates {
		if s.FinishedAt.After(end) {
			end = s.FinishedAt
		}
	}
	if end.IsZero() {
		return time.Unix(0, a.ModifyTime)
	}
	return end
}
