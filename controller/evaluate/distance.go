package evaluate

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Distance is how far settings are from wanted ones, where both say something.
func Distance(s, wanted tuning.Settings) float64 {
	d := 0.0
	for name, v := range wanted {
		w, ok := s[name]
		switch {
		case !ok || v == w:
		case v.IsNumber() && w.IsNumber():
			d += math.Abs(v.Float() - w.Float())
		default:
			d++
		}
	}
	return d
}
