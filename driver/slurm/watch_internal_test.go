package slurm

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

func TestHowOftenTheQueueIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		cost, spent      time.Duration
		dear             bool
		due, limit, next time.Duration
	}{
		{"a look that costs nothing", 0, 0, false, 2 * time.Second, 2 * time.Second, time.Second},
		{"a small queue", 9 * time.Millisecond, 9 * time.Millisecond, false, 2 * time.Second, 2 * time.Second, time.Second},
		{"ten thousand jobs", 60 * time.Millisecond, 60 * time.Millisecond, true, 6 * time.Second, 10 * time.Second, time.Second},
		{"ten thousand jobs, many of them new", 60 * time.Millisecond, 400 * time.Millisecond, true, 10 * time.Second, 10 * time.Second, time.Second},
		{"a hundred thousand jobs", 600 * time.Millisecond, 700 * time.Millisecond, true, time.Minute, time.Minute, time.Second},
	} {
		w := watcher{d: &Driver{cfg: Config{Interval: 2 * time.Second}}, cost: c.cost, spent: c.spent, looked: time.Now()}
		if w.dear() != c.dear || w.due() != c.due || w.limit() != c.limit || w.pause(w.looked) != c.next {
			t.Errorf("%s: dear %v, due after %v and %v, next step after %v; want %v, %v, %v, %v",
				c.name, w.dear(), w.due(), w.limit(), w.pause(w.looked), c.dear, c.due, c.limit, c.next)
		}
	}
}

func TestAHooksWordSavesTheRestOfTheInterval(t *testing.T) {
	t.Parallel()
	w := watcher{d: &Driver{cfg: Config{Interval: 2 * time.Second}}, cost: 9 * time.Millisecond, spent: 9 * time.Millisecond, woken: true}
	if got := w.due(); got != 900*time.Millisecond {
		t.Errorf("due after %v, want 900ms: when the last look is paid for", got)
	}
	w.cost, w.spent = 60*time.Millisecond, 60*time.Millisecond
	if got := w.due(); got != 6*time.Second {
		t.Errorf("where looks are dear due after %v, want 6s", got)
	}
}

func TestWhatOfALineOfSqueueSaysThatAJobHasToBeLookedAt(t *testing.T) {
	t.Parallel()
	d := &Driver{hashes: maphash.MakeSeed()}
	line := func(text string) parse.QueueLine {
		t.Helper()
		lines, err := parse.Queue([]byte(text + "\n"))
		if err != nil || len(lines) != 1 {
			t.Fatalf("%q: %v", text, err)
		}
		return lines[0]
	}
	base := line("7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|main|")
	for text, same := range map[string]bool{
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|main|":    true,
		"7|7|N/A|N/A|PENDING|Resources|0|1|100M|10:00|main|":   true,
		"7|7|N/A|N/A|PENDING|JobHeldUser|0|1|100M|10:00|main|": false,
		"7|7|N/A|N/A|RUNNING|None|0|1|100M|10:00|main|":        false,
		"7|7|N/A|N/A|PENDING|Priority|1|1|100M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|2|100M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|200M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|20:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|other|":   false,
	} {
		if got := d.print(line(text)) == d.print(base); got != same {
			t.Errorf("%s: the same is %v, want %v", text, got, same)
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
	if _, ok := d.recall("1"); ok {
		t.Error("an answer from before counts")
	}
	d.keep("1", seen{at: time.Now().Add(time.Millisecond)}, driver.Job{ID: "1"})
	if _, ok := d.recall("1"); !ok {
		t.Error("an answer from after does not count")
	}
	d.trust(time.Time{})
	if _, ok := d.recall("1"); ok {
		t.Error("an answer counts although nobody watches")
	}
}

// counting answers as slurmctld counts, and has a job for each number below next.
type counting struct {
	submitted, next int
	asked           []string
}

func (c *counting) Run(_ context.Context, call command.Call) (command.Output, error) {
	line := call.String()
	c.asked = append(c.asked, line)
	number := 0
	switch {
	case call.Name == "sdiag":
		return command.Output{Stdout: fmt.Appendf(nil, "Data since (1)\nJobs submitted: %d\nJobs started: 0\nJobs completed: 0\nJobs canceled: 0\nJobs failed: 0\n", c.submitted)}, nil
	case strings.HasSuffix(line, "show config"):
		return command.Output{Stdout: fmt.Appendf(nil, "NEXT_JOB_ID = %d\n", c.next)}, nil
	}
	if _, err := fmt.Sscanf(call.Args[len(call.Args)-1], "%d", &number); err != nil || number >= c.next {
		return command.Output{}, &command.Failed{Call: call, Status: 1, Stderr: "Invalid job id specified", Cause: driver.ErrNotFound}
	}
	return command.Output{Stdout: []byte(shown(number, "alice", ""))}, nil
}

func TestWhatALookHasShownIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		look            int // the next number, as a look showed it since
		submitted, next int
		asked           int
	}{
		{"nothing was submitted", 10, 10, 10, 0},
		{"one was, and no look has shown it", 10, 11, 11, 1},
		{"one was, and a look has shown it", 11, 11, 11, 0},
		{"two were, and a look has shown the first", 11, 12, 12, 1},
		{"one was, and a look has shown a task's number too", 12, 11, 12, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slurm := &counting{submitted: c.submitted, next: c.next}
			d := &Driver{
				cfg:  Config{Interval: 2 * time.Second, Commands: slurm, Logger: slog.New(slog.DiscardHandler)},
				seen: map[driver.JobID]seen{}, doubted: map[driver.JobID]time.Time{}, strangers: map[string]time.Time{},
			}
			w := watcher{d: d, looked: time.Now(), next: c.look, ahead: c.look - 10, count: &parse.Activity{Since: 1, Submitted: 10}}
			w.beat(t.Context())
			var jobs, config int
			for _, line := range slurm.asked {
				switch {
				case strings.HasSuffix(line, "show config"):
					config++
				case strings.HasPrefix(line, "scontrol"):
					jobs++
				}
			}
			if jobs != c.asked || config != 0 || w.next != c.next || w.ahead != 0 {
				t.Errorf("asked for %d jobs and %d times for the next number, which is taken for %d, %d ahead; want %d, 0, %d, 0: %q",
					jobs, config, w.next, w.ahead, c.asked, c.next, slurm.asked)
			}
		})
	}
}
