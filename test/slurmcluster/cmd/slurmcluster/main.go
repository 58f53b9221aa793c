package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"pitchpipe/test/slurmcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slurmcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var o slurmcluster.Options
	var linux bool
	flags := flag.NewFlagSet("slurmcluster", flag.ContinueOnError)
	flags.BoolVar(&o.Accounting, "accounting", false, "run mariadbd and slurmdbd too")
	flags.IntVar(&o.Nodes, "nodes", 1, "number of nodes")
	flags.IntVar(&o.CPUs, "cpus", 0, "what each node says it has, 0: what the machine has")
	flags.StringVar(&o.JobSubmitLua, "job-submit", "", "file that becomes job_submit.lua")
	flags.StringVar(&o.TaskProlog, "task-prolog", "", "program to run before each task")
	flags.BoolVar(&linux, "linuxproc", false, "no cgroups")
	flags.Func("file", "file to put beside slurm.conf, may be repeated", func(s string) error { o.Files = append(o.Files, s); return nil })
	flags.Func("line", "KEY=VALUE for slurm.conf, may be repeated", func(s string) error { o.Lines = append(o.Lines, s); return nil })
	if err := flags.Parse(args); err != nil {
		return err
	}
	if linux {
		o.Track = slurmcluster.TrackLinux
	}
	began := time.Now()
	c, err := slurmcluster.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if failed := c.Stop(context.WithoutCancel(ctx)); failed != nil && err == nil {
			err = failed
		}
	}()
	_, err = fmt.Fprintf(out, "export %s\n# up after %.1f s, nodes %s; interrupt to take it down\n# act as a user: setpriv --reuid %s --regid %s --clear-groups sh -c 'cd %s && sbatch ...'\n",
		strings.Join(c.Env(), " "), time.Since(began).Seconds(), strings.Join(c.Nodes(), ","), slurmcluster.Alpha, slurmcluster.Alpha, c.Home(slurmcluster.Alpha))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
