package replay

import (
	"math"
	"testing"

	"pitchpipe/controller/evaluate"
)

// The final settings of three seeds in ten are cheaper than the oracle's since they break
// a limit: such a table is not within its cost and saves nothing.
func TestABrokenLimitDoesNotFlatter(t *testing.T) {
	t.Parallel()
	s := TunerInput{}.summary([]evaluate.Line{
		{
			"oracle_ratio": evaluate.Figure(.8), "final_ratio": evaluate.Figure(.7*.8 + .3*.5), "final_kept_ratio": evaluate.Figure(.7*.8 + .3),
			"limits_broken": evaluate.Figure(.3), "within_oracle": evaluate.Figure(.7),
		},
		{
			"oracle_ratio": evaluate.Figure(.8), "final_ratio": evaluate.Figure(.81), "final_kept_ratio": evaluate.Figure(.81),
			"limits_broken": evaluate.Figure(0), "within_oracle": evaluate.Figure(1),
		},
	})
	for key, want := range map[string]float64{
		"within_1_03_of_oracle": 1, "tables_with_broken_limits": 1, "within_1_03_of_oracle_share": .85, "saving_share": (.2*.7 + .19) / .4,
	} {
		if got := s.Figure(key); !(math.Abs(float64(got)-want) <= tolerance) {
			t.Errorf("%s is %g, want %g", key, got, want)
		}
	}
}
