package local_test

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/driver"
)

func needsRootAndNobody(t *testing.T) *user.User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs jobs for others")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody: ", err)
	}
	return u
}

// passable lets other users through the test's directories.
func passable(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAJobRunsAsItsOwner(t *testing.T) {
	t.Parallel()
	u := needsRootAndNobody(t)
	b := newBench(t, nil)
	passable(t, b.dir)
	spec := script("id -u; id -g; id -G; echo $HOME $USER", "touch "+b.cfg.Dir+"/mine 2>/dev/null || echo refused")
	spec.Owner, spec.Dir = "nobody", "/"
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	lines := strings.Split(output(t, b.d, job.ID), "\n")
	if len(lines) < 5 || lines[0] != u.Uid || lines[1] != u.Gid || strings.Contains(" "+lines[2]+" ", " 0 ") ||
		lines[3] != u.HomeDir+" nobody" || lines[4] != "refused" {
		t.Errorf("output %q, want user %s, group %s, no group 0, home %s, and no rights in the state", lines, u.Uid, u.Gid, u.HomeDir)
	}
	if job.Owner != "nobody" {
		t.Errorf("owner %q, want nobody", job.Owner)
	}
}

func TestTheDriverReadsNothingForAJobThatItsOwnerMayNotRead(t *testing.T) {
	t.Parallel()
	needsRootAndNobody(t)
	b := newBench(t, nil)
	passable(t, b.dir)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	passable(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	// The job replaces its own output by a link to what it may not read.
	spec := script("#SBATCH --output=out.txt", "ln -sf "+secret+" out.txt")
	spec.Owner, spec.Dir = "nobody", dir
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	r, err := b.d.Logs(t.Context(), job.ID, 0)
	if !errors.Is(err, driver.ErrDenied) {
		t.Errorf("Logs: %v, want %v", err, driver.ErrDenied)
	}
	if err == nil {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnknownOwnerIsInvalid(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	spec := script("exit 0")
	spec.Owner = "no-such-user-here"
	if _, err := b.d.Start(t.Context(), "request", spec); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Start: %v, want %v", err, driver.ErrInvalid)
	}
}
