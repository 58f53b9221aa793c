package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
)

// Exit statuses of Main itself, which no one waits for but which end up in logs.
const (
	statusOK    = 0
	statusError = 1
	statusUsage = 2
)

// Main is the body of the hidden command that Plan.Self starts. Its arguments are
// the attempt's directory, or the word stage and the directory. It returns the
// exit status. Ending ctx does not end it: it ends with its job.
func Main(ctx context.Context, args []string) int {
	switch {
	case len(args) == 2 && args[0] == "stage":
		return stage(args[1])
	case len(args) == 1:
	default:
		return statusUsage
	}
	// Whatever a terminal or a service manager sends to a whole group is for
	// others. Caught, not ignored: the job would inherit an ignored signal.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2)
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(context.WithoutCancel(ctx), args[0], logger); err != nil {
		logger.Error("supervisor ends", "dir", args[0], "error", err)
		return statusError
	}
	return statusOK
}

func run(ctx context.Context, dir string, logger *slog.Logger) (err error) {
	// 1. Only one supervisor at a time, and only for an attempt that was
	// neither started nor made void.
	lock, err := durable.WaitLock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for _, name := range []string{VoidFile, StartedFile} {
		if Has(dir, name) {
			return fmt.Errorf("not started: %s exists in %s", name, dir)
		}
	}
	var plan Plan
	if err := durable.ReadJSON(filepath.Join(dir, PlanFile), &plan); err != nil {
		return err
	}
	// 2. From here on the attempt counts as started.
	started, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	if err := durable.WriteJSON(filepath.Join(dir, StartedFile), started, 0o600); err != nil {
		return err
	}
	// 3. The attempt itself, and how it ended.
	a := &attempt{dir: dir, plan: plan, log: logger}
	exit := a.perform(ctx)
	if exit.Started.IsZero() { // nothing of the job ran
		exit.Started, exit.Ended = started.At, time.Now()
	}
	return tell(ctx, dir, exit, logger)
}

// tellPatience is how long a supervisor tries to write how its attempt ended.
const tellPatience = 24 * time.Hour

// tell writes how the attempt ended. Without this file the job is lost, and a full
// disk is found full for hours: the supervisor waits, unless no one can ever read
// it.
func tell(ctx context.Context, dir string, exit Exit, logger *slog.Logger) error {
	path := filepath.Join(dir, ExitFile)
	wait := time.Second
	for end := time.Now().Add(tellPatience); ; wait = min(2*wait, 30*time.Second) {
		err := durable.WriteJSON(path, exit, 0o600)
		if err == nil {
			return nil
		}
		if !Has(dir, "") || time.Now().After(end) {
			return err
		}
		logger.Warn("cannot write how the attempt ended", "error", err)
		if pauseErr := driver.Pause(ctx, wait); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}
