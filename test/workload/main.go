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
)

// gcPercent lets the kinds that allocate spend their time on work rather than on
// collecting; the others do not notice.
const gcPercent = 200

// kind is one way in which programs differ in what a second core or thread does for them.
type kind struct {
	name, summary string
	start         func(params) (work, error)
}

func kinds() []kind {
	return []kind{
		{"dense", "train a dense network by mini-batch gradient descent (BATCH_SIZE)", newDense},
		{"jacobi", "solve Poisson's equation by Jacobi sweeps, a barrier after each", newJacobi},
		{"bfs", "breadth-first searches of a random graph, allocating at every level", newBFS},
		{"kmeans", "cluster points by Lloyd's algorithm, one pass an epoch", newKMeans},
		{"stream", "move large arrays through memory", newStream},
		{"sort", "sort random keys with a parallel merge sort, allocating for each", newSort},
		{"hash", "read and hash a file that it made itself", newHash},
		{"pack", "compress and expand a text in one stream, on one thread whatever is allowed", newPack},
		{"tick", "wait --epoch-seconds an epoch and note it in --journal", newTick},
	}
}

func main() {
	// First of all, so that a signal that comes early does not end the process.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	requests := make(chan request, 16)
	go translate(signals, requests)
	os.Exit(run(os.Args[1:], requests, os.Stdout, os.Stderr))
}

func translate(signals <-chan os.Signal, requests chan<- request) {
	for s := range signals {
		q := saveAndLeave
		if s == syscall.SIGTERM {
			q = terminate
		}
		select {
		case requests <- q:
		default: // enough of them wait already
		}
	}
}

func run(args []string, requests <-chan request, out, messages io.Writer) int {
	if len(args) == 0 {
		usage(messages)
		return exitUsage
	}
	for _, k := range kinds() {
		if k.name == args[0] {
			return runKind(k, args[1:], requests, out, messages)
		}
	}
	if args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		usage(out)
		return exitDone
	}
	say(messages, "workload: unknown kind %q\n", args[0])
	usage(messages)
	return exitUsage
}

func runKind(k kind, args []string, requests <-chan request, out, messages io.Writer) int {
	o, err := parse(k.name, args, os.Getenv, messages)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		say(messages, "workload: %s: %v\n", k.name, err)
		return exitUsage
	}
	runtime.GOMAXPROCS(o.params.team.threads)
	debug.SetGCPercent(gcPercent)
	status, err := play(context.Background(), k, o, requests, out, messages)
	if err != nil {
		say(messages, "workload: %s: %v\n", k.name, err)
	}
	return status
}

func usage(w io.Writer) {
	say(w, "usage: workload KIND [flags]      (workload KIND --help lists the flags)\n")
	for _, k := range kinds() {
		say(w, "  %-8s %s\n", k.name, k.summary)
	}
}

// say prints to the user. A failure has no one left to report to.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
