package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
)

func TestWhatAMessageMeans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says   string
		effect bool
		want   error
	}{
		{"slurm_load_jobs error: Invalid job id specified", false, driver.ErrNotFound},
		{"scancel: error: Kill job error on job id 12: Access/permission denied", true, driver.ErrDenied},
		{"Invalid user id for job 12", true, driver.ErrDenied},
		{"job script retrieval failed: Invalid user id", false, driver.ErrDenied},
		{"slurm_load_partitions: Unable to contact slurm controller (connect failure)", false, driver.ErrTransient},
		{"slurm_load_jobs error: Socket timed out on send/recv operation", false, driver.ErrTransient},
		{"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", true, driver.ErrUnknown},
		{"Job is no longer pending execution for job 2", true, driver.ErrConflict},
		{"Requested partition configuration not available now for job 3", true, driver.ErrInvalid},
		{"sbatch: error: This does not look like a batch script.", true, driver.ErrInvalid},
		{"sbatch: error: Ask for a project first\nsbatch: error: Batch job submission failed: Unspecified error", true, driver.ErrDenied},
		{"sbatch: error: Batch job submission failed: No partition specified or system default partition", true, driver.ErrDenied},
		{"sbatch: error: Batch job submission failed: More processors requested than permitted", true, driver.ErrDenied},
		{"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", true, driver.ErrNoRoom},
		{"sbatch: error: AssocGrpSubmitJobsLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", true, driver.ErrNoRoom},
		{"sbatch: error: QOSMaxCpuPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", true, driver.ErrDenied},
		{"something that no one has seen", false, driver.ErrTransient},
		{"something that no one has seen", true, driver.ErrUnknown},
	} {
		if got := command.Cause(tt.says, tt.effect); !errors.Is(got, tt.want) {
			t.Errorf("%q is %v, want %v", tt.says, got, tt.want)
		}
	}
}

// tool makes a command of a shell script.
func tool(t *testing.T, script string) command.Exec {
	t.Helper()
	dir := t.TempDir()
	// No other test may fork while the file is open: it could not be executed then.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return command.Exec{Bin: dir, Conf: "/conf", Timeout: time.Minute}
}

func TestACommandFindsTheEnvironmentThatWasMadeForIt(t *testing.T) {
	t.Setenv("SQUEUE_FORMAT", "%N")
	out, err := tool(t, "env").Run(t.Context(), command.Call{Name: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	env := string(out.Stdout)
	for _, want := range []string{"TZ=UTC\n", "SLURM_CONF=/conf\n", "SLURM_TIME_FORMAT=standard\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in\n%s", want, env)
		}
	}
	if strings.Contains(env, "SQUEUE_FORMAT") {
		t.Errorf("a variable of the user's shell came through:\n%s", env)
	}
}

func TestACommandThatHangsIsCutOff(t *testing.T) {
	t.Parallel()
	e := tool(t, "exec sleep 600")
	e.Timeout = 50 * time.Millisecond
	for effect, want := range map[bool]error{true: driver.ErrUnknown, false: driver.ErrTransient} {
		if _, err := e.Run(t.Context(), command.Call{Name: "tool", Effect: effect}); !errors.Is(err, want) {
			t.Errorf("effect %t: %v, want %v", effect, err, want)
		}
	}
}

func TestACommandThatDiesByASignalMayHaveHadItsEffect(t *testing.T) {
	t.Parallel()
	for effect, want := range map[bool]error{true: driver.ErrUnknown, false: driver.ErrDenied} {
		_, err := tool(t, "echo Access/permission denied >&2; kill -9 $$").Run(t.Context(), command.Call{Name: "tool", Effect: effect})
		if !errors.Is(err, want) {
			t.Errorf("effect %t: %v, want %v", effect, err, want)
		}
	}
}

func TestAFailedCommandSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := tool(t, "cat; echo Access/permission denied >&2; exit 3").Run(t.Context(), command.Call{Name: "tool", Stdin: []byte("x")})
	var failed *command.Failed
	if !errors.As(err, &failed) || failed.Status != 3 || !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "Access/permission denied") {
		t.Errorf("error %v, want status 3, its words, and %v", err, driver.ErrDenied)
	}
	if _, err := (command.Exec{Bin: "/nowhere"}).Run(t.Context(), command.Call{Name: "tool"}); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("a command that is missing: %v, want %v", err, driver.ErrTransient)
	}
}
