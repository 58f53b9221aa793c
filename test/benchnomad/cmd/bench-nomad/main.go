// Bench-nomad prints what it costs to watch a Nomad cluster of many jobs, and how soon
// a new job is seen: on a real agent where nomad is on PATH, else on a server in its own
// process.
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

	"pitchpipe/test/benchnomad"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-nomad:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	jobs := flag.Int("jobs", 1000, "registered jobs")
	stanzas := flag.Int("stanzas", 50, "of them that have a stanza")
	minutes := flag.Float64("minutes", 2, "minutes of each measurement of the cost")
	seen := flag.Int("seen", 40, "new jobs whose way to the controller is timed, quiet and busy")
	root := flag.String("root", ".", "folder of the checkout")
	flag.Parse()
	if *jobs < 1 || *stanzas < 1 || *stanzas > *jobs || *minutes <= 0 || *seen < 1 || flag.NArg() > 0 {
		return errors.New("want numbers above 0, at most as many stanzas as jobs, and no arguments")
	}
	report, err := benchnomad.Run(ctx, benchnomad.Options{
		Jobs: *jobs, Stanzas: *stanzas, Over: time.Duration(*minutes * float64(time.Minute)), Seen: *seen, Root: *root, Trace: os.Stderr,
	})
	if err != nil {
		return err
	}
	return report.Print(os.Stdout)
}
