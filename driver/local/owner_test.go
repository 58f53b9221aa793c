package local_test

import (
	"bytes"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/local"
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

// The umask is the process's own, so that no test runs beside this one.
func TestAJobOfAnotherUserRunsInAStateThatWasClosedAndUnderAnyUmask(t *testing.T) {
	u := needsRootAndNobody(t)
	umask := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(umask) })
	b := newBench(t, func(c *local.Config) {
		if err := os.MkdirAll(filepath.Join(c.Dir, "jobs"), 0o700); err != nil { // as an earlier version made it
			t.Fatal(err)
		}
	})
	passable(t, b.dir)
	spec := script("id -u")
	spec.Owner, spec.Dir = "nobody", "/"
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	if text := output(t, b.d, job.ID); text != u.Uid+"\n" {
		t.Errorf("output %q, want user %s", text, u.Uid)
	}
	others := map[string]os.FileMode{".": 0o011, "jobs": 0o011, filepath.Join("jobs", string(job.ID)): 0o011} // all else is closed
	err := filepath.WalkDir(b.cfg.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(b.cfg.Dir, path)
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != others[name] {
			t.Errorf("%s has mode %v, want %v for others", name, info.Mode(), others[name])
		}
		return err
	})
	if err != nil {
		t.Error(err)
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

// Programs that stand for the directory service know a user that /etc/passwd does not.
func TestAJobRunsAsAUserOfTheDirectoryService(t *testing.T) {
	u := needsRootAndNobody(t)
	bin := t.TempDir()
	for program, says := range map[string]string{"getent": "far-away:x:" + u.Uid + ":" + u.Gid + "::/far:/bin/sh", "id": u.Gid + " 4711"} {
		text := "#!/bin/sh\n[ \"$1 $2 $3\" = 'passwd -- far-away' -o \"$1 $2 $3\" = '-G -- far-away' ] && echo " + says + "\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := os.Getenv("PATH")
	b := newBench(t, nil)
	passable(t, b.dir)
	t.Setenv("PATH", bin+":"+path)
	spec := script("id -u; id -g; id -G; echo $HOME $USER")
	spec.Owner, spec.Dir = "far-away", "/"
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	if got, want := output(t, b.d, job.ID), u.Uid+"\n"+u.Gid+"\n"+u.Gid+" 4711\n/far far-away\n"; got != want || job.Owner != "far-away" {
		t.Errorf("owner %q, output %q, want %q", job.Owner, got, want)
	}
	spec.Owner = "no-such-user-here"
	if _, err := b.d.Start(t.Context(), "unknown", spec); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a user whom nothing knows: %v, want %v", err, driver.ErrInvalid)
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

func TestAJobHasTheLimitsOfALoginAndNotTheSchedulers(t *testing.T) {
	t.Parallel()
	needsRootAndNobody(t)
	b := newBench(t, func(c *local.Config) {
		raised := "umask 077; ulimit -Sc hard; ulimit -Sl hard; ulimit -Sn hard; ulimit -Su hard; exec \"$@\""
		c.Supervisor = append([]string{"/bin/bash", "-c", raised, "raised"}, c.Supervisor...)
	})
	passable(t, b.dir)
	var files unix.Rlimit // where this machine has less than a login
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	spec := script("umask; ulimit -Sc; ulimit -Sl; ulimit -Hl; ulimit -Sn; ulimit -Hn; awk '/Max processes/ {print $3}' /proc/self/limits /proc/1/limits | uniq")
	spec.Source = bytes.Replace(spec.Source, []byte("#!/bin/sh"), []byte("#!/bin/bash"), 1)
	spec.Owner, spec.Dir = "nobody", "/"
	job := b.ended(t, b.start(t, "request", spec).ID, driver.Succeeded)
	text := output(t, b.d, job.ID)
	lines := strings.Fields(text)
	if len(lines) != 7 || !slices.Equal(lines[:6], []string{"0022", "0", "8192", "8192", "1024", strconv.FormatUint(min(files.Max, 524288), 10)}) {
		t.Errorf("umask, limits: %q", text)
	}
}

func TestOneUsersQueueIsBounded(t *testing.T) {
	t.Parallel()
	needsRootAndNobody(t)
	b := newBench(t, func(c *local.Config) { c.MaxPending = 3 })
	passable(t, b.dir)
	start := func(id, owner string) error {
		spec := script("exit 0")
		spec.Owner, spec.Dir, spec.NotBefore = owner, "/", time.Now().Add(time.Hour)
		_, err := b.d.Start(t.Context(), driver.RequestID(id), spec)
		return err
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := start(id, "nobody"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // one that is refused takes no place
		if err := start("4", "nobody"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "3 jobs of user nobody") {
			t.Errorf("the fourth: %v, want %v", err, driver.ErrDenied)
		}
	}
	if err := start("1", "nobody"); err != nil {
		t.Errorf("a request that is repeated: %v", err)
	}
	if err := start("5", "daemon"); err != nil {
		t.Errorf("another user: %v", err)
	}
	jobs, err := b.d.List(t.Context())
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%d jobs (%v), want 4", len(jobs), err)
	}
	if err := b.d.Stop(t.Context(), jobs[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := start("4", "nobody"); err != nil {
		t.Errorf("where one was cancelled: %v", err)
	}
}
