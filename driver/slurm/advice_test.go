package slurm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// told is a Slurm that prints the given text where a command line ends so, with the delimiter
// that it is asked for in place of |.
type told struct {
	command.Runner
	says map[string]string
}

// plain is a call with | in place of the delimiter that it asks for, and that delimiter.
func plain(c command.Call) (line, delimiter string) {
	random := regexp.MustCompile(`\|[A-Z2-7]{26}\|`)
	return random.ReplaceAllString(c.String(), "|"), cmp.Or(random.FindString(c.String()), "|")
}

func (f told) Run(ctx context.Context, c command.Call) (command.Output, error) {
	line, delimiter := plain(c)
	for end, text := range f.says {
		if strings.HasSuffix(line, end) {
			return command.Output{Stdout: []byte(strings.ReplaceAll(text, "|", delimiter))}, nil
		}
	}
	return f.Runner.Run(ctx, c) //nolint:wrapcheck // the fake's own
}

func TestQueueAndPastShowTheJobsOfAllUsersInThePartitionsThatAreWatched(t *testing.T) {
	t.Parallel()
	says := map[string]string{
		parse.EveryFormat("|"): "7|7|N/A|bob|a|main|normal|PENDING|4|1|30:00|2026-01-02T03:04:05|N/A|N/A|5|N/A|gres:gpu:1|pitchpipe:off|train|\n" +
			"8|8|N/A|bob|a|other|normal|RUNNING|4|1|30:00|2026-01-02T03:04:05|2026-01-02T03:05:05|N/A|5|N/A|N/A|(null)|train|\n",
		parse.CPUFields: "5|00:10.000\n5.batch|00:10.000\n6|00:01:00\n",
		parse.SacctFields: "5|bob|COMPLETED|0:0|2026-01-02T03:04:05|2026-01-02T03:04:06|2026-01-02T03:04:16|2|100M|00:30:00|main|a|normal|1|train|\n" +
			"6|bob|COMPLETED|0:0|2026-01-02T03:04:05|2026-01-02T03:04:06|2026-01-03T03:04:16|2|100M|00:30:00|main|a|normal|1|train|\n",
	}
	r, _ := newSite(t, func(c *slurm.Config) { c.Commands, c.Partitions = told{c.Commands, says}, []string{"main"} })
	queue, err := r.d.Queue(t.Context())
	if err != nil || len(queue) != 1 || queue[0].ID != "7" || queue[0].State != driver.Pending || queue[0].Nice != 5 || !queue[0].Off || queue[0].Resources.GPUs != 1 || queue[0].Resources.TimeLimit != 30*time.Minute {
		t.Errorf("the queue: %+v, %v", queue, err)
	}
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	if _, err := r.d.Past(t.Context(), day, day.Add(24*time.Hour)); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the past without accounting: %v, want %v", err, driver.ErrUnsupported)
	}
	r.f.conf += "AccountingStorageType = accounting_storage/slurmdbd\n"
	past, err := r.d.Past(t.Context(), day, day.Add(24*time.Hour))
	if err != nil || len(past) != 1 || past[0].ID != "5" || past[0].Used != 10*time.Second || past[0].Ended.Sub(past[0].Started) != 10*time.Second {
		t.Errorf("the past, of one day: %+v, %v", past, err)
	}
	if past, err = r.d.Past(t.Context(), day, day.Add(36*time.Hour)); err != nil || len(past) != 2 || past[0].ID != "5" || past[1].ID != "6" {
		t.Errorf("the past, of a day and a half: %+v, %v; want each job once", past, err)
	}
}

// Advise is a broker's.
func (h *hand) Advise(_ context.Context, a driver.Advice) error {
	h.note(fmt.Sprintf("advise %s %v %d", a.Job, a.TimeLimit, a.Nice))
	return nil
}

func TestAdviceGoesThroughTheBrokerAndAUsersRightsDoNotSufficeForIt(t *testing.T) {
	t.Parallel()
	site, h := newSite(t, nil)
	if err := site.d.Advise(t.Context(), driver.Advice{Job: "7", TimeLimit: time.Minute, Nice: 3}); err != nil || !slices.Equal(h.done, []string{"advise 7 1m0s 3"}) {
		t.Errorf("%v; done: %q", err, h.done)
	}
	if err := newRig(t, nil).d.Advise(t.Context(), driver.Advice{Job: "7"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("as a user: %v, want %v", err, driver.ErrUnsupported)
	}
}
