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
	one := benchexporter.Workload{}
	flag.IntVar(&one.Jobs, "jobs", 0, "jobs; 0 = the workloads that have bars, one after the other")
	flag.IntVar(&one.Processes, "processes", 2, "processes of each, where --jobs is given")
	flag.IntVar(&o.Scrapes, "scrapes", 1000, "scrapes one after the other")
	flag.IntVar(&o.Fresh, "fresh", 30, "scrapes more than a second apart")
	flag.DurationVar(&o.Over, "over", 30*time.Second, "for which sampling alone is measured")
	flag.Parse()
	if one.Jobs < 0 || one.Processes < 1 || o.Scrapes < 1 || o.Fresh < 1 || o.Over <= 0 || flag.NArg() > 0 {
		return errors.New("want numbers above 0 and no arguments")
	}
	workloads := benchexporter.Workloads()
	if one.Jobs > 0 {
		workloads = []benchexporter.Workload{one}
	}
	for i, w := range workloads {
		if o.Workload = w; i > 0 {
			o.NodeExporter = "" // it knows no jobs: its costs are those of the first run
			if _, err := fmt.Fprintln(os.Stdout); err != nil {
				return err
			}
		}
		report, err := benchexporter.Run(ctx, o)
		if err == nil {
			err = report.Print(os.Stdout)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
