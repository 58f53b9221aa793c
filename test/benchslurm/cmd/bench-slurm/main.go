// Bench-slurm prints what it costs to watch a large queue of Slurm, and how soon a
// new job is seen. It needs root and what scripts/setup-slurm installs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pitchpipe/test/benchslurm"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-slurm:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	jobs := flag.Int("jobs", 10000, "jobs in the queue")
	minutes := flag.Float64("minutes", 2, "minutes of each measurement of the cost")
	seen := flag.Int("seen", 40, "new jobs whose way to the controller is timed, quiet and busy")
	root := flag.String("root", ".", "folder of the checkout")
	flag.Parse()
	if *jobs < 1 || *minutes <= 0 || *seen < 1 || flag.NArg() > 0 {
		return errors.New("want numbers above 0 and no arguments")
	}
	report, err := benchslurm.Run(ctx, benchslurm.Options{
		Jobs: *jobs, Over: time.Duration(*minutes * float64(time.Minute)), Seen: *seen, Root: *root,
		Trace: os.Stderr,
	})
	if err != nil {
		return err
	}
	return report.Print(os.Stdout)
}
