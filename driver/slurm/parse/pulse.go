package parse

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Activity are the counters of slurmctld since it was started or last reset them:
// equal as long as no job was submitted, began or ended.
type Activity struct {
	Since                                           int64 // when the counting began, in seconds
	Submitted, Started, Completed, Canceled, Failed int
}

// Diagnostics reads what sdiag prints first; the statistics behind are left alone.
func Diagnostics(output []byte) (Activity, error) {
	var a Activity
	counters := map[string]*int{
		"Jobs submitted": &a.Submitted, "Jobs started": &a.Started, "Jobs completed": &a.Completed,
		"Jobs canceled": &a.Canceled, "Jobs failed": &a.Failed,
	}
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "Data since"); ok && a.Since == 0 {
			open := strings.LastIndexByte(rest, '(')
			since, err := strconv.ParseInt(strings.TrimSuffix(rest[open+1:], ")"), 10, 64)
			if open < 0 || err != nil || since <= 0 {
				return Activity{}, badValue("Data since", rest)
			}
			a.Since = since
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		to := counters[key]
		if !ok || to == nil {
			continue
		}
		n, err := count(key, strings.TrimSpace(value))
		if err != nil {
			return Activity{}, err
		}
		*to = n
		delete(counters, key) // said twice it is not what is known
	}
	if len(counters) > 0 || a.Since == 0 {
		return Activity{}, fmt.Errorf("%w: sdiag: %d counters are missing", ErrFormat, len(counters))
	}
	return a, nil
}

// NextJob is the number that slurmctld gives next, by `scontrol show config`.
func NextJob(output []byte) (int, error) {
	return count("NEXT_JOB_ID", Config(output)["NEXT_JOB_ID"])
}

// Statistics reads the same from slurmrestd's answer to GET diag. Numbers are plain up
// to its version 0.0.38, and later objects that also say whether they are set.
func Statistics(answer []byte) (Activity, error) {
	var doc struct {
		Statistics map[string]json.RawMessage `json:"statistics"`
	}
	if err := json.Unmarshal(answer, &doc); err != nil {
		return Activity{}, fmt.Errorf("%w: diag: %w", ErrFormat, err)
	}
	number := func(name string) (int, error) {
		raw, ok := doc.Statistics[name]
		if !ok {
			return 0, fmt.Errorf("%w: diag: %s is missing", ErrFormat, name)
		}
		var n int
		if json.Unmarshal(raw, &n) != nil {
			var o struct {
				Set    bool `json:"set"`
				Number *int `json:"number"`
			}
			if json.Unmarshal(raw, &o) != nil || o.Number == nil || !o.Set {
				return 0, badValue(name, string(raw))
			}
			n = *o.Number
		}
		if n < 0 {
			return 0, badValue(name, string(raw))
		}
		return n, nil
	}
	var a Activity
	since, err := number("req_time_start")
	if err == nil && since == 0 {
		err = badValue("req_time_start", "0")
	}
	a.Since = int64(since)
	for _, c := range []struct {
		name string
		to   *int
	}{
		{"jobs_submitted", &a.Submitted},
		{"jobs_started", &a.Started},
		{"jobs_completed", &a.Completed},
		{"jobs_canceled", &a.Canceled},
		{"jobs_failed", &a.Failed},
	} {
		if err == nil {
			*c.to, err = number(c.name)
		}
	}
	if err != nil {
		return Activity{}, err
	}
	return a, nil
}
