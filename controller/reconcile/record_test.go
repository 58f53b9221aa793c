package reconcile_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pitchpipe/controller/reconcile"
)

func TestRecordsOfOlderVersionsAreRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, fields string
		phase        reconcile.Phase
		unreachable  bool
	}{
		{"it waits for its start", `"phase":"eligible"`, reconcile.Waiting, false},
		{"it is profiled", `"phase":"classified"`, reconcile.Profiling, false},
		{"it is moved", `"phase":"moving"`, reconcile.Changing, false},
		{"its scheduler was away", `"phase":"suspended","before":"probing"`, reconcile.Changing, true},
		{"it is held for now", `"phase":"held"`, reconcile.Held, false},
		{"it is held for good", `"phase":"held","final":true`, reconcile.Settled, false},
		{"it could not be handled", `"phase":"failed"`, reconcile.Settled, false},
		{"it was cancelled", `"phase":"cancelled"`, reconcile.Ended, false},
		{"it is of this version", `"phase":"verifying"`, reconcile.Verifying, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var r reconcile.Record
			if err := json.Unmarshal(fmt.Appendf(nil, `{"job":"7",%s}`, tc.fields), &r); err != nil {
				t.Fatal(err)
			}
			if r.Job != "7" || r.Phase != tc.phase || r.Unreachable != tc.unreachable {
				t.Errorf("job %q is %s, unreachable %t; want %s, %t", r.Job, r.Phase, r.Unreachable, tc.phase, tc.unreachable)
			}
		})
	}
}
