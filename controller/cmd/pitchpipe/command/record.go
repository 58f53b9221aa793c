package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"pitchpipe/controller/record"
	"pitchpipe/exporter/api"
)

// recording are the flags of record.
type recording struct {
	plan     string
	dir      string
	workload string
	inputs   []string
	knobs    []string
	env      []string
	repeats  int
	progress string
	timeout  string
	seed     uint64
	exporter string
	interval time.Duration
}

func (a *app) record() *cobra.Command {
	var o recording
	cmd := &cobra.Command{
		Use: "record --out DIR (--plan FILE | [--knob NAME=V,V]... -- COMMAND [ARG]...)", Short: "Run a command under many settings and record what it took",
		Long: "Run a factorial of commands, inputs and settings for real, one run at a time, each repeat in a random\n" +
			"order of its own, and write trials.csv, curves.csv and samples.csv, which the evaluations read. In\n" +
			"the command and in --env, {NAME} stands for the value of a knob, {input} for the input and {dir} for\n" +
			"a scratch folder; the knob cores also binds the command to so many CPUs. Runs that have ended are kept\n" +
			"when a recording is interrupted, and are not made again. Counters come from an exporter, which is\n" +
			"started for the recording. What cannot be measured is an empty cell, and is told at the end.\n\n" +
			"    pitchpipe record --out DIR --knob cores=1,2 --knob threads=1,2 --env THREADS={threads} -- ./train --data {input}\n\n" +
			"A plan is YAML:\n" +
			"    workloads: [{name: train, command: [./train, --data, \"{input}\"], env: {THREADS: \"{threads}\"}, inputs: [a, b]}]\n" +
			"    knobs: {cores: [1, 2], threads: [1, 2]}\n" +
			"    repeats: 2\n" +
			"    progress: 'epoch (?P<epoch>\\d+)'\n" +
			"    timeout: 10m",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.recordRuns(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "file that says what to run, instead of the flags below up to --seed")
	f.StringVar(&o.dir, "out", "", "folder of the tables; a recording that was interrupted goes on there")
	f.StringVar(&o.workload, "workload", "", "name of the command in the tables; default its file name")
	f.StringSliceVar(&o.inputs, "input", nil, "inputs, which stand for {input} in turn")
	f.StringArrayVar(&o.knobs, "knob", nil, "a setting and its values, such as cores=1,2,4; repeat it for others")
	f.StringArrayVar(&o.env, "env", nil, "a variable of the command, such as OMP_NUM_THREADS={threads}")
	f.IntVar(&o.repeats, "repeats", record.DefaultRepeats, "runs of each setting")
	f.StringVar(&o.progress, "progress", "", "pattern of the output lines that end an epoch, with a group named epoch and, where there are such, total, loss and quality; default understands \"epoch 3/10 loss 0.1 acc 0.9\"")
	f.StringVar(&o.timeout, "timeout", record.DefaultTimeout.String(), "length after which a run counts as failed")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the order")
	f.StringVar(&o.exporter, "exporter", "", "program that counts; default pitchpipe-exporter beside this one or on the PATH; none = only times are recorded")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "time between samples")
	return cmd
}

func (a *app) recordRuns(ctx context.Context, o recording, args []string) error {
	plan, err := o.read(args)
	if err != nil {
		return fmt.Errorf("%w recording: %w", errInvalid, err)
	}
	if o.dir == "" || o.interval < 50*time.Millisecond {
		return fmt.Errorf("%w recording: want --out DIR, and an --interval of 50ms or more", errInvalid)
	}
	cpus, err := ownCPUs()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	meter, stop, err := o.meter(ctx)
	if err != nil {
		return err
	}
	defer stop()
	cfg := record.Config{Dir: o.dir, Environ: a.Environ, CPUs: cpus, Progress: a.progress(), Log: log}
	if meter != nil {
		defer meter.Close()
		cfg.Meter = meter
	}
	result, err := record.Record(ctx, plan, cfg)
	switch {
	case errors.Is(err, record.ErrPlan), errors.Is(err, record.ErrFolder):
		return fmt.Errorf("%w recording: %w", errInvalid, err)
	case err != nil && len(result.Files) == 0:
		return err
	case a.json:
		if printed := a.printJSON(result); printed != nil {
			return printed
		}
	default:
		a.printf("%d of %d runs: %d made now, %d kept, %d failed\n", result.Made+result.Kept, result.Runs, result.Made, result.Kept, result.Failed)
		for _, file := range result.Files {
			a.printf("wrote %s\n", file)
		}
		for _, m := range result.Missing {
			a.printf("not measured: %s\n", m)
		}
	}
	if err != nil {
		return fmt.Errorf("interrupted; the same command goes on: %w", err)
	}
	return nil
}

