package slurm

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
)

func TestHowOftenTheQueueIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cost  time.Duration
		woken bool
		due   time.Duration
	}{
		{"a look that costs nothing", 0, false, 1500 * time.Millisecond},
		{"a small queue", 9 * time.Millisecond, false, 1500 * time.Millisecond},
		{"a small queue, and a hook ran", 9 * time.Millisecond, true, 900 * time.Millisecond},
		{"ten thousand jobs", 60 * time.Millisecond, false, 6 * time.Second},
		{"ten thousand jobs, and a hook ran", 60 * time.Millisecond, true, 6 * time.Second},
		{"a hundred thousand jobs", 600 * time.Millisecond, false, time.Minute},
	} {
		w := watcher{d: &Driver{cfg: Config{Interval: 2 * time.Second}}, cost: c.cost, woken: c.woken}
		if got := w.due(); got != c.due {
			t.Errorf("%s: due after %v, want %v", c.name, got, c.due)
		}
	}
}

func TestAReadingThatWasUnderWayWhenSomethingWasDoneDoesNotCount(t *testing.T) {
	t.Parallel()
	d := &Driver{
		seen: map[driver.JobID]seen{}, doubted: map[driver.JobID]time.Time{},
		until: time.Now().Add(time.Hour),
	}
	began := time.Now()
	d.hold("1")()
	d.keep("1", seen{at: began}, driver.Job{ID: "1"})
	if _, ok, _ := d.recall("1"); ok {
		t.Error("an answer from before counts")
	}
	d.keep("1", seen{at: time.Now().Add(time.Millisecond)}, driver.Job{ID: "1"})
	if _, ok, _ := d.recall("1"); !ok {
		t.Error("an answer from after does not count")
	}
	d.trust(time.Time{})
	if _, ok, _ := d.recall("1"); ok {
		t.Error("an answer counts although no one watches")
	}
}

// counting has a job for each number below next.
type counting struct {
	next  int
	asked []string
}

func (c *counting) Run(_ context.Context, call command.Call) (command.Output, error) {
	line := call.String()
	c.asked = append(c.asked, line)
	number := 0
	if strings.HasSuffix(line, "show config") {
		return command.Output{Stdout: fmt.Appendf(nil, "NEXT_JOB_ID = %d\n", c.next)}, nil
	}
	if _, err := fmt.Sscanf(call.Args[len(call.Args)-1], "%d", &number); err != nil || number >= c.next {
		return command.Output{}, &command.Failed{Call: call, Status: 1, Stderr: "Invalid job id specified", Cause: driver.ErrNotFound}
	}
	return command.Output{Stdout: []byte(shown(number, "alice", ""))}, nil
}

func TestJobsThatNoLookHasShownAreReadByTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		look  int // the next number, as the last look showed it
		next  int
		spent time.Duration
		reads int
	}{
		{"no number was given", 10, 10, 0, 0},
		{"two were given", 10, 12, 0, 2},
		{"a look has shown one of two", 11, 12, 0, 1},
		{"more than the next look is worth", 10, 11 + news, 0, 0},
		{"numbers came round", 10, 2, 0, 0},
		{"what new jobs may cost is spent", 10, 12, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slurm := &counting{next: c.next}
			d := &Driver{
				cfg:  Config{Interval: 2 * time.Second, Commands: slurm, Logger: slog.New(slog.DiscardHandler)},
				seen: map[driver.JobID]seen{}, doubted: map[driver.JobID]time.Time{}, strangers: map[string]time.Time{},
			}
			w := watcher{d: d, looked: time.Now(), next: c.look, spent: c.spent}
			w.arrivals(t.Context())
			reads := 0
			for _, line := range slurm.asked {
				if !strings.HasSuffix(line, "show config") {
					reads++
				}
			}
			if want := c.next; reads != c.reads || c.spent == 0 && w.next != want {
				t.Errorf("%d jobs were read, and the next number is taken for %d; want %d and %d: %q", reads, w.next, c.reads, want, slurm.asked)
			}
		})
	}
}
