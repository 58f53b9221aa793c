package nomad

import (
	"errors"
	"testing"

	"pitchpipe/driver"
)

// An intent for a job that is about to begin leaves no record.
func TestAStepOfAJobWithoutARecordIsAnsweredAsItIs(t *testing.T) {
	t.Parallel()
	m := &move{f: &facts{}}
	for _, err := range []error{nil, driver.ErrTransient, driver.ErrUnsupported} {
		step, got := m.orClose(t.Context(), driver.Step{Kind: driver.StepRunning}, err)
		if step.Kind != driver.StepRunning || !errors.Is(got, err) {
			t.Errorf("%v is answered with %+v, %v", err, step, got)
		}
	}
}
