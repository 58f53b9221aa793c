package tuning

import "math"

// Weights are those of ln(joules) and of ln(seconds) in what the objective
// minimises; weight is the share of energy in Blend.
func (o Objective) Weights(weight float64) (joules, seconds float64) {
	switch o {
	case Energy:
		return 1, 0
	case EDP:
		return 1, 1
	case Blend:
		w := min(max(weight, 0), 1)
		return w, 1 - w
	case Time:
	}
	return 0, 1
}

// LogRatio is how much better (below 0) or worse the trial is than the reference
// per epoch, in natural logs of what the objective minimises. Not ok: a needed
// number is missing, or the joules of both come from different sources.
func (t Trial) LogRatio(reference Trial, o Objective, weight float64) (float64, bool) {
	if t.Failed || reference.Failed || !(t.Seconds > 0) || !(reference.Seconds > 0) {
		return 0, false
	}
	wj, ws := o.Weights(weight)
	v := ws * math.Log(t.Seconds/reference.Seconds)
	if wj > 0 {
		if t.Joules == nil || reference.Joules == nil || t.Source != reference.Source ||
			!(*t.Joules > 0) || !(*reference.Joules > 0) {
			return 0, false
		}
		v += wj * math.Log(float64(*t.Joules / *reference.Joules))
	}
	return v, !math.IsInf(v, 0) && !math.IsNaN(v)
}
