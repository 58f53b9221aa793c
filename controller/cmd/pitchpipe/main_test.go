package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("PITCHPIPE_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestSignalsEndWhatReadsAPipeThatNoOneWrites(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		args    []string
		signals int
	}{
		{"the first ends the read of a job file", []string{"validate", pipe}, 1},
		{"and before a submission", []string{"run", pipe}, 1},
		{"the second ends what the first does not", []string{"report", "--from-sacct", pipe}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], c.args...)
			cmd.Env = append(os.Environ(), "PITCHPIPE_TEST_MAIN=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			time.Sleep(time.Second) // it has begun to read
			for range c.signals {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
			}
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Errorf("it runs after %d signals", c.signals)
				_ = cmd.Process.Kill()
				<-ended
			}
		})
	}
}
