package jobspec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/test/nomadserver/jobspec"
)

// The facts about an agent's parser are in test/nomadserver/facts.

func TestShippedJobFilesAreRead(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../../jobspecs/nomad/*.hcl")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, name := range found {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = jobspec.Parse(string(src), "")
		// A stanza is for pitchpipe run, which takes it out before.
		if err != nil && (!strings.Contains(err.Error(), `Blocks of type "tuning" are not expected here.`) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"batch", "periodic"} {
		src, err := os.ReadFile("../facts/testdata/" + name + ".hcl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src), "list = [\"a\"]")
	}
	f.Fuzz(func(t *testing.T, src, variables string) {
		job, err := jobspec.Parse(src, variables)
		if err == nil && (job.ID == nil || job.Name == nil) {
			t.Errorf("a job without a name: %q", src)
		}
	})
}
