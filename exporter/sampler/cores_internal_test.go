package sampler

import (
	"testing"
	"time"

	"pitchpipe/exporter/collector/node"
)

func TestIdleEnergyIsSharedAmongTheCoresThatAreOnlineNow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ began, now, want int }{
		"none has gone":        {8, 8, 8},
		"two are offline":      {8, 6, 6},
		"two have come":        {8, 10, 10},
		"the node did not say": {8, 0, 8},
	} {
		s := &Sampler{cfg: Config{Cores: tc.began}, cpu: node.CPU{Cores: tc.now}}
		if got := s.moment(time.Unix(100, 0)).cores; got != tc.want {
			t.Errorf("%s: %d cores, want %d", name, got, tc.want)
		}
	}
}
