package nomad_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTrapsPageNamesTestsThatExist: every name in the second column, and each of the
// sections of what is known of Nomad.
func TestTheTrapsPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("TRAPS.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, root := range []string{"..", "../../test", "../../scripts", "../../controller", "../../exporter/attrib"} {
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
	for _, n := range []string{"2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"} {
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
			if name == "pitchpipe run" {
				continue
			}
			names++
			if !strings.Contains(tests.String(), name) {
				t.Errorf("no test is named %q", name)
			}
		}
	}
	if rows < 45 || names < 45 {
		t.Errorf("%d traps and %d names of tests: is the page read?", rows, names)
	}
}
