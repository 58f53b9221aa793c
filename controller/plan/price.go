package plan

import (
	"math"
	"time"

	"pitchpipe/controller/tuning"
)

// price is what a restart takes from the job now: what it costs, and the wait in
// the queue.
func (s view) price() time.Duration { return s.RestartCost + s.Wait }

// repays says why a saving of so many seconds is not worth so many prices of a
// restart: ReasonLongQueue where it would be without the queue, else the given
// reason; ReasonNone where it is worth it. A saving that is no number never is.
func (s view) repays(saving, prices float64, otherwise tuning.Reason) tuning.Reason {
	switch {
	case saving > prices*s.price().Seconds():
		return tuning.ReasonNone
	case saving > prices*s.RestartCost.Seconds():
		return tuning.ReasonLongQueue
	}
	return otherwise
}

// worthless tells a job that is too short for any setting from one for which
// this setting is too little.
func (s view) worthless() tuning.Reason {
	if s.Remaining()*optimism <= s.Site.Margin*s.RestartCost.Seconds() {
		return tuning.ReasonTooShort
	}
	return tuning.ReasonWorthless
}

// left is what the rest of the job saves by going from one log ratio to another,
// both to the owner's settings, in seconds of EpochSeconds: those are of the
// owner's settings where they were measured, else of the present ones.
func (s view) left(from, to float64) float64 {
	if _, ok := tuning.Reference(s.Trials); !ok {
		from, to = 0, to-from
	}
	return s.Remaining() * (math.Exp(from) - math.Exp(to))
}

// growth is by which share something of this log ratio is longer, at least 0.
func growth(logRatio float64) float64 { return math.Expm1(max(logRatio, 0)) }

// epochsAfterProbe are those that would profit from what a probe shows.
func (s view) epochsAfterProbe() float64 {
	return max(0, float64(s.EpochsTotal-s.EpochsDone-s.epochsPerProbe()))
}

// presentSeconds is the length of an epoch now.
func (s view) presentSeconds() float64 {
	if t, ok := s.trialOf(s.Current); ok && t.Seconds > 0 {
		return t.Seconds
	}
	return s.EpochSeconds
}

// overruns tells whether a setting that is slower than the present one would
// carry the job past its time limit. What is left of the limit now is the least
// that the next attempt is given.
func (s view) overruns(slower float64) bool {
	if s.LimitLeft <= 0 || slower <= 1 {
		return false
	}
	return float64(s.EpochsTotal-s.EpochsDone)*s.presentSeconds()*slower > s.LimitLeft.Seconds()
}

func (s view) limit() []tuning.Evidence {
	return []tuning.Evidence{
		{Name: "remaining_seconds", Value: s.Remaining()},
		{Name: "limit_left_seconds", Value: s.LimitLeft.Seconds()},
	}
}

// worth is the evidence of the comparison of a saving with its restarts.
func worth(s view, saving float64, restarts int) []tuning.Evidence {
	out := []tuning.Evidence{
		{Name: "remaining_seconds", Value: s.Remaining()},
		{Name: "predicted_saving_seconds", Value: saving},
		{Name: "restart_cost_seconds", Value: float64(restarts) * s.RestartCost.Seconds()},
	}
	if s.Wait > 0 {
		out = append(out, tuning.Evidence{Name: "queue_wait_seconds", Value: float64(restarts) * s.Wait.Seconds()})
	}
	return append(out, tuning.Evidence{Name: "margin", Value: s.Site.Margin})
}

// outlook is the evidence of what stands between a job and a restart.
func (s view) outlook(r tuning.Reason) []tuning.Evidence {
	if r != tuning.ReasonNearClosing {
		return nil
	}
	return []tuning.Evidence{
		{Name: "closed_in_seconds", Value: s.ClosedIn.Seconds()},
		{Name: "closed_by", Text: s.ClosedBy},
		{Name: "restart_cost_seconds", Value: s.RestartCost.Seconds()},
		{Name: "queue_wait_seconds", Value: s.Wait.Seconds()},
		{Name: "reserve_seconds", Value: s.Site.LimitReserve.Seconds()},
	}
}
