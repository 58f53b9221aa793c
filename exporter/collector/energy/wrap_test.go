package energy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pitchpipe/exporter/collector/energy"
)

// A day of a package at a steady load with some noise, read as the sampler reads it, and
// looked at by scrapes: what ours has lost, and what a reader has that takes the raw
// counter at each scrape and a fall as a reset.
func TestADayOfWrapsLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		intel = 262_143_328_850
		amd   = 65_532_610_987
		dram  = 65_712_999_613
		short = 1<<32 - 1
	)
	scrapes := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	for _, tc := range []struct {
		name  string
		watts float64
		wrap  uint64
		said  uint64 // by the kernel; 0 = unreadable
	}{
		{"262 kJ at 150 W", 150, intel, intel},
		{"262 kJ at 350 W", 350, intel, intel},
		{"262 kJ at 500 W", 500, intel, intel},
		{"65 kJ at 150 W", 150, amd, amd},
		{"65 kJ at 280 W", 280, amd, amd},
		{"65 kJ at 500 W", 500, amd, amd},
		{"65.7 kJ of DRAM at 150 W", 150, dram, dram},
		{"32 bits of microjoules at 150 W", 150, short, short},
		{"32 bits of microjoules at 500 W", 500, short, short},
		{"65 kJ at 400 W whose range cannot be read", 400, amd, 0},
		{"65 kJ at 400 W whose range is said to be 262 kJ", 400, amd, intel},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newTree(t, map[string]string{"intel-rapl:0": "package-0"}, tc.wrap)
			if tc.said == 0 {
				s.write("intel-rapl:0", "max_energy_range_uj", "unknown\n")
			} else {
				s.write("intel-rapl:0", "max_energy_range_uj", fmt.Sprintln(tc.said))
			}
			p, err := energy.NewPowercap(s.root(), energy.DefaultModel(64))
			if err != nil {
				t.Fatal(err)
			}
			// The sampler's own timer: a quarter of the shortest wrap, and no less often
			// than it may be told to.
			every := min(p.Within(), 15*time.Second)
			if quarter := time.Duration(float64(tc.wrap) / 1e6 / tc.watts / 4 * float64(time.Second)); every > quarter {
				t.Fatalf("read each %v, a quarter of a wrap is %v", every, quarter)
			}
			rng := rand.New(rand.NewPCG(3, uint64(tc.watts)))
			if _, _, err := step(t.Context(), p, energy.Activity{Cores: 64}); err != nil {
				t.Fatal(err)
			}
			naive := make([]float64, len(scrapes))
			seen := make([]uint64, len(scrapes))
			next := make([]time.Duration, len(scrapes))
			for i := range scrapes {
				seen[i], next[i] = s.zones["intel-rapl:0"].value, scrapes[i]
			}
			var truth, got float64
			for at := every; at <= 24*time.Hour; at += every {
				joules := math.Round(tc.watts*(0.95+0.1*rng.Float64())*every.Seconds()*1e6) / 1e6
				s.add("intel-rapl:0", joules)
				truth += joules
				split, ok, err := step(t.Context(), p, energy.Activity{Elapsed: every, Busy: 40, Cores: 64})
				if err != nil || !ok {
					t.Fatalf("ok %v, err %v", ok, err)
				}
				got += split.Total
				now := s.zones["intel-rapl:0"].value
				for i, step := range scrapes {
					if at < next[i] {
						continue
					}
					next[i] += step
					if now >= seen[i] {
						naive[i] += float64(now-seen[i]) / 1e6
					} else {
						naive[i] += float64(now) / 1e6
					}
					seen[i] = now
				}
			}
			if lost := 1 - got/truth; math.Abs(lost) > 1e-3 {
				t.Errorf("lost %.4f %% of %.0f J", 100*lost, truth)
			}
			text := ""
			for i, step := range scrapes {
				text += fmt.Sprintf(" %v: %.1f %%", step, 100*naive[i]/truth)
			}
			t.Logf("read each %v: %.4f %% of the truth; the raw counter at each scrape has%s", every, 100*got/truth, text)
			if naive[len(naive)-1] > 0.99*truth {
				t.Errorf("the raw counter has %.0f of %.0f J: it did not wrap", naive[len(naive)-1], truth)
			}
		})
	}
}
