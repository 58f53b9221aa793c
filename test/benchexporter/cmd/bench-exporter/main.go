// Bench-exporter prints what the exporter costs, beside node_exporter.
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

	"pitchpipe/test/benchexporter"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-exporter:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := benchexporter.Options{Trace: os.Stderr}
	flag.StringVar(&o.Exporter, "exporter", "bin/pitchpipe-exporter", "the static program")
	flag.StringVar(&o.NodeExporter, "node-exporter", "", "Debian's prometheus-node-exporter; empty = it is left out")
	flag.IntVar(&o.Jobs, "jobs", 10, "jobs")
	flag.IntVar(&o.Processes, "processes", 16, "processes of each")
	flag.IntVar(&o.Scrapes, "scrapes", 1000, "scrapes one after the other")
	flag.IntVar(&o.Fresh, "fresh", 30, "scrapes more than a second apart")
	flag.DurationVar(&o.Over, "over", 30*time.Second, "for which sampling alone is measured")
	flag.Parse()
	if o.Jobs < 1 || o.Processes < 1 || o.Scrapes < 1 || o.Fresh < 1 || o.Over <= 0 || flag.NArg() > 0 {
		return errors.New("want numbers above 0 and no arguments")
	}
	report, err := benchexporter.Run(ctx, o)
	if err != nil {
		return err
	}
	return report.Print(os.Stdout)
}
