package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

func TestDurationsAreForecastFromALog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	log.WriteString("user,name,submit,duration,cpus\n")
	for i := range 600 { // three weeks of an hour's distance: ada's jobs take a minute, bob's an hour
		fmt.Fprintf(&log, "%s,train%d,%d,%d,4\n", []string{"ada", "bob"}[i%2], i, 1_600_000_000+3000*i, []int{60, 3600}[i%2]+i%7)
	}
	log.WriteString("ada,broken,1,-5,4\n")
	file, folder := write(t, "jobs.csv", log.String()), filepath.Join(t.TempDir(), "terms")
	got := pitchpipe(t, "durations", file, "--format", "csv", "--plot", folder, "--json")
	var r struct {
		Rows    []map[string]any
		Summary struct {
			Jobs  int
			Left  int     `json:"lines_left_out"`
			MAE   float64 `json:"mae"`
			Plain float64 `json:"mae_median_of_all"`
			Terms []struct{ Term string }
		}
	}
	if err := json.Unmarshal([]byte(got.out), &r); got.code != command.ExitOK || err != nil {
		t.Fatal(got.code, err, got.errors)
	}
	if s := r.Summary; s.Jobs != 600 || s.Left != 1 || s.MAE > 0.1*s.Plain || len(s.Terms) == 0 {
		t.Errorf("%+v", s)
	}
	if svg, err := os.ReadFile(filepath.Join(folder, "user.svg")); err != nil || !strings.Contains(string(svg), "bob (300)") { //nolint:gosec // a test names it
		t.Errorf("%.300s %v", svg, err)
	}
	if got = pitchpipe(t, "durations", file, "--format", "csv"); got.code != command.ExitOK || !strings.Contains(got.out, "TERM") {
		t.Error(got)
	}
	none := filepath.Join(t.TempDir(), "none")
	for _, wrong := range [][]string{
		{"durations", file},
		{"durations", file, "--format", "pbs"},
		{"durations", file + ".none", "--format", "csv", "--plot", none},
		{"durations", write(t, "short.csv", "submit,duration,cpus\n1,2,3\n"), "--format", "csv"},
	} {
		if got := pitchpipe(t, wrong...); got.code != command.ExitInvalid || got.out != "" || got.errors == "" {
			t.Errorf("%v: %v", wrong, got)
		}
		if _, err := os.Stat(none); err == nil {
			t.Errorf("%v leaves a folder", wrong)
		}
	}
}
