package slurm_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTrapsPageNamesTestsThatExist: every name in the second column, and each of the
// sections of what is known of Slurm.
func TestTheTrapsPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("TRAPS.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, root := range []string{".", "../../test", "../../exporter/attrib", "../../controller/report", "../../controller/daemon", "../../controller/reconcile"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"1", "2", "3", "3b", "4", "5", "6", "7"} {
		if !strings.Contains(string(page), "## "+n+" ") {
			t.Errorf("no section %s", n)
		}
	}
	rows, names := 0, 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 || strings.HasPrefix(line, "| trap") {
			continue
		}
		rows++
		for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(cells[1], -1) {
			name = strings.Trim(name, "`")
			if typed(name) {
				continue
			}
			names++
			if !strings.Contains(tests.String(), name) {
				t.Errorf("no test is named %q", name)
			}
		}
	}
	if rows < 60 || names < 75 {
		t.Errorf("%d traps and %d names of tests: is the page read?", rows, names)
	}
}

// typed tells of what is typed on a command line, and is no name of a test.
func typed(name string) bool {
	for _, program := range []string{"pitchpipe ", "make ", "scancel ", "requeue ", "report"} {
		if strings.HasPrefix(name, program) {
			return true
		}
	}
	return false
}
