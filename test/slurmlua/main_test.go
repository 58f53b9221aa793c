package slurmlua_test

import (
	"context"
	"os"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

// TestMain makes this binary a pitchpipe too: the task prolog starts a copy of it
// inside jobs as the site's listener.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "listen" {
		os.Exit(command.Run(context.Background(), command.World{
			Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}
