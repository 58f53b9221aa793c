package jobspecs_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const python = "/usr/bin/python3"

func needTorch(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import torch, sklearn.datasets").CombinedOutput(); err != nil {
		t.Skipf("%s lacks torch or scikit-learn (%v): %.200s", python, err, out)
	}
}

// digits runs the program. After the line that begins with stopAt it is asked to
// save and leave.
func digits(t *testing.T, dir, stopAt string, env []string, args ...string) (out []string, status int) {
	t.Helper()
	script, err := filepath.Abs("slurm/digits.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{script, "--width", "8"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var said strings.Builder
	cmd.Stderr = &said
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		out = append(out, lines.Text())
		if stopAt != "" && strings.HasPrefix(lines.Text(), stopAt) {
			if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s", said.String())
	return out, cmd.ProcessState.ExitCode()
}

func TestTheDigitsAreLearnedAndARestartChangesNothing(t *testing.T) {
	t.Parallel()
	needTorch(t)
	dir := t.TempDir()
	env := []string{"OMP_NUM_THREADS=1", "BATCH_SIZE=32"}
	args := []string{"--epochs", "12", "--state", "digits.ckpt"}
	whole, status := digits(t, dir, "", env, args...)
	if status != 0 || len(whole) != 13 || whole[12] != "done after 12 epochs" {
		t.Fatalf("status %d, said %q", status, whole)
	}
	var n, total int
	var loss, acc float64
	if _, err := fmt.Sscanf(whole[11], "epoch %d/%d loss %g acc %g", &n, &total, &loss, &acc); err != nil || acc < 0.85 {
		t.Errorf("last epoch %q (%v), want an accuracy of 0.85", whole[11], err)
	}
	first, status := digits(t, dir, "epoch 2/", env, args...)
	if status != 85 {
		t.Fatalf("after SIGUSR1: status %d, said %q", status, first)
	}
	second, status := digits(t, dir, "", env, args...)
	if status != 0 {
		t.Fatalf("second run: status %d, said %q", status, second)
	}
	if got, want := strings.Join(append(first, second...), "\n"), strings.Join(whole, "\n"); got != want {
		t.Errorf("interrupted:\n%s\nwhole:\n%s", got, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A trial of a search keeps its checkpoint in its own folder, where its network is when it is done.
func TestATrialOfDigitsGoesOnInItsFolder(t *testing.T) {
	t.Parallel()
	needTorch(t)
	dir := t.TempDir()
	trial := filepath.Join(dir, "search", "trial-001")
	env := []string{"OMP_NUM_THREADS=1", "BATCH_SIZE=128", "LEARNING_RATE=0.004", "PITCHPIPE_TRIAL_DIR=" + trial}
	first, status := digits(t, dir, "epoch 1/", env, "--epochs", "3")
	if status != 85 {
		t.Fatalf("after SIGUSR1: status %d, said %q", status, first)
	}
	second, status := digits(t, dir, "", env, "--epochs", "3")
	if want := len(first) + len(second); status != 0 || want != 4 {
		t.Errorf("status %d, said %q and %q", status, first, second)
	}
	if _, err := os.Stat(filepath.Join(trial, "digits.ckpt")); err != nil {
		t.Error(err)
	}
}

func TestDigitsRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	needTorch(t)
	for name, c := range map[string]struct {
		env  string
		args []string
	}{
		"a batch that is a word": {env: "BATCH_SIZE=large"},
		"a rate of 2":            {env: "LEARNING_RATE=2"},
		"no threads":             {env: "OMP_NUM_THREADS=0"},
		"no epochs":              {env: "BATCH_SIZE=8", args: []string{"--epochs", "0"}},
	} {
		if out, status := digits(t, t.TempDir(), "", []string{c.env}, c.args...); status != 2 || len(out) != 0 {
			t.Errorf("%s: status %d, said %q", name, status, out)
		}
	}
}
