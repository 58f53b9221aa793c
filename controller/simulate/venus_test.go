package simulate_test

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
)

func venus(t testing.TB) simulate.Input {
	t.Helper()
	l, err := joblog.Read(joblog.Venus, evaluatetest.Path(t, "lucid-venus"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := simulate.Prepare(l, simulate.Shape{})
	if err != nil || len(in.Log.Broken) > 0 {
		t.Fatal(err, in.Log.Broken)
	}
	return in
}

// published are the cells of a table of published results, by the id of a job and the column.
func published(t testing.TB, policy string) map[string]map[string]string {
	t.Helper()
	file, err := os.Open(evaluatetest.Path(t, "lucid-venus", "expected", "jobs_"+policy+".csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, row := range rows[1:] {
		cells := map[string]string{}
		for i, name := range rows[0] {
			cells[name] = row[i]
		}
		out[cells["job_id"]] = cells
	}
	return out
}

func TestEachJobEndsAsPublished(t *testing.T) {
	t.Parallel()
	in := venus(t)
	for _, spec := range simulate.Specs() {
		if spec.Name == "easy" || spec.Name == "pitchpipe" { // not published
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			want := published(t, spec.Name)
			r, err := simulate.Run(t.Context(), in, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Jobs) != len(want) {
				t.Fatalf("%d jobs, want %d", len(r.Jobs), len(want))
			}
			differ := 0
			for _, j := range r.Jobs {
				w := want[j.ID]
				got := fmt.Sprintf("%.0f %.0f %.0f %d", j.First, j.End, j.Wait, j.Preempted)
				if want := w["start_time"] + " " + w["end_time"] + " " + w["queue"] + " " + w["ckpt_times"]; got != want {
					if differ++; differ < 5 {
						t.Errorf("job %s of %s: start, end, wait and preemptions are %s, want %s", j.ID, j.Group, got, want)
					}
				}
				for i, c := range spec.Columns {
					if cell := spec.Cells(j)[i]; strconv.FormatFloat(cell, 'f', -1, 64) != cmp.Or(strings.TrimSuffix(w[c], ".0"), "NaN") {
						if differ++; differ < 5 {
							t.Errorf("job %s of %s: %s is %g, want %q", j.ID, j.Group, c, cell, w[c])
						}
					}
				}
			}
			if differ > 0 {
				t.Errorf("%d jobs differ", differ)
			}
		})
	}
}
