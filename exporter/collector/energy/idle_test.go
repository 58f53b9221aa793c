package energy_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/collector/energy"
)

// calm steps a meter of one package through intervals of a second.
type calm struct {
	t    *testing.T
	tree *tree
	m    *energy.Measured
	at   time.Time
}

func newCalm(t *testing.T) *calm {
	t.Helper()
	s := newTree(t, map[string]string{"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram"}, 1e12)
	m, err := energy.NewPowercap(s.root(), energy.Model{Idle: 100, Max: 400})
	if err != nil {
		t.Fatal(err)
	}
	c := &calm{t: t, tree: s, m: m, at: time.Unix(1_800_000_000, 0)}
	if _, _, err := step(t.Context(), m, energy.Activity{Cores: 8, At: c.at}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *calm) step(seconds int, busy, watts, dram float64) (s energy.Split) {
	c.t.Helper()
	for range seconds {
		c.tree.add("intel-rapl:0", watts)
		c.tree.add("intel-rapl:0:0", dram)
		c.at = c.at.Add(time.Second)
		var err error
		if s, _, err = step(c.t.Context(), c.m, energy.Activity{Elapsed: time.Second, At: c.at, Busy: busy, Cores: 8}); err != nil {
			c.t.Fatal(err)
		}
	}
	return s
}

func (c *calm) want(watts float64, basis string) {
	c.t.Helper()
	if got, how := c.m.IdleWatts(); math.Abs(got-watts) > 1e-6 || how != basis {
		c.t.Errorf("idle %v W, %s; want %v W, %s", got, how, watts, basis)
	}
}

func TestIdlePowerIsCalibratedAndDated(t *testing.T) {
	t.Parallel()
	c := newCalm(t)
	c.want(100, "modelled")
	if s := c.step(1, 4, 250, 20); s.Idle != 100 {
		t.Errorf("%v J idle before anything is known, want the model's 100", s.Idle)
	}
	c.step(3, 1, 90, 10)
	c.want(90, "observed") // which is no more than a bound
	c.step(9, 0.05, 60, 6) // not for long enough
	c.step(1, 4, 250, 20)
	c.want(60, "observed")
	c.step(10, 0.05, 62, 6)
	c.want(68, "calibrated")
	first := c.at
	c.step(100, 4, 250, 20)
	c.step(10, 0.05, 64, 7) // higher, and not a day later
	c.want(68, "calibrated")
	c.step(10, 0.05, 61, 7)
	c.want(67, "calibrated")
	later := c.at
	if diff := cmp.Diff([]energy.Calibration{{ID: "intel-rapl:0", Watts: 61, At: later}, {ID: "intel-rapl:0:0", Watts: 6, At: first}}, c.m.Calibrations()); diff != "" {
		t.Errorf("calibrations (-want +got):\n%s", diff)
	}
	c.at = c.at.Add(25 * time.Hour)
	c.step(10, 0.05, 64, 7)
	c.want(71, "calibrated")
	if s := c.step(1, 4, 250, 20); s.Idle != 71 || s.Total != 270 || len(s.Parts) != 2 || s.Parts[1].Idle != 7 {
		t.Errorf("%+v, want 71 J idle, of which 7 are the DRAM's", s)
	}
	if s := c.step(1, 4, 50, 20); s.Parts[0].Idle != 50 {
		t.Errorf("%+v: no part is idle for more than it took", s)
	}
}

func TestIdlePowerIsLearnedFromShortIntervalsToo(t *testing.T) {
	t.Parallel()
	c := newCalm(t)
	quarters := func(n int, busy float64) {
		for range n {
			c.tree.add("intel-rapl:0", 15)
			c.at = c.at.Add(250 * time.Millisecond)
			if _, _, err := step(t.Context(), c.m, energy.Activity{Elapsed: 250 * time.Millisecond, At: c.at, Busy: busy, Cores: 8}); err != nil {
				t.Fatal(err)
			}
		}
	}
	quarters(1, 1)
	c.want(100, "modelled") // which is no longer than a counter's grain
	quarters(39, 1)
	c.want(60, "observed")
	quarters(39, 0.01)
	c.want(60, "observed")
	quarters(1, 0.01)
	if got := c.m.Calibrations(); len(got) != 1 || got[0].Watts != 60 {
		t.Errorf("calibrations %+v, want 60 W", got)
	}
}

func TestACalibrationIsBelievedUntilThereIsABetterOne(t *testing.T) {
	t.Parallel()
	c := newCalm(t)
	c.m.Recall([]energy.Calibration{{ID: "intel-rapl:0", Watts: 55, At: c.at.Add(-time.Hour)}, {ID: "other", Watts: 3}, {ID: "intel-rapl:0:0"}})
	c.want(55, "calibrated") // of the DRAM nothing is known
	c.step(10, 0, 60, 5)
	c.want(60, "calibrated")
	c.step(10, 0, 52, 5)
	c.want(57, "calibrated")
}

func TestASocketThatRestsIsCalibratedWhileTheOtherWorks(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}, 1e12)
	m, err := energy.NewPowercap(s.root(), energy.Model{Idle: 100, Max: 400})
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Busy: 8, Cores: 16, Packages: map[int]energy.Cores{0: {Busy: 8, Count: 8}, 1: {Count: 8}}}
	for range 12 {
		s.add("intel-rapl:0", 200)
		s.add("intel-rapl:1", 40)
		if _, _, err := step(t.Context(), m, act); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Calibrations(); len(got) != 1 || got[0].ID != "intel-rapl:1" || got[0].Watts != 40 {
		t.Errorf("calibrations %+v, want the second socket's 40 W", got)
	}
}
