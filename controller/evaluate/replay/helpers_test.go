package replay_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trialsIn loads files of trials.
func trialsIn(t interface{ Fatal(...any) }, files ...string) records.Set {
	tables, err := records.Load(files, records.Trials)
	if err != nil {
		t.Fatal(err)
	}
	return records.Set{Trials: tables}
}

// asJSON prints a report, in which what is unknown equals what is unknown.
func asJSON(t interface{ Fatal(...any) }, report any) string {
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func equal(a, b result.Figure) bool { return math.Abs(float64(a-b)) < 1e-9 }
