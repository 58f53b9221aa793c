package command

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/simulate/figure"
	"pitchpipe/controller/tuning"
)

func (a *app) simulate() *cobra.Command {
	var format, folder string
	var names []string
	var shape simulate.Shape
	policies := tuning.Each(simulate.Specs(), func(s simulate.Spec) string { return s.Name })
	cmd := &cobra.Command{
		Use: "simulate LOG --format FORMAT --policy NAMES", Short: "Replay a log of jobs under other scheduling policies",
		Long: "Simulate what policies make of the jobs of a log: waits, completion times, use of the cluster. LOG is a file, gzip\n" +
			"or not, or - for the standard input: swf (Standard Workload Format), sacct (what sacct -P printed, with Submit,\n" +
			"Elapsed and AllocCPUS), or csv with a header that has some of id,user,group,account,name,state,submit,start,duration,\n" +
			"limit,nodes,cpus,gpus,memory,memory_used,cpu_seconds,kind (needed: submit, duration and one of cpus, gpus), in seconds\n" +
			"and bytes; its other columns do not count. For venus it is the folder of that data set. Jobs need GPUs where the\n" +
			"cluster has any, else cores.\n" +
			"The cores in the log's header form one pool. --nodes and --cores-per-node make nodes of them: the value that is\n" +
			"missing is the header's number of nodes, or its cores divided by the nodes and rounded down; if the header has\n" +
			"none, both flags are needed.\n" +
			"A job that reaches its limit is killed. sjf and srtf know the true durations, as no scheduler does. lucid needs a\n" +
			"venus folder. qssf uses the forecasts of that folder, else its own. srtf, tiresias and pitchpipe preempt jobs: each\n" +
			"preemption costs a job 40 s (60 s on more than 8 cores or GPUs), and their longest waits can exceed those of easy.\n" +
			"Partitions are printed for a single policy, and with --json always.\n" +
			"No controller is asked. controller/evaluate/KEYS.md explains the keys of --json.",
		Example: "  pitchpipe simulate log.swf.gz --format swf --policy fifo,easy --nodes 128 --cores-per-node 4",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var specs []simulate.Spec
			for _, name := range names {
				at := slices.Index(policies, name)
				if at < 0 {
					return fmt.Errorf("%w --policy %q: want some of %s", errInvalid, name, strings.Join(policies, ", "))
				}
				specs = append(specs, simulate.Specs()[at])
			}
			if len(specs) == 0 {
				return fmt.Errorf("%w --policy: want some of %s", errInvalid, strings.Join(policies, ", "))
			}
			if err := positive(cmd, "nodes", "cores-per-node", "gpus-per-node"); err != nil {
				return err
			}
			l, err := a.openLog(joblog.Format(format), args[0])
			if err != nil {
				return err
			}
			in, err := simulate.Prepare(l, shape)
			if err != nil {
				return err
			}
			for _, s := range specs { // before hours of work
				if _, err := s.New(cmd.Context(), in); err != nil {
					return fmt.Errorf("--policy %s: %w", s.Name, err)
				}
			}
			if err := ready(folder); err != nil { // before hours of work, too, but of no log that is refused
				return err
			}
			r := evaluate.Report{Command: "simulate", Data: args, Summary: simulated(format, in)}
			began, waits, completions := processorSeconds(), figure.Waits(), figure.Completions()
			for _, s := range specs {
				one := processorSeconds()
				result, err := simulate.Run(cmd.Context(), in, s, a.progress())
				if err != nil {
					return err
				}
				rows := simulate.Rows(result)
				rows[0]["cpu_seconds"] = evaluate.Figure(processorSeconds() - one)
				if r.Rows = append(r.Rows, rows...); folder == "" {
					continue
				}
				waits.Add(result)
				completions.Add(result)
				if err := errors.Join(drawn(folder, "timeline_"+s.Name, figure.Timeline(result)), inFolder(folder, "jobs_"+s.Name+".csv.gz", func(w io.Writer) error {
					z := gzip.NewWriter(w)
					return errors.Join(simulate.WriteJobs(z, result), z.Close())
				})); err != nil {
					return err
				}
			}
			if folder != "" {
				if err := errors.Join(drawn(folder, "waits", waits.Sheet()), drawn(folder, "completions", completions.Sheet())); err != nil {
					return err
				}
			}
			r.Summary["cpu_seconds"] = evaluate.Figure(processorSeconds() - began)
			r.Hidden = func(l evaluate.Line) bool { return len(specs) > 1 && l.Text("partition") != "" }
			if left := r.Summary.Lines("left_out"); !a.json {
				r.Summary["left_out"] = left[:min(10, len(left))] // more are likely alike
			}
			return a.said(r, "%s", r.Text())
		},
	}
	logFormat(cmd, &format)
	f := cmd.Flags()
	f.StringSliceVar(&names, "policy", []string{"easy", "easy-forecast", "pitchpipe"}, "policies, of "+strings.Join(policies, ", "))
	f.IntVar(&shape.Nodes, "nodes", 0, "nodes of the cluster")
	f.IntVar(&shape.CoresPerNode, "cores-per-node", 0, "cores of a node")
	f.IntVar(&shape.GPUsPerNode, "gpus-per-node", 0, "GPUs of a node")
	f.StringVar(&folder, "out", "", "folder for jobs_POLICY.csv.gz and pictures")
	offer(cmd, "policy", policies)
	return cmd
}

// positive refuses a flag that is given and below 1.
func positive(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if n, err := cmd.Flags().GetInt(name); cmd.Flags().Changed(name) && (err != nil || n < 1) {
			return fmt.Errorf("%w --%s %d: want 1 or more", errInvalid, name, n)
		}
	}
	return nil
}

func simulated(format string, in simulate.Input) evaluate.Line {
	left := append([]evaluate.Line{}, tuning.Each(in.Log.Broken, func(b joblog.Broken) evaluate.Line {
		return evaluate.Line{"line": b.Line, "why": b.Why}
	})...)
	nodes, units := 0, 0
	for _, p := range in.Partitions {
		nodes, units = nodes+p.Nodes, units+p.Nodes*p.PerNode
	}
	return evaluate.Line{
		"format": format, "jobs": len(in.Log.Jobs), "lines_left_out": len(left), "partitions": len(in.Partitions), "nodes": nodes, "units": units, "left_out": left,
	}
}

func drawn(folder, name string, s picture.Sheet) error {
	return inFolder(folder, name+".svg", func(w io.Writer) error { return s.Write(w, picture.SVG) })
}

// ready makes a folder, if one is named.
func ready(folder string) error {
	if folder == "" {
		return nil
	}
	return invalid("folder", os.MkdirAll(folder, 0o755)) //nolint:gosec // results are for all to read
}

func inFolder(folder, name string, write func(io.Writer) error) error {
	file, err := os.Create(filepath.Join(folder, name)) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	return nil
}

func processorSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it does not fail for oneself
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Round(time.Millisecond).Seconds()
}
