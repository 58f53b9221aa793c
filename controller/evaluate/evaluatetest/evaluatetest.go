package evaluatetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/evaluate"
)

// Path is where a file of recorded runs is: in the folder that PITCHPIPE_DATA names,
// else next to the repository. The test is skipped where there is none, and with -short,
// since replaying them takes a while.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("replays recorded runs for a while: not with -short")
	}
	folder := os.Getenv("PITCHPIPE_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
		if _, err := os.Stat(folder); err != nil { // the package of the test is one folder deeper
			folder = filepath.Join("..", folder)
		}
	}
	path := filepath.Join(append([]string{folder}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no recorded runs: %v; PITCHPIPE_DATA names their folder", err)
	}
	return path
}

// Recorded reads files of recorded runs, or skips the test as Path does.
func Recorded(t testing.TB, f evaluate.Format, files ...string) []evaluate.Table {
	t.Helper()
	var out []evaluate.Table
	for _, file := range files {
		table, err := evaluate.Read(Path(t, file), f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, table)
	}
	return out
}

// Table parses a table that the test contains.
func Table(t testing.TB, name, text string, f evaluate.Format) evaluate.Table {
	t.Helper()
	out, err := evaluate.Parse(name, strings.NewReader(text), f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Quiet ignores progress.
func Quiet(int, int, string) {}
