package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePagesOfTrapsNameTestsThatExist: every name in the second column, and each of the sections of what is known.
func TestThePagesOfTrapsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	typed := regexp.MustCompile("^(pitchpipe |make |scancel |requeue |report)") // on a command line
	for _, c := range []struct {
		page, sections string
		rows, names    int
	}{
		{"nomad", "2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9", 45, 45},
		{"slurm", "1 2 3 3b 4 5 6 7", 60, 75},
	} {
		page, err := os.ReadFile(filepath.Join("../../driver", c.page, "TRAPS.md"))
		if err != nil {
			t.Fatal(err)
		}
		for n := range strings.FieldsSeq(c.sections) {
			if !strings.Contains(string(page), "## "+n+" ") {
				t.Errorf("%s: no section %s", c.page, n)
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
				if name = strings.Trim(name, "`"); typed.MatchString(name) {
					continue
				}
				names++
				if !strings.Contains(tests.String(), name) {
					t.Errorf("%s: no test is named %q", c.page, name)
				}
			}
		}
		if rows < c.rows || names < c.names {
			t.Errorf("%s: %d traps and %d names of tests: is the page read?", c.page, rows, names)
		}
	}
}
