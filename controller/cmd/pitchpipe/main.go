package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

// version is stamped by the build: -X main.version=…
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills, where the first does not end what hangs. timeout and terminals may send the first one twice.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	code := command.Run(ctx, command.World{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Version: version,
	})
	stop()
	os.Exit(code)
}