// read makes the plan of a file or of the flags.
func (o recording) read(args []string) (record.Plan, error) {
	if o.plan != "" {
		if len(args) > 0 || len(o.knobs) > 0 || len(o.inputs) > 0 || len(o.env) > 0 {
			return record.Plan{}, errors.New("--plan and a command with its flags exclude each other")
		}
		text, err := os.ReadFile(o.plan)
		if err != nil {
			return record.Plan{}, fmt.Errorf("read the plan: %w", err)
		}
		return record.Parse(o.plan, text)
	}
	if len(args) == 0 {
		return record.Plan{}, errors.New("want --plan FILE, or a command behind --")
	}
	w := record.Workload{Name: o.workload, Command: args, Inputs: o.inputs, Env: map[string]string{}}
	if w.Name == "" {
		w.Name = filepath.Base(args[0])
	}
	for _, e := range o.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return record.Plan{}, fmt.Errorf("--env %q: want NAME=VALUE", e)
		}
		w.Env[name] = value
	}
	p := record.Plan{
		Workloads: []record.Workload{w}, Knobs: map[string][]string{}, Repeats: o.repeats,
		Progress: o.progress, Timeout: o.timeout, Seed: o.seed,
	}
	for _, k := range o.knobs {
		name, values, ok := strings.Cut(k, "=")
		if _, twice := p.Knobs[name]; !ok || twice {
			return record.Plan{}, fmt.Errorf("--knob %q: want NAME=VALUE,VALUE once for each name", k)
		}
		p.Knobs[name] = strings.Split(values, ",")
	}
	return p, p.Check()
}

// ownCPUs are those that this process may use.
func ownCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("ask for the CPUs of this process: %w", err)
	}
	var out []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out, nil
}

// meter starts an exporter of its own: it samples as often as asked, and believes the
// environment of this user's processes. nil: there is none.
func (o recording) meter(ctx context.Context) (*api.Client, func(), error) {
	nothing := func() {}
	program := o.exporter
	switch program {
	case "none":
		return nil, nothing, nil
	case "":
		self, err := os.Executable()
		if err != nil {
			return nil, nothing, fmt.Errorf("find this program: %w", err)
		}
		program = beside(self, "pitchpipe-exporter")
		if _, err := os.Stat(program); err != nil {
			if program, err = exec.LookPath("pitchpipe-exporter"); err != nil {
				return nil, nothing, nil
			}
		}
	}
	dir, err := os.MkdirTemp("", "pitchpipe-record-*")
	if err != nil {
		return nil, nothing, fmt.Errorf("make a folder for the exporter: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	socket := filepath.Join(dir, "exporter.sock")
	// It is ended below, so that what it has counted can be read after an interruption.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "--socket", socket, "--web.listen-address=", "--log.level=error",
		"--sampling.interval="+o.interval.String(), "--sampling.discover=100ms", "--sampling.ring=100000", "--api.readers="+strconv.Itoa(os.Getuid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		remove()
		return nil, nothing, fmt.Errorf("start the exporter %s: %w", program, err)
	}
	ended := make(chan struct{})
	var failed error // once it has ended
	go func() {
		failed = cmd.Wait()
		close(ended)
	}()
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		remove()
	}
	client := api.NewClient(socket)
	for {
		if _, err := client.Node(ctx); err == nil {
			return client, stop, nil
		}
		select {
		case <-ended:
			stop()
			return nil, nothing, fmt.Errorf("the exporter %s ended at once: %w", program, failed)
		case <-ctx.Done():
			stop()
			return nil, nothing, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
