package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

// version is stamped by the build: -X main.version=…
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, command.World{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Version: version,
	})
	stop()
	os.Exit(code)
}
