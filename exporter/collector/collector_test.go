package collector_test

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

func TestDeniedIsNotUnsupported(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want api.Support
	}{
		{nil, api.Supported},
		{fmt.Errorf("open: %w", unix.EACCES), api.Denied},
		{fmt.Errorf("open: %w", unix.EPERM), api.Denied},
		{fmt.Errorf("open: %w", unix.ENOENT), api.Unsupported},
		{errors.New("no such counter"), api.Unsupported},
	} {
		got := collector.Source("x/y", "by this", tc.err)
		if got.Support != tc.want || got.Reason == "" {
			t.Errorf("%v: %+v, want %s with a reason", tc.err, got, tc.want)
		}
	}
}
