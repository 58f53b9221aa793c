package sampler

import (
	"testing"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/node"
)

// online is a machine that says how many of its cores are.
type online int

// CPU says so.
func (o online) CPU() (node.CPU, error) { return node.CPU{Cores: int(o)}, nil }

// Load is of no use here.
func (o online) Load() (float64, error) { return 0, nil }

func TestIdleEnergyIsSharedAmongTheCoresThatAreOnlineNow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ began, now, want int }{
		"none has gone":        {8, 8, 8},
		"two are offline":      {8, 6, 6},
		"two have come":        {8, 10, 10},
		"the node did not say": {8, 0, 8},
	} {
		s := &Sampler{cfg: Config{Cores: tc.began}, node: online(tc.now), workers: map[string]*collector.Worker{}}
		if s.readNode(); s.cpu.Cores != tc.want {
			t.Errorf("%s: %d cores, want %d", name, s.cpu.Cores, tc.want)
		}
	}
}
