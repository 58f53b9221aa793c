package slurm_test

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

// wait makes a job begin at such a time: now, now+N.
func (j *fakeJob) wait(until string) {
	n := 0
	_, _ = fmt.Sscanf(until, "now+%d", &n)
	j.eligible = time.Now().UTC().Add(time.Duration(n) * time.Second).Truncate(time.Second)
}

func (f *fake) record(j *fakeJob) string {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return "Unknown"
		}
		return t.Format("2006-01-02T15:04:05")
	}
	host, limit := "", "UNLIMITED"
	if j.state != "PENDING" && !j.started.IsZero() {
		host = "BatchHost=n1 "
	}
	if j.limit > 0 {
		limit = fmt.Sprintf("%02d:%02d:00", j.limit/60, j.limit%60)
	}
	priority, requeue := 1, 1
	if j.held {
		priority = 0
	}
	if j.noRequeue {
		requeue = 0
	}
	array, eligible := "", j.eligible
	if eligible.IsZero() {
		eligible = j.submitted
	}
	if j.array > 0 {
		array = fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%d ", j.array, j.task)
	}
	return fmt.Sprintf("JobId=%d %sJobName=%s UserId=%s(%d) GroupId=g(1) Priority=%d Account=(null) QOS=normal JobState=%s Reason=None "+
		"Dependency=(null) Requeue=%d Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%d:0 TimeLimit=%s SubmitTime=%s EligibleTime=%s "+
		"StartTime=%s EndTime=%s Partition=%s NodeList=n1 %sNumNodes=1 NumCPUs=%d NumTasks=1 CPUs/Task=%d MinMemoryNode=%dM %s "+
		"Command=(null) WorkDir=/ AdminComment=%s Comment=%s StdErr=%s StdIn=/dev/null StdOut=%s Power= \n",
		j.number(), array, j.name, f.user, os.Getuid(), priority, j.state, requeue, j.restarts, j.exit, limit, stamp(j.submitted), stamp(eligible),
		stamp(j.started), stamp(j.ended), cmp.Or(j.partition, "main"), host, j.cores, j.cores, j.mem, j.more, j.admin, j.comment, j.out, j.out)
}
