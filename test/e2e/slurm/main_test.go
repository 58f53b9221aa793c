package slurm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
)

// shared is started by the first test that needs it.
var shared = &world{}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		if play, ok := roles()[os.Args[1]]; ok {
			if err := play(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	flag.Parse()
	status := m.Run()
	if err := errors.Join(shared.stop(context.Background()), shared.remains()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if _, err := os.Stdout.WriteString(shared.table); err != nil {
		status = 1
	}
	os.Exit(status)
}
