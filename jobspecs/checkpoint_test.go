package jobspecs_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// snippet is the code of CHECKPOINT.md in a language, with a pause in each epoch.
func snippet(t *testing.T, language, pause string) string {
	t.Helper()
	page, err := os.ReadFile("CHECKPOINT.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatalf("CHECKPOINT.md has no %s", language)
	}
	code := string(m[1])
	if lines := strings.Count(code, "\n"); lines > 15 {
		t.Errorf("the %s has %d lines, want at most 15", language, lines)
	}
	at := regexp.MustCompile(`(?m)[ ;]+(#|/\*) +the work of one epoch.*$`).FindStringIndex(code)
	if at == nil {
		t.Fatalf("the %s does no work", language)
	}
	return code[:at[0]] + pause + code[at[1]:]
}

// uninterrupted is what either program prints when it is left alone.
func uninterrupted(t *testing.T, command []string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestTheProgramsOfTheCheckpointPageGoOnWhereTheySaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tc := range []struct {
		name, file, pause string
		folder            string // that the program makes
		build             []string
		run               []string
	}{
		{"python", "train.py", "; __import__('time').sleep(0.005)", "job.search/s1/trial-001", nil, []string{"python3", filepath.Join(dir, "train.py")}},
		{
			"c", "train.c", "; usleep(5000);", "",
			[]string{"gcc", "-Wall", "-Wextra", "-Werror", "-include", "signal.h", "-include", "stdio.h", "-include", "stdlib.h", "-include", "unistd.h", "-D_GNU_SOURCE", "-o", filepath.Join(dir, "train"), filepath.Join(dir, "train.c")},
			[]string{filepath.Join(dir, "train")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, tool := range []string{tc.run[0], append(tc.build, "sh")[0]} {
				if _, err := exec.LookPath(tool); err != nil && !filepath.IsAbs(tool) {
					t.Skipf("without %s: %v", tool, err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, tc.file), []byte(snippet(t, tc.name, tc.pause)), 0o644); err != nil {
				t.Fatal(err)
			}
			if tc.build != nil {
				if out, err := exec.CommandContext(t.Context(), tc.build[0], tc.build[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			want := uninterrupted(t, tc.run)
			for _, folder := range []string{"", filepath.Join(t.TempDir(), tc.folder)} { // of a trial
				work := t.TempDir()
				var printed bytes.Buffer
				for _, stop := range []string{"epoch 30/", "epoch 60/", ""} {
					if status := attempt(t, work, folder, tc.run, stop, syscall.SIGUSR1, &printed); stop != "" && status != 85 || stop == "" && status != 0 {
						t.Fatalf("it left with %d when it was asked at %q", status, stop)
					}
				}
				if printed.String() != want {
					t.Errorf("three attempts printed\n%s\nand one\n%s", printed.String(), want)
				}
				if kept := saved(t, cmp.Or(folder, work)); len(kept) != 1 || strings.HasSuffix(kept[0], "new") {
					t.Errorf("it keeps %q in its folder, want its state alone", kept)
				}
				if left := saved(t, work); folder != "" && len(left) != 0 {
					t.Errorf("a trial left %q outside of its folder", left)
				}
			}
			var printed bytes.Buffer // by a job that is killed while it saves
			for work, n := t.TempDir(), 0; n <= 10; n++ {
				attempt(t, work, "", tc.run, []string{fmt.Sprintf("epoch %d/", 10*n+1), ""}[n/10], syscall.SIGKILL, &printed)
			}
			last, all := 0, strings.Split(strings.TrimSpace(printed.String()), "\n")
			for _, line := range all {
				epoch := 0
				if _, err := fmt.Sscanf(line, "epoch %d/", &epoch); err != nil || epoch != last+1 && epoch != last {
					t.Fatalf("%q comes after epoch %d: %v", line, last, err)
				}
				last = epoch
			}
			if !strings.HasSuffix(want, all[len(all)-1]+"\n") {
				t.Errorf("it ended with %q", all[len(all)-1])
			}
		})
	}
}

// saved are the files in a folder.
func saved(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// attempt runs the program, signals it once it prints the line, and returns its status.
func attempt(t *testing.T, dir, trial string, command []string, stop string, signal syscall.Signal, printed *bytes.Buffer) int {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir, c.Stderr = dir, os.Stderr
	if trial != "" {
		c.Env = append(os.Environ(), "PITCHPIPE_TRIAL_DIR="+trial)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if stop != "" && strings.HasPrefix(lines.Text(), stop) {
			if err := c.Process.Signal(signal); err != nil {
				t.Error(err)
			}
		}
	}
	var left *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &left) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}
