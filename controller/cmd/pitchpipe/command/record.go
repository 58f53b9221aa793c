package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/record"
	"pitchpipe/driver/local/cgroup"
)

// recording are the flags of record: those of a plan of one workload, or the file of a plan.
type recording struct {
	record.Plan
	workload  record.Workload
	file, dir string
	knobs     []string
	env       pairs
	within    time.Duration
	exporter  string
	interval  time.Duration
	cgroups   string
}

func (a *app) record() *cobra.Command {
	o := recording{env: pairs{}}
	cmd := &cobra.Command{
		Use: "record --out DIR (--plan FILE | [--knob NAME=V,V]... -- COMMAND [ARG]...)", Short: "Run a command under many settings and record what it took",
		Long: "Run a factorial of commands, inputs and settings for real, one run at a time, and write trials.csv,\n" +
			"curves.csv and samples.csv, which the evaluations read. Each repeat has its own random order of the\n" +
			"inputs, and runs the settings of an input one after the other, in random order too, so that a drift\n" +
			"of the machine does not fall on one setting. In the command and in --env, {NAME} stands for the value of\n" +
			"a knob, {input} for the input ({input...}: an argument for each of its words) and {dir} for the scratch\n" +
			"folder in which it runs: name inputs by their full path. The knob cores also binds the command to so\n" +
			"many CPUs. The same command resumes a recording that was interrupted and makes the runs that failed\n" +
			"again; the exit status is 1 where none succeeded. Counters come from an exporter, which is started\n" +
			"for the recording, and each run gets its own cgroup where this user may make one. Each run records what\n" +
			"others did meanwhile (others_cores, steal_share); a run that they disturbed, by the\n" +
			"controller's own rule, is marked (disturbed) and with --retries made again. What cannot be measured\n" +
			"is an empty cell, and is listed at the end.\n\n" +
			"    pitchpipe record --out DIR --knob cores=1,2 --knob threads=1,2 --env THREADS={threads} -- ./train --data {input}\n\n" +
			"A plan is YAML:\n" +
			"    workloads: [{name: train, command: [./train, --data, \"{input}\"], env: {THREADS: \"{threads}\"}, inputs: [a, b]}]\n" +
			"    knobs: {cores: [1, 2], threads: [1, 2]}\n" +
			"    repeats: 2\n" +
			"    retries: 1\n" +
			"    progress: 'epoch (?P<epoch>\\d+)'\n" +
			"    timeout: 10m",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.recordRuns(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "plan", "", "file that says what to run, instead of the flags below up to --seed")
	f.StringVar(&o.dir, "out", "", "folder of the tables; a recording that was interrupted goes on there")
	f.StringVar(&o.workload.Name, "workload", "", "name of the command in the tables; default its file name")
	f.StringArrayVar(&o.workload.Inputs, "input", nil, "what {input} stands for; repeat it for others")
	f.StringArrayVar(&o.knobs, "knob", nil, "a setting and its values, such as cores=1,2,4; repeat it for others")
	f.Var(o.env, "env", "a variable of the command, such as OMP_NUM_THREADS={threads}")
	f.IntVar(&o.Repeats, "repeats", record.DefaultRepeats, "runs of each setting")
	f.StringVar(&o.Progress, "progress", "", "pattern of the output lines that end an epoch, with a group named epoch and, where there are such, total, loss and quality; default understands \"epoch 3/10 loss 0.1 acc 0.9\"")
	f.StringVar(&o.Timeout, "timeout", record.DefaultTimeout.String(), "length after which a run counts as failed")
	f.IntVar(&o.Retries, "retries", 0, "how often a disturbed run is repeated; the least disturbed one is kept")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the order")
	f.StringVar(&o.exporter, "exporter", "", "program that counts; default pitchpipe-exporter next to this one or on the PATH; none = only times are recorded")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "time between samples")
	f.DurationVar(&o.within, "within", 0, "start no run after this time; the same command resumes later. 0 = no limit")
	f.StringVar(&o.cgroups, "cgroups", "/sys/fs/cgroup", "where cgroups are mounted; none = runs are known by their environment alone")
	for _, other := range []string{"workload", "input", "knob", "env", "repeats", "progress", "timeout", "retries", "seed"} {
		cmd.MarkFlagsMutuallyExclusive("plan", other)
	}
	return cmd
}

