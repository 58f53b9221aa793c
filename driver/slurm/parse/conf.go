package parse

import (
	"strconv"
	"strings"
	"time"
)

// Conf are the settings of `scontrol show config`. A setting without a value is empty.
type Conf map[string]string

// Config reads the output of `scontrol show config`.
func Config(output []byte) Conf {
	out := Conf{}
	for line := range strings.Lines(string(output)) {
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); ok && key != "" && !strings.ContainsAny(key, " \t") {
			out[key] = none(strings.TrimSpace(value))
		}
	}
	return out
}

// NextJob is the number that slurmctld gives next.
func (c Conf) NextJob() (int, error) { return count("NEXT_JOB_ID", c["NEXT_JOB_ID"]) }

// Booted is when slurmctld was started; zero where it does not say.
func (c Conf) Booted() (time.Time, error) { return Instant("BOOT_TIME", c["BOOT_TIME"]) }

// Accounts reports whether there is accounting to ask.
func (c Conf) Accounts() bool { return c["AccountingStorageType"] == "accounting_storage/slurmdbd" }

// Remembers is for how long an ended job is remembered (MinJobAge); 0 = for good, negative
// = the configuration does not say.
func (c Conf) Remembers() time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(c["MinJobAge"], "sec")))
	if err != nil {
		return -1
	}
	return time.Duration(n) * time.Second
}

// HidesJobs reports whether a user is not shown the jobs of others.
func (c Conf) HidesJobs() bool {
	for part := range strings.SplitSeq(c["PrivateData"], ",") {
		if part = strings.TrimSpace(part); part == "jobs" || part == "all" {
			return true
		}
	}
	return false
}

// Requeues reports whether a job that leaves with an exit status is put back into the queue.
func (c Conf) Requeues(exit int) bool {
	for part := range strings.SplitSeq(c["RequeueExit"]+","+c["RequeueExitHold"], ",") {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to, bad := strconv.Atoi(high)
		if !ranged || bad != nil {
			to = from
		}
		if err == nil && from <= exit && exit <= to {
			return true
		}
	}
	return false
}
