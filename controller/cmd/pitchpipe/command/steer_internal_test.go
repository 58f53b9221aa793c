package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAJobThatIsOffLeavesAFileForTheTaskProlog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "slurm-env")
	for job, want := range map[string]bool{"42": true, "40_3": true, "../43": false} {
		if err := leaveOff(dir, job); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, job+".off")); (err == nil) != want {
			t.Errorf("job %s: %v", job, err)
		}
	}
	if err := leaveOff("", "42"); err != nil {
		t.Errorf("a site without such a folder: %v", err)
	}
}
