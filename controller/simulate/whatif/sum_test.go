package whatif_test

import (
	"testing"

	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/simulate/whatif"
)

func TestAnIntervalWantsSeveralUsersOrDays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		users  []string
		apart  float64 // seconds between submissions
		spread bool
	}{
		{"one user and one day", []string{"ann"}, 4000, false},
		{"two users", []string{"ann", "bob"}, 4000, true},
		{"two days", []string{"ann"}, 8000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var l joblog.Log
			for i := range 20 {
				at := 1 + tt.apart*float64(i)
				l.Jobs = append(l.Jobs, joblog.Job{
					User: tt.users[i%len(tt.users)], Name: "fold", Submit: at, Start: at, Duration: 3600, CPUs: 16, CPUSeconds: 3600, Limit: 7200,
				})
			}
			r, err := whatif.Study(t.Context(), l, whatif.Options{Shape: simulate.Shape{Nodes: 1, CoresPerNode: 16}}, func(int, int, string) {})
			if err != nil {
				t.Fatal(err)
			}
			row := r.Rows[2] // with fewer cores
			if saved := row.Figure("core_hours") < r.Rows[1].Figure("core_hours"); !saved || row.Figure("core_hours_low").Known() != tt.spread {
				t.Errorf("%+v", row)
			}
		})
	}
}
