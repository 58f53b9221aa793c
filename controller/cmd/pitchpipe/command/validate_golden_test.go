package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestValidateAsAPersonReadsIt reads testdata/validate/*.txtar: a command line, the files
// that it names, and what is printed.
func TestValidateAsAPersonReadsIt(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/validate/*.txtar")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d goldens: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir, last := t.TempDir()+"/", len(golden.Files)-1
			for _, f := range golden.Files[:last] {
				if err := os.WriteFile(dir+f.Name, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var args []string
			for word := range strings.FieldsSeq(string(golden.Comment)) {
				if _, err := os.Stat(dir + word); err == nil {
					word = dir + word
				}
				args = append(args, word)
			}
			var out bytes.Buffer
			Run(t.Context(), World{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
			got := strings.ReplaceAll(out.String(), dir, "")
			if *update {
				golden.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(golden), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(golden.Files[last].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
