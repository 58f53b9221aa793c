package replay

import (
	"math"
	"testing"
)

// The final settings of three seeds in ten are cheaper than the oracle's since they break
// a limit: that is no table within its cost, and nothing is saved by it.
func TestABrokenLimitDoesNotFlatter(t *testing.T) {
	t.Parallel()
	s := TunerInput{Seeds: 10}.summary([]TunerRow{
		{OracleRatio: .8, FinalRatio: .7*.8 + .3*.5, FinalKept: .7*.8 + .3, LimitsBroken: .3, WithinOracle: .7},
		{OracleRatio: .8, FinalRatio: .81, FinalKept: .81, WithinOracle: 1},
	})
	if s.WithinOracle != 1 || s.Broken != 1 || math.Abs(float64(s.WithinShare-.85)) > tolerance {
		t.Errorf("%d tables within, %d broken, %g of the seeds", s.WithinOracle, s.Broken, s.WithinShare)
	}
	if want := (.2*.7 + .19) / .4; math.Abs(float64(s.SavingShare)-want) > tolerance {
		t.Errorf("%g of the oracle's saving, want %g", s.SavingShare, want)
	}
}
