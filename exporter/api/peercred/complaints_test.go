package peercred_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api/peercred"
)

func TestALogTellsOfSoManyRefusalsAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c := &peercred.Complaints{Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 50 {
			c.Add("user 7", "it asks too often")
		}
		if n := strings.Count(log.String(), `caller="user 7" reason="it asks too often"`); n != 20 || strings.Contains(log.String(), "more callers") {
			t.Errorf("%d lines of 50, want 20:\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		for minute, want := range []bool{true, false} {
			log.Reset()
			c.Add("user 7", "it asks too often")
			if got := strings.Contains(log.String(), `msg="more callers were refused" count=30`); got != want {
				t.Errorf("minute %d: the 30 others are told of: %v, want %v:\n%s", minute+1, got, want, log.String())
			}
			time.Sleep(time.Minute)
		}
	})
}
