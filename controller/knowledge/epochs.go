package knowledge

import "pitchpipe/controller/tuning"

// References are what the jobs of a kind measured under their owner's settings, the oldest first.
func References(obs []Observation, kind tuning.JobKind) []tuning.Trial {
	var out []tuning.Trial
	for _, r := range runs(ofKind(obs, kind)) {
		if t, ok := tuning.Reference(r.trials); ok && !t.Failed {
			out = append(out, t)
		}
	}
	return out
}
