package plan

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// Memory is never set below a multiple of the largest peak seen: the next input may be bigger
// than all before. With few runs the reserve is wider.
const (
	memoryReserve    = 1.5
	memoryReserveFew = 3
	memoryFewRuns    = 3
)

// recall changes a job before its start to what jobs of its kind taught. Nothing is restarted,
// so that a queue or a reservation is no concern.
func recall(s view) tuning.Decision {
	target := s.Own.Clone()
	reason := tuning.ReasonFirstSeen
	var evidence []tuning.Evidence
	if d, ok := tryReturn(s); ok {
		return d
	}
	if e, ok := s.bestOfKind(); ok {
		target = s.target(e.Settings)
		reason = tuning.ReasonRecalled
		evidence = append(effectEvidence(e), s.returnsEvidence()...)
		if t, why, ok := foreseen(s, target); ok {
			target, reason, evidence = t, tuning.ReasonPredictedStart, append(why, effectEvidence(e)...)
		}
	} else if t, why, ok := foreseen(s, s.Own); ok {
		target, reason, evidence = t, tuning.ReasonPredictedStart, why
	} else if len(s.KindEffects) > 0 {
		reason = tuning.ReasonAlreadyBest
		if remembered(s) {
			reason = tuning.ReasonRemembered
		}
	} else if s.returning() {
		reason, evidence = s.untriable(), s.returnsEvidence()
	} else if s.Policy.Budget.Returns == 0 && s.NextReason == tuning.ReasonWholeRuns {
		reason = tuning.ReasonWholeRuns
	}
	if reason == tuning.ReasonWholeRuns {
		evidence = s.wholeRuns()
	}
	if memory, ok := rightSize(s); ok {
		if target.Equal(s.Own) {
			reason = tuning.ReasonRightSized
		}
		target = target.With(tuning.Memory, memory)
		evidence = append(evidence,
			tuning.Evidence{Name: "memory_peak_bytes", Value: float64(s.PeakRSS)},
			tuning.Evidence{Name: "memory_runs_seen", Value: float64(s.PeakRuns)})
	}
	if target.Equal(s.Own) {
		return hold(s, reason, evidence...)
	}
	return decide(s, tuning.Move, reason, target, evidence...)
}

// foreseen is the setting that what an earlier run of the kind made of its cores shows to be
// better than another. Nothing may stop the job where it has no checkpoint, so that it must be
// sure, at 95 %, to be better, within the slowdown that its owner allows and its time limit.
func foreseen(s view, from tuning.Settings) (tuning.Settings, []tuning.Evidence, bool) {
	if s.Profile == nil {
		return nil, nil, false
	}
	var best tuning.Settings
	var evidence []tuning.Evidence
	least, longest, z := 0.0, 0.0, sure
	if s.Returns != nil {
		longest = s.Returns.Longest
	}
	if s.KindRuns == 0 && len(s.Carried) == 0 && s.Profile.Settings[tuning.Cores] != s.Own[tuning.Cores] {
		z *= 2 // nothing of its kind ran as it asks for, which it could be held against
	}
	for _, target := range s.searched() {
		p := s.model().Predict(target)
		gains, slowest := s.model().Between(from, target), p.Time.Quantile(z)
		tooSlow := !s.withinSlowdown(slowest) ||
			s.LimitLeft > 0 && slowest > 0 && longest*math.Exp(slowest)*(1+doubtMargin) > s.LimitLeft.Seconds()
		if gains.Quantile(sure) < -noise && gains.Mean < least && !tooSlow {
			best, least, evidence = target, gains.Mean, predictedEvidence(p)
		}
	}
	return best, evidence, best != nil
}

// rightSize is the memory that the owner could give up, from the peak of earlier
// runs.
func rightSize(s view) (tuning.Value, bool) {
	k, ok := s.Policy.Knob(tuning.Memory)
	own, asked := s.Own[tuning.Memory]
	if !ok || !asked || s.MemoryHeld || s.PeakRSS <= 0 || s.PeakRuns == 0 {
		return tuning.Value{}, false
	}
	reserve := memoryReserve
	if s.PeakRuns < memoryFewRuns {
		reserve = memoryReserveFew
	}
	const mib = 1 << 20
	need := math.Ceil(float64(s.PeakRSS)*reserve/mib) * mib
	if k.Min.IsSet() {
		need = math.Max(need, k.Min.Float())
	}
	byNumber := func(a, b tuning.Value) int { return cmp.Compare(a.Float(), b.Float()) }
	listed := slices.SortedFunc(slices.Values(k.Values), byNumber)
	if i := slices.IndexFunc(listed, func(v tuning.Value) bool { return v.Float() >= need }); i >= 0 {
		need = listed[i].Float()
	}
	v := tuning.Number(need)
	return v, !s.ranOut(v) && k.Allows(v) && need < own.Float()
}
