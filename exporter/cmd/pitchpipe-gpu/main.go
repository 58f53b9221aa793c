package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "pitchpipe-gpu:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	flags := flag.NewFlagSet("pitchpipe-gpu", flag.ContinueOnError)
	flags.SetOutput(diagnostics)
	interval := flags.Duration("interval", time.Second, "between readings")
	path := flags.String("library", "libnvidia-ml.so.1", "NVIDIA's management library")
	once := flags.Bool("once", false, "write one reading and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *interval < 100*time.Millisecond || flags.NArg() > 0 {
		return fmt.Errorf("usage: pitchpipe-gpu [--interval D] [--library FILE] [--once], D at least 100ms")
	}
	library, err := load(*path)
	if err != nil {
		return err
	}
	defer library.Shutdown()
	write := json.NewEncoder(out)
	every := time.NewTicker(*interval)
	defer every.Stop()
	for {
		r, err := library.read(time.Now())
		if err != nil {
			return err
		}
		if err := write.Encode(r); err != nil {
			return fmt.Errorf("the output is closed: %w", err)
		}
		if *once {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}
