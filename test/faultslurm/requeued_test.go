package faultslurm_test

import "testing"

func TestWhichCancelAccountingHasNothingOf(t *testing.T) {
	t.Parallel()
	const first, second = "2026-11-22T15:14:50", "2026-11-22T15:14:53"
	cancelled := func(restarts, start string) record {
		return record{"JobState": "CANCELLED", "Restarts": restarts, "StartTime": start}
	}
	tests := []struct {
		name string
		runs string
		rec  record
		want bool
	}{
		{"as its first run was put back", "REQUEUED|" + first, cancelled("1", first), true},
		{"as its second run was put back", "REQUEUED|" + first + "\nREQUEUED|" + second + "\n", cancelled("2", second), true},
		{"as it waited, and the row is still to come", "REQUEUED|" + first, cancelled("1", second), false},
		{"as it ran again, and the row is still to come", "REQUEUED|" + first, cancelled("2", second), false},
		{"as it waited", "REQUEUED|" + first + "\nCANCELLED by 999|None", cancelled("1", second), false},
		{"as it was put back, and slurmctld forgot that", "REQUEUED|" + first, cancelled("0", first), false},
		{"accounting knows nothing yet", "", cancelled("1", first), false},
		{"it has not been cancelled", "REQUEUED|" + first, record{"JobState": "NODE_FAIL", "Restarts": "1", "StartTime": first}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := leftRequeued(runsOf(tt.runs), tt.rec); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
