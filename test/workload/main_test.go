package main

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// beWorkload makes the test binary run as the workload itself.
const beWorkload = "TEST_BE_WORKLOAD"

func TestMain(m *testing.M) {
	if os.Getenv(beWorkload) != "" {
		main()
	}
	os.Exit(m.Run())
}

type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  strings.Builder
	out   []string
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), beWorkload+"=1", "THREADS=1")
	p.cmd.Stderr = &p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// until reads lines up to one that begins with prefix.
func (p *process) until(t *testing.T, prefix string) {
	t.Helper()
	for p.lines.Scan() {
		p.out = append(p.out, p.lines.Text())
		if strings.HasPrefix(p.lines.Text(), prefix) {
			return
		}
	}
	t.Fatalf("no line begins with %q; it said %q and %q", prefix, p.out, p.said.String())
}

// end reads the rest and returns the exit status, 128 and more for a signal.
func (p *process) end(t *testing.T) int {
	t.Helper()
	for p.lines.Scan() {
		p.out = append(p.out, p.lines.Text())
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestSignalsSaveAndLeaveAndEveryEpochIsDoneOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := strings.Fields("tick --epochs 8 --epoch-seconds 0.4 --state job.ckpt --journal journal")

	p := start(t, dir, args...)
	p.until(t, "epoch 2/8 ")
	p.signal(t, syscall.SIGUSR1)
	if status := p.end(t); status != exitSaved || !strings.Contains(p.said.String(), "saved to job.ckpt") {
		t.Fatalf("after SIGUSR1: status %d, said %q", status, p.said.String())
	}
	p = start(t, dir, args...)
	p.until(t, "epoch ")
	p.signal(t, syscall.SIGTERM)
	if status := p.end(t); status != exitTerminated {
		t.Fatalf("after SIGTERM: status %d, said %q", status, p.said.String())
	}
	p = start(t, dir, args...)
	if status := p.end(t); status != exitDone || p.out[len(p.out)-1] != "done after 8 epochs" {
		t.Fatalf("last run: status %d, said %q", status, p.out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "journal")); err != nil || string(got) != "1\n2\n3\n4\n5\n6\n7\n8\n" {
		t.Errorf("journal %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "job.ckpt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("checkpoint: %v, want none", err)
	}
}

func TestAnInterruptedRunPrintsWhatAnUninterruptedOnePrints(t *testing.T) {
	t.Parallel()
	// An epoch of dense is long, so that fewer leave as much time for the signal to come.
	for kind, n := range map[string]int{"dense": 12, "bfs": 30} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args := []string{kind, "--epochs", strconv.Itoa(n), "--scale", "0.002"}
			whole := start(t, t.TempDir(), args...)
			if status := whole.end(t); status != exitDone || len(whole.out) != n+1 {
				t.Fatalf("status %d, said %q and %q", status, whole.out, whole.said.String())
			}
			dir, args := t.TempDir(), append(args, "--state", "job.ckpt")
			first := start(t, dir, args...)
			first.until(t, "epoch 3/")
			first.signal(t, syscall.SIGUSR1)
			out := first.out
			if status := first.end(t); status == exitSaved {
				second := start(t, dir, args...)
				if status := second.end(t); status != exitDone {
					t.Fatalf("second run: status %d, said %q", status, second.said.String())
				}
				out = append(first.out, second.out...)
			} else {
				t.Fatalf("first run: status %d, said %q after %q", status, first.said.String(), out)
			}
			if got, want := strings.Join(out, "\n"), strings.Join(whole.out, "\n"); got != want {
				t.Errorf("interrupted:\n%s\nwhole:\n%s", got, want)
			}
		})
	}
}

func TestCommandLinesAndTheirExitStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"no kind":        {"", exitUsage, "usage:"},
		"unknown kind":   {"dence --epochs 3", exitUsage, `unknown kind "dence"`},
		"bad value":      {"tick --epochs 0", exitUsage, "--epochs: want at least 1"},
		"no such folder": {"tick --epochs 1 --journal /nonexistent/j", exitUsage, "open journal"},
		"help":           {"help", exitDone, "dense"},
		"help of a kind": {"dense --help", exitDone, "-state"},
		"memory to grow": {"tick --epochs 2 --epoch-seconds 0 --grow 3", exitDone, "done after 2 epochs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), strings.Fields(c.args)...)
			status := p.end(t)
			if said := strings.Join(p.out, "\n") + p.said.String(); status != c.status || !strings.Contains(said, c.says) {
				t.Errorf("status %d, want %d; said %q, want %q in it", status, c.status, said, c.says)
			}
		})
	}
}

func TestAFloodOfSignalsDoesNotBlock(t *testing.T) {
	t.Parallel()
	signals, requests := make(chan os.Signal), make(chan request, 2)
	go translate(signals, requests)
	for range 100 {
		signals <- syscall.SIGUSR1
	}
	close(signals)
	if status := run([]string{"tick", "--epochs", "1", "--epoch-seconds", "0"}, requests, io.Discard, io.Discard); status != exitDone {
		t.Errorf("status %d", status)
	}
}
