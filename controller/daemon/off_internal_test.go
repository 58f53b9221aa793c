package daemon

import (
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestAJobThatSaysSoItselfIsOff(t *testing.T) {
	t.Parallel()
	p := &pauses{on: map[string]api.Pause{}, off: map[string]string{}}
	if got := p.gate(driver.Job{ID: "7", Off: true}); got != tuning.ReasonOff {
		t.Errorf("gate %q, want %q", got, tuning.ReasonOff)
	}
	if got := p.gate(driver.Job{ID: "7"}); got != tuning.ReasonNone {
		t.Errorf("gate %q of another, want none", got)
	}
}
