package broker_test

import (
	"errors"
	"strings"
	"testing"

	"pitchpipe/driver"
)

func TestANewlineInANameForgesNoRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) {
		whole := *j
		j.admin, j.name = "", "x\n"+strings.TrimSpace(whole.record("7"))+"\nJobId=9 JobName=x"
	})
	err := errors.Join(r.client.Signal(t.Context(), "7", "SIGUSR1"))
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than one line") {
		t.Errorf("%v, want %v, since the record has several lines", err, driver.ErrDenied)
	}
	if did := r.f.did(); len(did) > 0 {
		t.Errorf("done all the same: %q", did)
	}
}
