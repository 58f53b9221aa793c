package broker_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// queue is a line of each job, as squeue -r prints it.
func (f *fake) queue(line func(j fakeJob, ids string) string) string {
	out := line(f.job, f.job.ids("7"))
	if f.second != nil {
		out += line(*f.second, f.second.ids("8"))
	}
	return out
}

// ids are the first fields of squeue.
func (j fakeJob) ids(number string) string {
	number = cmp.Or(j.number, number)
	return number + "|" + cmp.Or(j.array, number) + "|" + cmp.Or(j.task, "N/A") + "|"
}

func (j fakeJob) called(ids string) string {
	if j.array != "" {
		return j.array + "_" + j.task
	}
	return strings.Split(ids, "|")[0]
}

func (j fakeJob) arrayFields() string {
	switch {
	case j.leader != "":
		return "HetJobId=" + j.leader + " "
	case j.array == "":
		return ""
	}
	return "ArrayJobId=" + j.array + " ArrayTaskId=" + j.task + " ArrayTaskThrottle=2 "
}

// row is what squeue prints of the broker's columns.
func (j fakeJob) row(ids string) string {
	return fmt.Sprintf("%s%d|%s|%d|%dM|%s|%d|%s|main|%s|%s|%s|*:*:%s|%d|%s|", ids, j.uid, j.state, j.cores, j.mib, j.limit(), j.restarts,
		cmp.Or(j.leader, "N/A"), j.account, j.qos, cmp.Or(j.shares, "OK"), cmp.Or(j.threads, "*"), j.nice, j.timeLeft())
}

// timeLeft is as squeue prints it.
func (j fakeJob) timeLeft() string {
	left := int((time.Duration(j.minutes)*time.Minute - j.ran).Seconds())
	switch {
	case j.minutes == 0:
		return "UNLIMITED"
	case left < 0:
		return "INVALID"
	}
	return fmt.Sprintf("%02d:%02d:%02d", left/3600, left/60%60, left%60)
}
