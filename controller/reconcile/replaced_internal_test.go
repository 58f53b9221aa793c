package reconcile

import (
	"testing"
	"time"

	"pitchpipe/driver"
)

func TestAJobIsAnotherOnceItsAttemptsBeganAnew(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	rec := &Record{Identity: Identity{Submitted: begun}, Course: Course{Runs: []Run{{Attempt: 1, Unit: "a.main"}, {Attempt: 2, Unit: "b.main"}}}}
	for _, tt := range []struct {
		name      string
		submitted time.Duration
		attempts  []driver.Attempt
		want      bool
	}{
		{"the same job", 0, []driver.Attempt{{Number: 1, Unit: "a.main"}, {Number: 2, Unit: "b.main"}}, false},
		{"put back into the queue, which its scheduler calls a submission", time.Minute, []driver.Attempt{{Number: 1}, {Number: 2}, {Number: 3}}, false},
		{"a later one that waits", time.Minute, nil, true},
		{"a later one in its first attempt", time.Minute, []driver.Attempt{{Number: 1, Unit: "c.main"}}, true},
		{"a later one in as many attempts", time.Minute, []driver.Attempt{{Number: 1, Unit: "c.main"}, {Number: 2, Unit: "d.main"}}, true},
		{"attempts that its scheduler forgot", 0, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := driver.Job{Submitted: begun.Add(tt.submitted), Attempt: len(tt.attempts), Attempts: tt.attempts}
			if got := replaced(rec, job); got != tt.want {
				t.Errorf("another: %v, want %v", got, tt.want)
			}
		})
	}
}
