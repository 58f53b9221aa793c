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
		if n := strings.Count(log.String(), `caller="user 7" reason="it asks too often" unlogged=0`); n != 20 {
			t.Errorf("%d lines of 50, want 20:\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		for _, want := range []string{"unlogged=30", "unlogged=0"} {
			log.Reset()
			if c.Add("user 7", "it asks too often"); !strings.Contains(log.String(), want) {
				t.Errorf("want %s:\n%s", want, log.String())
			}
		}
	})
}
