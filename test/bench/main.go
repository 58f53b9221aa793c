package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitchpipe/test/benchexporter"
	"pitchpipe/test/benchmind"
	"pitchpipe/test/benchpipeline"
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

// command is one bench with its flags.
type command struct {
	*flag.FlagSet

	args       []string
	out, trace io.Writer // the report, and what is being done
}

var errUsage = errors.New("want numbers above 0 and no arguments")

// parse reads the flags; sensible reports whether what they say can be measured.
func (c command) parse(sensible func() bool) error {
	if err := c.Parse(c.args); err != nil {
		return err
	}
	if !sensible() || c.NArg() > 0 {
		return errUsage
	}
	return nil
}

// run runs the bench that the first argument names.
func run(ctx context.Context, args []string, out, trace io.Writer) error {
	benches := map[string]func(context.Context, command) error{
		"slurm": watched(10_000, 250, watchSlurm), "nomad": watched(1000, 50, watchNomad),
		"exporter": benchExporter, "mind": benchMind, "pipeline": benchPipeline, "search": benchSearch,
	}
	if len(args) == 0 || benches[args[0]] == nil {
		return fmt.Errorf("want one of %s", strings.Join(slices.Sorted(maps.Keys(benches)), ", "))
	}
	c := command{flag.NewFlagSet(args[0], flag.ContinueOnError), args[1:], out, trace}
	c.SetOutput(trace)
	return benches[args[0]](ctx, c)
}

// watched is a bench that watches a queue.
func watched(jobs, stanzas int, watch func(context.Context, options) (report, error)) func(context.Context, command) error {
	return func(ctx context.Context, c command) error {
		o := options{root: ".", trace: c.trace}
		c.IntVar(&o.jobs, "jobs", jobs, "jobs in the queue")
		c.IntVar(&o.stanzas, "stanzas", stanzas, "of them that have a stanza")
		minutes := c.Float64("minutes", 2, "minutes of each measurement of the cost")
		c.IntVar(&o.seen, "seen", 40, "new jobs whose way to the controller is timed, quiet and busy")
		if err := c.parse(func() bool {
			o.over = time.Duration(*minutes * float64(time.Minute))
			return o.jobs >= 1 && o.stanzas >= 1 && o.stanzas <= o.jobs && o.over > 0 && o.seen >= 1
		}); err != nil {
			return err
		}
		report, err := watch(ctx, o)
		if err != nil {
			return err
		}
		return report.print(c.out)
	}
}

func benchExporter(ctx context.Context, c command) error {
	o := benchexporter.Options{Trace: c.trace}
	c.StringVar(&o.Exporter, "exporter", "bin/pitchpipe-exporter", "the static program")
	c.StringVar(&o.NodeExporter, "node-exporter", "", "Debian's prometheus-node-exporter; empty = it is left out")
	one := benchexporter.Workload{}
	c.IntVar(&one.Jobs, "jobs", 0, "jobs; 0 = the workloads that have bars, one after the other")
	c.IntVar(&one.Processes, "processes", 2, "processes of each, where --jobs is given")
	c.IntVar(&o.Scrapes, "scrapes", 1000, "scrapes one after the other")
	c.IntVar(&o.Fresh, "fresh", 30, "scrapes more than a second apart")
	c.DurationVar(&o.Over, "over", 30*time.Second, "for which sampling alone is measured")
	if err := c.parse(func() bool {
		return one.Jobs >= 0 && one.Processes >= 1 && o.Scrapes >= 1 && o.Fresh >= 1 && o.Over > 0
	}); err != nil {
		return err
	}
	workloads := benchexporter.Workloads()
	if one.Jobs > 0 {
		workloads = []benchexporter.Workload{one}
	}
	for i, w := range workloads {
		if o.Workload = w; i > 0 {
			o.NodeExporter = "" // it knows no jobs: its costs are those of the first run
			fmt.Fprintln(c.out)
		}
		report, err := benchexporter.Run(ctx, o)
		if err == nil {
			err = report.Print(c.out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func benchMind(ctx context.Context, c command) (err error) {
	o := benchmind.Options{Trace: c.trace}
	c.StringVar(&o.Program, "program", "bin/pitchpipe", "pitchpipe")
	c.StringVar(&o.Data, "data", cmp.Or(os.Getenv("PITCHPIPE_DATA"), filepath.Join("..", "shared", "data")), "the folder of recorded runs")
	own := filepath.Join(".build", "regret")
	if _, err := os.Stat(filepath.Join(own, "trials.csv")); err != nil {
		own = ""
	}
	c.StringVar(&o.Own, "own", own, "a folder that scripts/regret recorded into; empty = none")
	c.StringVar(&o.Out, "out", filepath.Join(".build", "mind"), "the folder to write into")
	c.Func("only", "evaluations to run, separated by commas (default all)", func(s string) error { o.Only = strings.Split(s, ","); return nil })
	if err := c.parse(func() bool { return true }); err != nil {
		return err
	}
	if o.Own == "" {
		_, _ = fmt.Fprintln(c.trace, "no own recordings, so the cost of deciding by classes is left out: scripts/regret makes them")
	} else if o.Own, err = filepath.Abs(o.Own); err != nil {
		return err
	}
	report, err := benchmind.Run(ctx, o)
	if err != nil {
		return err
	}
	missed, aims := report.Missed()
	if _, err := fmt.Fprintf(c.out, "%d of %d aims met; %s\n", aims-missed, aims, filepath.Join(o.Out, "report.md")); err != nil {
		return err
	}
	if failed := report.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d evaluations failed: %s", len(failed), strings.Join(failed, "; "))
	}
	return nil
}

func benchPipeline(ctx context.Context, c command) (err error) {
	o := benchpipeline.Options{Trace: c.trace}
	c.StringVar(&o.Bin, "bin", "bin", "the folder of pitchpipe, pitchpipe-exporter and workload")
	c.IntVar(&o.Trials, "trials", 12, "trials of each search")
	c.IntVar(&o.Epochs, "epochs", 54, "epochs of a whole trial, 9 at least")
	c.IntVar(&o.Repeats, "repeats", 3, "repetitions")
	c.Func("only", "kinds of programs: digits, boost, dense, separated by commas (default all)", func(s string) error { o.Only = strings.Split(s, ","); return nil })
	c.StringVar(&o.Dir, "keep", "", "keep logs and outputs in this folder")
	if err := c.parse(func() bool { return o.Trials >= 1 && o.Epochs >= 9 && o.Repeats >= 1 }); err != nil {
		return err
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
	return errors.Join(err, report.Print(c.out))
}
