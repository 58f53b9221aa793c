package local_test

import (
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/cgroup"
)

func TestAShortBurstOfMemoryAtTheEndIsSeenAndPageCacheIsNot(t *testing.T) {
	t.Parallel()
	if !cgroup.Probe(local.DefaultCgroupRoot).Memory {
		t.Skip("no cgroup here counts memory")
	}
	b := newBench(t, nil)
	burst := `head -c 60000000 /dev/zero | tail -n 1 | wc -c` // tail holds the line
	file := t.TempDir() + "/file"
	cache := "head -c 120000000 /dev/zero >" + file
	for _, tt := range []struct {
		name        string
		lines       []string
		least, most int64
	}{
		{"a burst", []string{burst}, 60e6, 180e6},
		{"page cache", []string{cache}, 1, 60e6},
		{"a burst after page cache", []string{cache, burst}, 60e6, 180e6},
		{"page cache that went again", []string{cache, "sleep 1", "rm " + file}, 1, 60e6},
	} {
		job := b.ended(t, b.start(t, driver.RequestID(tt.name), script(tt.lines...)).ID, driver.Succeeded)
		if got := job.Attempts[0].Peak; got < tt.least || got > tt.most {
			t.Errorf("%s: a peak of %d bytes, want %d to %d", tt.name, got, tt.least, tt.most)
		}
	}
}
