package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"pitchpipe/test/workloads/bfs"
	"pitchpipe/test/workloads/churn"
	"pitchpipe/test/workloads/dense"
	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/fetch"
	"pitchpipe/test/workloads/filehash"
	"pitchpipe/test/workloads/jacobi"
	"pitchpipe/test/workloads/kmeans"
	"pitchpipe/test/workloads/ledger"
	"pitchpipe/test/workloads/mergesort"
	"pitchpipe/test/workloads/pack"
	"pitchpipe/test/workloads/spawn"
	"pitchpipe/test/workloads/stream"
	"pitchpipe/test/workloads/tick"
	"pitchpipe/test/workloads/wave"
)

// gcPercent lets the kinds that allocate spend their time on work rather than on
// collecting; the others do not notice.
const gcPercent = 200

func kinds() []epochs.Kind {
	return []epochs.Kind{
		dense.Kind(), jacobi.Kind(), bfs.Kind(), kmeans.Kind(), stream.Kind(), mergesort.Kind(), filehash.Kind(),
		churn.Kind(), pack.Kind(), ledger.Kind(), fetch.Kind(), spawn.Kind(), wave.Kind(), tick.Kind(),
	}
}

func main() {
	// First of all, so that a signal that comes early does not end the process.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	requests := make(chan epochs.Request, 16)
	go translate(signals, requests)
	os.Exit(run(os.Args[1:], requests, os.Stdout, os.Stderr))
}

func translate(signals <-chan os.Signal, requests chan<- epochs.Request) {
	for s := range signals {
		q := epochs.SaveAndLeave
		if s == syscall.SIGTERM {
			q = epochs.Terminate
		}
		select {
		case requests <- q:
		default: // enough of them wait already
		}
	}
}

func run(args []string, requests <-chan epochs.Request, out, messages io.Writer) int {
	if len(args) == 0 {
		usage(messages)
		return epochs.ExitUsage
	}
	for _, k := range kinds() {
		if k.Name == args[0] {
			return runKind(k, args[1:], requests, out, messages)
		}
	}
	if args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		usage(out)
		return epochs.ExitDone
	}
	say(messages, "workload: unknown kind %q\n", args[0])
	usage(messages)
	return epochs.ExitUsage
}

func runKind(k epochs.Kind, args []string, requests <-chan epochs.Request, out, messages io.Writer) int {
	o, err := epochs.Parse(k.Name, args, os.Getenv, messages)
	if errors.Is(err, flag.ErrHelp) {
		return epochs.ExitDone
	}
	if err != nil {
		say(messages, "workload: %s: %v\n", k.Name, err)
		return epochs.ExitUsage
	}
	runtime.GOMAXPROCS(o.Params.Team.Threads())
	debug.SetGCPercent(gcPercent)
	status, err := epochs.Run(context.Background(), k, o, requests, epochs.Streams{Out: out, Messages: messages})
	if err != nil {
		say(messages, "workload: %s: %v\n", k.Name, err)
	}
	return status
}

func usage(w io.Writer) {
	say(w, "usage: workload KIND [flags]      (workload KIND --help lists the flags)\n")
	for _, k := range kinds() {
		say(w, "  %-8s %s\n", k.Name, k.Summary)
	}
}

// say prints to the user. Where that fails nobody is left to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
