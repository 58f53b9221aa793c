package slurm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// site is what the cluster's configuration says that matters here. It is read where it
// is needed and not kept: an administrator changes it while this process runs.
type site struct {
	accounting bool
	age        time.Duration // for which an ended job is remembered; 0 = for good, negative = not known
	private    bool          // a user is not shown the jobs of others
	requeue    []int         // exit statuses after which a job is put back into the queue
}

func readSite(ctx context.Context, c command.Runner) (site, error) {
	out, err := c.Run(ctx, command.Call{Name: "scontrol", Args: []string{"show", "config"}})
	if err != nil {
		return site{}, fmt.Errorf("reading the cluster's configuration: %w", err)
	}
	conf := parse.Config(out.Stdout)
	s := site{accounting: conf["AccountingStorageType"] == "accounting_storage/slurmdbd", age: parse.Remembers(conf)}
	for part := range strings.SplitSeq(conf["PrivateData"], ",") {
		s.private = s.private || strings.TrimSpace(part) == "jobs" || strings.TrimSpace(part) == "all"
	}
	for _, key := range []string{"RequeueExit", "RequeueExitHold"} {
		for part := range strings.SplitSeq(conf[key], ",") {
			low, high, _ := strings.Cut(part, "-")
			from, err := strconv.Atoi(low)
			if err != nil {
				continue
			}
			to, err := strconv.Atoi(high)
			if err != nil {
				to = from
			}
			for n := from; n <= min(to, 255); n++ {
				s.requeue = append(s.requeue, n)
			}
		}
	}
	return s, nil
}
