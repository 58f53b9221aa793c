package slurmcluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"pitchpipe/test/slurmcluster"
)

// shared is the cluster of those tests that do not need their own.
var shared = &slurmcluster.Shared{Options: slurmcluster.Options{Accounting: true, Nodes: 2}}

func TestMain(m *testing.M) {
	status := m.Run()
	if err := shared.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
