package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"pitchpipe/test/benchexporter"
	"pitchpipe/test/benchmind"
	"pitchpipe/test/benchpipeline"
	"pitchpipe/test/nomadagent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the bench that the first argument names.
func run(ctx context.Context, args []string, out, trace io.Writer) error {
	benches := map[string]func(context.Context, *flag.FlagSet, []string, io.Writer, io.Writer) error{
		"slurm": benchSlurm, "nomad": benchNomad, "exporter": benchExporter, "mind": benchMind, "pipeline": benchPipeline, "search": benchSearch,
	}
	if len(args) == 0 || benches[args[0]] == nil {
		return errors.New("want slurm, nomad, exporter, mind or search")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(trace)
	return benches[args[0]](ctx, flags, args[1:], out, trace)
}

var errUsage = errors.New("want numbers above 0 and no arguments")

// watchFlags are those of the benches that watch a queue.
func watchFlags(fs *flag.FlagSet, args []string, jobs, stanzas int, trace io.Writer) (options, error) {
	o := options{root: ".", trace: trace}
	fs.IntVar(&o.jobs, "jobs", jobs, "jobs in the queue")
	fs.IntVar(&o.stanzas, "stanzas", stanzas, "of them that have a stanza")
	minutes := fs.Float64("minutes", 2, "minutes of each measurement of the cost")
	fs.IntVar(&o.seen, "seen", 40, "new jobs whose way to the controller is timed, quiet and busy")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.over = time.Duration(*minutes * float64(time.Minute))
	if o.jobs < 1 || o.stanzas < 1 || o.stanzas > o.jobs || o.over <= 0 || o.seen < 1 || fs.NArg() > 0 {
		return o, errUsage
	}
	return o, nil
}

func benchSlurm(ctx context.Context, fs *flag.FlagSet, args []string, out, trace io.Writer) error {
	o, err := watchFlags(fs, args, 10_000, 250, trace)
	if err != nil {
		return err
	}
	report, err := watchSlurm(ctx, o)
	if err != nil {
		return err
	}
	return report.print(out)
}

func benchNomad(ctx context.Context, fs *flag.FlagSet, args []string, out, trace io.Writer) error {
	o, err := watchFlags(fs, args, 1000, 50, trace)
	if err != nil {
		return err
	}
	report, err := watchNomad(ctx, o, nomadagent.Either)
	if err != nil {
		return err
	}
	return report.print(out)
}

func benchExporter(ctx context.Context, fs *flag.FlagSet, args []string, out, trace io.Writer) error {
	o := benchexporter.Options{Trace: trace}
	fs.StringVar(&o.Exporter, "exporter", "bin/pitchpipe-exporter", "the static program")
	fs.StringVar(&o.NodeExporter, "node-exporter", "", "Debian's prometheus-node-exporter; empty = it is left out")
	one := benchexporter.Workload{}
	fs.IntVar(&one.Jobs, "jobs", 0, "jobs; 0 = the workloads that have bars, one after the other")
	fs.IntVar(&one.Processes, "processes", 2, "processes of each, where --jobs is given")
	fs.IntVar(&o.Scrapes, "scrapes", 1000, "scrapes one after the other")
	fs.IntVar(&o.Fresh, "fresh", 30, "scrapes more than a second apart")
	fs.DurationVar(&o.Over, "over", 30*time.Second, "for which sampling alone is measured")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if one.Jobs < 0 || one.Processes < 1 || o.Scrapes < 1 || o.Fresh < 1 || o.Over <= 0 || fs.NArg() > 0 {
		return errUsage
	}
	workloads := benchexporter.Workloads()
	if one.Jobs > 0 {
		workloads = []benchexporter.Workload{one}
	}
	for i, w := range workloads {
		if o.Workload = w; i > 0 {
			o.NodeExporter = "" // it knows no jobs: its costs are those of the first run
			fmt.Fprintln(out)
		}
		report, err := benchexporter.Run(ctx, o)
		if err == nil {
			err = report.Print(out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func benchMind(ctx context.Context, fs *flag.FlagSet, args []string, out, trace io.Writer) (err error) {
	o := benchmind.Options{Trace: trace}
	fs.StringVar(&o.Program, "program", "bin/pitchpipe", "pitchpipe")
	fs.StringVar(&o.Data, "data", cmp.Or(os.Getenv("PITCHPIPE_DATA"), filepath.Join("..", "shared", "data")), "the folder of recorded runs")
	own := filepath.Join(".build", "regret")
	if _, err := os.Stat(filepath.Join(own, "trials.csv")); err != nil {
		own = ""
	}
	fs.StringVar(&o.Own, "own", own, "a folder that scripts/regret recorded into; empty = none")
	fs.StringVar(&o.Out, "out", filepath.Join(".build", "mind"), "the folder to write into")
	only := fs.String("only", "", "evaluations to run, separated by commas; empty = all")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return errUsage
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Own == "" {
		_, _ = fmt.Fprintln(trace, "no own recordings, so the cost of deciding by classes is left out: scripts/regret makes them")
	} else if o.Own, err = filepath.Abs(o.Own); err != nil {
		return err
	}
	report, err := benchmind.Run(ctx, o)
	if err != nil {
		return err
	}
	missed, aims := report.Missed()
	if _, err := fmt.Fprintf(out, "%d of %d aims met; %s\n", aims-missed, aims, filepath.Join(o.Out, "report.md")); err != nil {
		return err
	}
	if failed := report.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d evaluations failed: %s", len(failed), strings.Join(failed, "; "))
	}
	return nil
}

func benchPipeline(ctx context.Context, fs *flag.FlagSet, args []string, out, trace io.Writer) (err error) {
	o := benchpipeline.Options{Trace: trace}
	fs.StringVar(&o.Bin, "bin", "bin", "the folder of pitchpipe, pitchpipe-exporter and workload")
	fs.IntVar(&o.Trials, "trials", 12, "trials of each search")
	fs.IntVar(&o.Epochs, "epochs", 54, "epochs of a whole trial, 9 at least")
	fs.IntVar(&o.Repeats, "repeats", 3, "repetitions")
	only := fs.String("only", "", "kinds of programs: digits, boost, dense, separated by commas; empty = all")
	fs.StringVar(&o.Dir, "keep", "", "keep logs and outputs in this folder")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.Trials < 1 || o.Epochs < 9 || o.Repeats < 1 || fs.NArg() > 0 {
		return errUsage
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "pipeline-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	if o.Bin, err = filepath.Abs(o.Bin); err != nil {
		return err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	report, err := benchpipeline.Run(ctx, o)
	return errors.Join(err, report.Print(out))
}
