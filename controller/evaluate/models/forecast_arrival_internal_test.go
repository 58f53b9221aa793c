package models

import (
	"math"
	"testing"

	"pitchpipe/controller/forecast"
)

func TestATargetIsReachedWhenTheForecastReachesIt(t *testing.T) {
	t.Parallel()
	value := func(k float64) float64 { return 0.3 + 1/(0.5*k+0.4) }
	var r run
	losses := family{measured: Loss}
	for k := 1.0; k <= 40; k++ { // ten seconds each after five to begin with
		r.Epochs, r.Values, r.seconds = append(r.Epochs, k), append(r.Values, value(k)), append(r.seconds, 5+10*k)
	}
	cut, _ := r.Seen(0.3)
	f, known := forecast.New(cut, losses.options(r))
	if !known {
		t.Fatal("unknown")
	}
	n := len(cut.Values)
	for _, target := range []float64{value(30), value(60)} {
		epoch, seconds := losses.arrival(r, n, f, target)
		if truth := 1/(0.5*(target-0.3)) - 0.8; math.Abs(epoch-truth) > 0.25*truth || math.Abs(seconds-(5+10*epoch)) > 1e-6 {
			t.Errorf("epoch %g after %g s: the curve is at %g in epoch %g", epoch, seconds, target, truth)
		}
	}
	if epoch, seconds := losses.arrival(r, n, f, 0.2); !math.IsInf(epoch, 1) || !math.IsInf(seconds, 1) {
		t.Errorf("epoch %g after %g s: the curve ends above 0.3", epoch, seconds)
	}
	untimed := r
	untimed.seconds = nil
	if epoch, seconds := losses.arrival(untimed, n, f, value(30)); math.Abs(epoch-30) > 4 || !math.IsInf(seconds, 1) {
		t.Errorf("epoch %g after %g s: the time was not measured", epoch, seconds)
	}
}
