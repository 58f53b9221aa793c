package sampler

import (
	"testing"

	"pitchpipe/exporter/attrib"
)

func TestATaskThatIsStartedAgainInItsEmptyCgroupIsALaterStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		manager string
		over    bool
		pids    []int
		want    bool
	}{
		"it is over, and something runs": {attrib.Nomad, true, []int{7}, true},
		"it is over, and nothing runs":   {attrib.Nomad, true, nil, false},
		"it is not over":                 {attrib.Nomad, false, []int{7}, false},
		"what another scheduler left":    {attrib.Slurm, true, []int{7}, false},
	} {
		f := scanned{Found: attrib.Found{Key: attrib.Key{Manager: tt.manager, ID: "x", Attempt: 1}, Pids: tt.pids}, anyone: len(tt.pids) > 0}
		j := &job{found: f.Found}
		got := j.restarted(f)
		if tt.over {
			s := &Sampler{leftovers: map[attrib.Key]leftover{f.Key: {f.Found, j}}}
			got = !s.isLeftover(f)
		}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
