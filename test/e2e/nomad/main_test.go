package nomad_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"pitchpipe/test/filterproxy"
)

// roleCalm is what the test binary is besides a test; see package calm.
const roleCalm = "e2e-calm"

// report is what the tests have to show when all have ended.
var report strings.Builder

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == roleCalm {
		if err := playCalm(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	status := m.Run()
	if _, err := os.Stdout.WriteString(report.String()); err != nil {
		status = 1
	}
	os.Exit(status)
}

func playCalm(socket, exporter string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return filterproxy.Serve(ctx, socket, exporter)
}
