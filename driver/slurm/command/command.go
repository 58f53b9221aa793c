package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitchpipe/driver"
)

// DefaultTimeout bounds a call where Exec does not say.
const DefaultTimeout = 30 * time.Second

// Call is one command.
type Call struct {
	Name  string // squeue, scontrol, …
	Args  []string
	Stdin []byte

	// Effect: the command changes something, so that a call that was cut off may
	// have had its effect.
	Effect bool

	// Env replaces the environment, for sbatch, which gives its own to the job.
	Env []string
}

// String is the command line.
func (c Call) String() string { return c.Name + " " + strings.Join(c.Args, " ") }

// Output is what a command printed.
type Output struct {
	Stdout []byte
	Stderr []byte
	CPU    time.Duration // that the command took, user and system; 0 where no one knows
}

// Runner runs a call.
type Runner interface {
	// Run returns what was printed. Its errors wrap one of package driver's, and
	// are a *Failed where the command ended with another status than 0.
	Run(ctx context.Context, c Call) (Output, error)
}

// Ask returns what a command prints that changes nothing.
func Ask(ctx context.Context, run Runner, name string, args ...string) ([]byte, error) {
	out, err := run.Run(ctx, Call{Name: name, Args: args})
	return out.Stdout, err
}

// Read is Ask for what can be read. What cannot is driver.ErrTransient: it is read again.
func Read[T any](ctx context.Context, run Runner, read func([]byte) (T, error), name string, args ...string) (v T, err error) {
	out, err := Ask(ctx, run, name, args...)
	if err != nil {
		return v, err
	}
	if v, err = read(out); err != nil {
		return v, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	return v, nil
}

// Launcher starts a command that outlives the call, and this process.
type Launcher interface {
	// Launch returns when the command was started. How it ends is unknown.
	Launch(c Call) error
}

// Failed is a command that ended with another status than 0.
type Failed struct {
	Call   Call
	Status int
	Stderr string
	Cause  error // one of package driver's
}

// Error is one line.
func (f *Failed) Error() string {
	text := strings.Join(strings.Fields(f.Stderr), " ")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return fmt.Sprintf("%s: %s (status %d): %v", f.Call.Name, text, f.Status, f.Cause)
}

// Unreached reports whether a command certainly had no effect: slurmctld could not
// even be connected to.
func (f *Failed) Unreached() bool {
	return errors.Is(f.Cause, driver.ErrTransient) && (strings.Contains(f.Stderr, "connect failure") || strings.Contains(f.Stderr, "Connection refused"))
}

// Unwrap is one of package driver's errors.
func (f *Failed) Unwrap() error { return f.Cause }

// Exec runs the commands that are installed.
type Exec struct {
	Bin     string        // directory of the commands; empty = found by PATH
	Conf    string        // SLURM_CONF; empty = that of this process, or the site's
	Timeout time.Duration // 0 = DefaultTimeout

	// Credential, where not nil, is the user that the commands run as. Only root
	// has a choice.
	Credential *syscall.Credential
}

// Run runs the call.
func (e Exec) Run(ctx context.Context, c Call) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Timeout, DefaultTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(e.Bin, c.Name), c.Args...)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	cmd.Env = e.env(c)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	// Its own group: Ctrl-C at the terminal of this process is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: e.Credential, Setpgid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	out := Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if cmd.ProcessState != nil {
		out.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err == nil {
		return out, nil
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	cause := unclear(c.Effect)
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("%s: cut off: %w: %w", c.Name, cause, context.Cause(ctx))
	case !ended:
		return out, fmt.Errorf("%s: %w: %w", c.Name, driver.ErrTransient, err)
	case !c.Effect || exit.ExitCode() >= 0: // else it is a signal, and no one knows how far it came
		cause = Cause(stderr.String(), c.Effect)
	}
	return out, &Failed{Call: c, Status: exit.ExitCode(), Stderr: stderr.String(), Cause: cause}
}

// unclear is the error of a command whose outcome is not known.
func unclear(effect bool) error {
	if effect {
		return driver.ErrUnknown
	}
	return driver.ErrTransient
}

// Launch starts the call in its own session.
func (e Exec) Launch(c Call) error {
	cmd := exec.Command(filepath.Join(e.Bin, c.Name), c.Args...) //nolint:noctx // it is not this process's to end
	cmd.Env = e.env(c)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: e.Credential, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w: %w", c.Name, driver.ErrTransient, err)
	}
	go func() { _ = cmd.Wait() }() // so that nothing is left of it when it ends
	return nil
}

func (e Exec) env(c Call) []string {
	env := c.Env
	if env == nil {
		env = []string{"PATH=" + Path(), "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=standard", "SLURM_BITSTR_LEN=0"}
		for _, name := range []string{"HOME", "USER", "LOGNAME"} {
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	if conf := cmp.Or(e.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return env
}

// Path is this process's PATH, or the usual one.
func Path() string {
	return cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")
}

// Cause is the one of package driver's errors for a command's message. A message
// that is not known is driver.ErrTransient: another look does no harm. Of a
// command that has an effect it is driver.ErrUnknown.
func Cause(stderr string, effect bool) error {
	says := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(stderr), strings.ToLower(t)) })
	}
	switch {
	case says("submission failed: Unspecified error"): // the site's plugin refuses it, in words of its own
		return driver.ErrDenied
	case says("Invalid job id", "Invalid job_id", "Invalid job array ID"):
		return driver.ErrNotFound
	case says("Socket timed out", "Zero Bytes were transmitted", "Unexpected message received", "Connection reset"):
		return unclear(effect)
	case says("Unable to contact", "connect failure", "Connection refused", "standby mode", "Munge", "temporarily unable", "try again"):
		return driver.ErrTransient
	case says("MaxSubmitJob", "GrpSubmitJobs"): // until a job of those has ended
		return driver.ErrNoRoom
	case says("denied", "Invalid user id", "disabled", "not permitted", "User does not have", "Invalid account or account/partition",
		"Invalid qos", "violates accounting", "No partition specified", "More processors requested"):
		return driver.ErrDenied
	case says("no longer pending", "already completing or completed", "is pending execution", "already finished",
		"not heterogeneous job leader", "in progress"):
		return driver.ErrConflict
	case says("not available", "can not be satisfied", "does not look like a batch script", "invalid", "unrecognized option",
		"Unable to open file", "too large", "exceeds", "DOS line breaks", "contains a NUL character", "ambiguous option"):
		return driver.ErrInvalid
	}
	return unclear(effect)
}
