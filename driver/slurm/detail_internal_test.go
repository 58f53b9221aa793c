package slurm

import (
	"testing"

	"pitchpipe/driver/slurm/parse"
)

func TestAJobThatFailedSaysItsExitStatus(t *testing.T) {
	t.Parallel()
	for want, j := range map[string]parse.Job{
		"failed: exit status 3":               {State: "FAILED", Reason: "NonZeroExitCode", Exit: parse.Status{Exit: 3}},
		"failed: RaisedSignal:11(Segv)":       {State: "FAILED", Reason: "RaisedSignal:11(Segv)"},
		"out of memory: OutOfMemory":          {State: "OUT_OF_MEMORY", Reason: "OutOfMemory"},
		"completed":                           {State: "COMPLETED"},
		"cancelled":                           {State: "CANCELLED", Reason: "Resources"},
		"cancelled: DependencyNeverSatisfied": {State: "CANCELLED", Reason: "DependencyNeverSatisfied"},
	} {
		if got := detail(j); got != want {
			t.Errorf("%s for %s says %q, want %q", j.Reason, j.State, got, want)
		}
	}
}
