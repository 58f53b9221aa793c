package jobspecs_test

import (
	"bufio"
	"bytes"
	"errors"
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
	at := regexp.MustCompile(`(?m)[ ;]+(#|/\*) +the work of one epoch.*$`).FindStringIndex(code)
	if at == nil {
		t.Fatalf("the %s does no work", language)
	}
	return code[:at[0]] + "; " + pause + code[at[1]:]
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
		build             []string
		run               []string
	}{
		{"python", "train.py", "__import__('time').sleep(0.005)", nil, []string{"python3", filepath.Join(dir, "train.py")}},
		{
			"c", "train.c", "usleep(5000);",
			[]string{"gcc", "-Wall", "-Wextra", "-Werror", "-include", "unistd.h", "-D_GNU_SOURCE", "-o", filepath.Join(dir, "train"), filepath.Join(dir, "train.c")},
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
			work := t.TempDir()
			var printed bytes.Buffer
			for _, stop := range []string{"epoch 30/", "epoch 60/", ""} {
				if status := attempt(t, work, tc.run, stop, &printed); stop != "" && status != 85 || stop == "" && status != 0 {
					t.Fatalf("it left with %d when it was asked at %q", status, stop)
				}
			}
			if want := uninterrupted(t, tc.run); printed.String() != want {
				t.Errorf("three attempts printed\n%s\nand one\n%s", printed.String(), want)
			}
		})
	}
}

// attempt runs the program, asks it to save once it prints the line, and returns its status.
func attempt(t *testing.T, dir string, command []string, stop string, printed *bytes.Buffer) int {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir, c.Stderr = dir, os.Stderr
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
			if err := c.Process.Signal(syscall.SIGUSR1); err != nil {
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
