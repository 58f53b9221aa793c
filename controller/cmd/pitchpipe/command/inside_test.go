package command_test

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/exporter/api"
)

func TestListenRefusesCommandLinesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		args    []string
		environ []string
		says    string
	}{
		{"a file beside --slurm", []string{"--slurm", "--file=x"}, nil, "file"},
		{"a pattern beside --slurm", []string{"--slurm", "--pattern=x"}, nil, "pattern"},
		{"--slurm outside of a job", []string{"--slurm"}, nil, "SLURM_JOB_ID"},
		{"--slurm in a job that is none", []string{"--slurm"}, []string{"SLURM_JOB_ID=-a"}, "SLURM_JOB_ID"},
		{"--slurm without the batch script's process", []string{"--slurm"}, []string{"SLURM_JOB_ID=42"}, "SLURM_TASK_PID"},
		{"a process that is no number", []string{"--slurm"}, []string{"SLURM_JOB_ID=42", "SLURM_TASK_PID=x"}, "SLURM_TASK_PID"},
		{"a line of a checkpoint that is no regular expression", []string{"--file=x", "--pattern=(?P<epoch>x)", "--done=("}, nil, "checkpoint"},
		{"neither a pattern nor a line of a checkpoint", []string{"--file=x"}, nil, "--pattern"},
		{"a pattern without an epoch", []string{"--file=x", "--pattern=x"}, nil, "--pattern"},
		{"a level that is none", []string{"--file=x", "--log.level=loud"}, nil, "log.level"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := command.Run(t.Context(), command.World{
				Args: append([]string{"listen"}, tc.args...), Environ: tc.environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			})
			if code != command.ExitInvalid || out.Len() > 0 || !strings.Contains(errs.String(), tc.says) {
				t.Errorf("exit %d, output %q, errors %q; want %d and %q", code, &out, &errs, command.ExitInvalid, tc.says)
			}
		})
	}
}

func TestListenTellsOfEpochsAndOfCheckpoints(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, []byte("epoch 1\nsaved\nepoch 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := func(by syscall.Signal) context.Context {
		ctx, stop := signal.NotifyContext(t.Context(), by)
		t.Cleanup(stop)
		if err := syscall.Kill(os.Getpid(), by); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		return ctx
	}
	term, interrupt := ended(syscall.SIGTERM), ended(syscall.SIGINT)
	for _, tc := range []struct {
		name string
		ctx  context.Context //nolint:containedctx // it has ended: what is there is read and reported, here to no exporter
		args []string
		want string
	}{
		{"both", term, []string{"--pattern=epoch (?P<epoch>.)", "--done=^saved$"}, "2 reports"},
		{"checkpoints alone", term, []string{"--done=^saved$"}, "1 reports"},
		{"epochs alone", term, []string{"--pattern=epoch (?P<epoch>.)"}, "1 reports"},
		{"epochs of a job that succeeded", interrupt, []string{"--pattern=epoch (?P<epoch>.)"}, "2 reports"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var errs bytes.Buffer
			socket := filepath.Join(t.TempDir(), "absent")
			code := command.Run(tc.ctx, command.World{
				Args: append([]string{"listen", "--file=" + out}, tc.args...), Environ: []string{api.EnvSocket + "=" + socket},
				Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &errs,
			})
			if code != command.ExitFailed || !strings.Contains(errs.String(), socket) || !strings.Contains(errs.String(), tc.want) || !strings.Contains(errs.String(), api.ErrUnavailable.Error()) {
				t.Errorf("exit %d, errors %q; want %d and %s that were not delivered", code, &errs, command.ExitFailed, tc.want)
			}
		})
	}
}
