package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
)

// File descriptors that the supervisor hands to the stage. Both close when the
// job is executed, which is how the supervisor knows.
const (
	reportFD = 3
	goFD     = 4
)

// Exit statuses of a stage that could not execute the job, as shells have them.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

// fault is why the stage could not execute the job.
type fault struct {
	Code   int    `json:"code"`
	Detail string `json:"detail"`
}

// stage becomes the job. It returns only where it could not, and has told so.
func stage(dir string) int {
	unix.CloseOnExec(reportFD)
	unix.CloseOnExec(goFD)
	report := os.NewFile(reportFD, "report")
	err := stageExec(dir, os.NewFile(goFD, "go"))
	f := fault{Code: codeCannotRun, Detail: err.Error()}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		f.Code = codeNotFound
	}
	if err := json.NewEncoder(report).Encode(f); err != nil {
		return codeCannotRun
	}
	return f.Code
}

func stageExec(dir string, ready io.Reader) error {
	var plan Plan
	if err := durable.ReadJSON(filepath.Join(dir, PlanFile), &plan); err != nil {
		return err
	}
	// Until the supervisor has put this process into the job's cgroups and has
	// written down who it is. End of file means that the supervisor died.
	if n, err := ready.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("the supervisor went away: %w", err)
	}
	// Affinity belongs to the thread that executes the job.
	runtime.LockOSThread()
	if err := cgroup.Bind(0, plan.CPUs); err != nil {
		return err
	}
	if err := plan.User.become(); err != nil {
		return err
	}
	if err := os.Chdir(plan.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	err := openOutput(plan)
	if err != nil {
		return err
	}
	// The command is looked for as the job's own PATH has it.
	os.Clearenv()
	for _, e := range plan.Env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			err = os.Setenv("PATH", path)
		}
	}
	path, errLook := exec.LookPath(plan.Argv[0])
	if !errors.Is(errLook, exec.ErrDot) { // the job may name the folder that it begins in
		err = errors.Join(err, errLook)
	}
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, plan.Argv, plan.Env); err != nil {
		return fmt.Errorf("executing %s: %w", path, err)
	}
	return nil
}

// become gives up the supervisor's rights for the user's.
func (u *User) become() error {
	if u == nil {
		return nil
	}
	if err := limit(); err != nil {
		return err
	}
	groups := make([]int, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = int(g)
	}
	err := syscall.Setgroups(groups)
	if err == nil {
		err = syscall.Setgid(int(u.GID))
	}
	if err == nil {
		err = syscall.Setuid(int(u.UID))
	}
	if err != nil {
		return fmt.Errorf("becoming user %d of group %d: %w", u.UID, u.GID, err)
	}
	return nil
}

// openOutput puts the job's output at its standard output and error. It is
// opened with the user's rights, and always for appending, so that no attempt
// overwrites another's lines.
func openOutput(plan Plan) error {
	flags := unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC
	if plan.Truncate {
		flags |= unix.O_TRUNC
	}
	fd, err := unix.Open(plan.Output, flags, 0o644)
	if err != nil {
		return fmt.Errorf("output %s: %w", plan.Output, err)
	}
	for _, target := range []int{1, 2} {
		if err := unix.Dup3(fd, target, 0); err != nil {
			return fmt.Errorf("output %s: %w", plan.Output, err)
		}
	}
	for _, note := range plan.Notes {
		if _, err := unix.Write(fd, []byte("pitchpipe: "+note+"\n")); err != nil {
			return fmt.Errorf("output %s: %w", plan.Output, err)
		}
	}
	return nil
}

// limit lowers the process's limits to those of a login where an administrator says nothing
// else: the scheduler's own, which its service may have raised, are not for its jobs.
func limit() error {
	var boot unix.Rlimit // of the machine's first process: what the kernel thinks fit
	if err := unix.Prlimit(1, unix.RLIMIT_NPROC, nil, &boot); err != nil {
		return fmt.Errorf("limits of the machine: %w", err)
	}
	for resource, most := range map[int]unix.Rlimit{
		unix.RLIMIT_CORE:    {Cur: 0, Max: unix.RLIM_INFINITY},
		unix.RLIMIT_MEMLOCK: {Cur: 8 << 20, Max: 8 << 20},
		unix.RLIMIT_NOFILE:  {Cur: 1024, Max: 512 << 10},
		unix.RLIMIT_NPROC:   boot,
	} {
		var now unix.Rlimit
		err := unix.Getrlimit(resource, &now)
		if err == nil {
			now.Max = min(now.Max, most.Max)
			now.Cur = min(now.Cur, most.Cur, now.Max)
			err = unix.Setrlimit(resource, &now)
		}
		if err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	unix.Umask(0o022) // of a login
	return nil
}
