// Bench-mind writes what the evaluations of the tuner's mind find on recorded runs.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"pitchpipe/test/benchmind"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-mind:", err)
		os.Exit(1)
	}
}

// own is where scripts/regret records, where it has.
func own() string {
	folder := filepath.Join(".build", "regret")
	if _, err := os.Stat(filepath.Join(folder, "trials.csv")); err != nil {
		return ""
	}
	return folder
}

func run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := benchmind.Options{Trace: os.Stderr}
	standard := cmp.Or(os.Getenv("PITCHPIPE_DATA"), filepath.Join("..", "shared", "data"))
	flag.StringVar(&o.Program, "program", "bin/pitchpipe", "pitchpipe")
	flag.StringVar(&o.Data, "data", standard, "the folder of recorded runs")
	flag.StringVar(&o.Own, "own", own(), "a folder that scripts/regret recorded into; empty = none")
	flag.StringVar(&o.Out, "out", filepath.Join(".build", "mind"), "the folder to write into")
	only := flag.String("only", "", "evaluations to run, separated by commas; empty = all")
	flag.Parse()
	if flag.NArg() > 0 {
		return errors.New("want no arguments")
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Own == "" {
		fmt.Fprintln(os.Stderr, "no own recordings, so the cost of deciding by classes is left out: scripts/regret makes them")
	} else if o.Own, err = filepath.Abs(o.Own); err != nil {
		return err
	}
	report, err := benchmind.Run(ctx, o)
	if err != nil {
		return err
	}
	missed, aims := report.Missed()
	fmt.Printf("%d of %d aims met; %s\n", aims-missed, aims, filepath.Join(o.Out, "report.md"))
	if failed := report.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d evaluations failed: %s", len(failed), strings.Join(failed, "; "))
	}
	return nil
}