func (a *app) recordRuns(ctx context.Context, o recording, args []string) error {
	plan, err := o.read(args)
	if err != nil {
		return invalid("recording", err)
	}
	if o.dir == "" || o.interval < 50*time.Millisecond || o.within < 0 {
		return fmt.Errorf("%w recording: want --out DIR, an --interval of 50ms or more, and --within 0 or more", errInvalid)
	}
	cpus, err := cgroup.OwnCPUs()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	meter, stop, err := o.meter(ctx)
	if err != nil {
		return err
	}
	defer stop()
	cfg := record.Config{
		Dir: o.dir, Tag: strconv.Itoa(os.Getpid()), Environ: a.Environ, CPUs: cpus, Load: record.ReadLoad, Within: o.within, Progress: a.progress(), Log: log,
	}
	unconfined := ""
	if meter != nil {
		defer meter.Close()
		cfg.Meter = meter
		switch tree := cgroup.Probe(o.cgroups); {
		case o.cgroups == "none":
			unconfined = "turned off"
		case tree.Kind == cgroup.None:
			unconfined = tree.Reason
		default:
			// It is as the local driver makes one: perf counts by it, and the exporter knows the run by its name.
			cfg.Cgroup = func(ctx context.Context, name string, cpus []int) (record.Cgroup, error) {
				return tree.Create(ctx, name, cgroup.Limits{CPUs: cpus})
			}
		}
	}
	result, err := record.Record(ctx, plan, cfg)
	if unconfined != "" {
		result.Missing = append(result.Missing, "a cgroup for each run: "+unconfined)
	}
	switch {
	case errors.Is(err, record.ErrPlan), errors.Is(err, record.ErrFolder):
		return invalid("recording", err)
	case err != nil && len(result.Files) == 0:
		return err
	}
	switch unsaid := a.said(result, "%s", runsText(result)); {
	case unsaid == nil && err == nil && result.Failed > 0 && result.Failed == result.Made+result.Kept:
		return errShown
	case unsaid != nil || err == nil:
		return unsaid
	}
	return fmt.Errorf("interrupted; the same command resumes: %w", err)
}

func runsText(r record.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d runs: %d made now, %d kept, %d failed\n", r.Made+r.Kept, r.Runs, r.Made, r.Kept, r.Failed)
	if r.Again+r.Noisy > 0 {
		fmt.Fprintf(&b, "disturbed by other work: %d marked, %d repeated\n", r.Noisy, r.Again)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "%d were not started in time; the same command resumes\n", r.Left)
	}
	for _, file := range r.Files {
		fmt.Fprintf(&b, "wrote %s\n", file)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "not measured: %s\n", m)
	}
	return b.String()
}

func (o recording) read(args []string) (record.Plan, error) {
	if o.file != "" {
		if len(args) > 0 {
			return record.Plan{}, errors.New("--plan and a command exclude each other")
		}
		text, err := os.ReadFile(o.file)
		if err != nil {
			return record.Plan{}, fmt.Errorf("read the plan: %w", err)
		}
		return record.Parse(o.file, text)
	}
	if len(args) == 0 {
		return record.Plan{}, errors.New("want --plan FILE, or a command behind --")
	}
	p, w := o.Plan, o.workload
	w.Name, w.Command, w.Env = cmp.Or(w.Name, filepath.Base(args[0])), args, o.env
	p.Workloads, p.Knobs = []record.Workload{w}, map[string][]string{}
	for _, k := range o.knobs {
		name, values, ok := strings.Cut(k, "=")
		if _, twice := p.Knobs[name]; !ok || twice {
			return record.Plan{}, fmt.Errorf("--knob %q: want NAME=VALUE,VALUE once for each name", k)
		}
		p.Knobs[name] = strings.Split(values, ",")
	}
	return p, p.Check()
}
