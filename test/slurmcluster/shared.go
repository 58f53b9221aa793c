package slurmcluster

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// Shared is one cluster for all tests of a package: the first that asks starts it,
// and TestMain stops it after the last.
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster. The test is skipped where there can be none, and fails
// where PITCHPIPE_REQUIRE_TOOLS asks that there is one.
func (s *Shared) Get(t testing.TB) *Cluster {
	t.Helper()
	s.once.Do(func() { s.cluster, s.err = Start(t.Context(), s.Options) })
	return Need(t, s.cluster, s.err)
}

// Need hands on what Start returned, with the test skipped or failed where that is
// not a cluster.
func Need(t testing.TB, c *Cluster, err error) *Cluster {
	t.Helper()
	if errors.Is(err, ErrUnavailable) && os.Getenv("PITCHPIPE_REQUIRE_TOOLS") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Stop takes the cluster down, where it was started.
func (s *Shared) Stop(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop(ctx)
}
