package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pitchpipe/test/nomadagent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nomadagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var o nomadagent.Options
	var inProcess bool
	flags := flag.NewFlagSet("nomadagent", flag.ContinueOnError)
	flags.BoolVar(&o.ACL, "acl", false, "turn ACLs on")
	flags.IntVar(&o.Cores, "cores", 0, "cores of the node, 0: those of the machine")
	flags.IntVar(&o.MemoryMB, "memory", 0, "memory of the node in MB, 0: that of the machine")
	flags.IntVar(&o.EventBuffer, "events", 0, "how many events the server keeps, 0: 100")
	flags.BoolVar(&o.Oversubscribe, "oversubscribe", false, "let memory_max count")
	flags.BoolVar(&inProcess, "in-process", false, "the server of test/nomadserver, though nomad is on PATH")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if inProcess {
		o.Kind = nomadagent.InProcess
	}
	began := time.Now()
	a, err := nomadagent.Launch(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if failed := a.Stop(context.WithoutCancel(ctx)); failed != nil && err == nil {
			err = failed
		}
	}()
	if _, err := fmt.Fprintf(out, "export NOMAD_ADDR=%s\n", a.Addr); err != nil {
		return err
	}
	if a.Token != "" {
		if _, err := fmt.Fprintf(out, "export NOMAD_TOKEN=%s\n", a.Token); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "# %s, up after %.1f s; interrupt to take it down\n", a.Name(), time.Since(began).Seconds()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
