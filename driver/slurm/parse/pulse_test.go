package parse_test

import (
	"errors"
	"strings"
	"testing"

	"pitchpipe/driver/slurm/parse"
)

// diagnostics is what sdiag of 22.05.8 printed, with some of the statistics left out.
const diagnostics = `*******************************************************
sdiag output at Sat Nov 21 08:30:51 2026 (1795249851)
Data since      Sat Nov 21 08:29:51 2026 (1795249791)
*******************************************************
Server thread count:  3
Agent queue size:     0
Agent count:          0
Agent thread count:   0
DBD Agent queue size: 0

Jobs submitted: 10000
Jobs started:   7
Jobs completed: 5
Jobs canceled:  2
Jobs failed:    1

Job states ts:  Sat Nov 21 08:30:21 2026 (1795249821)
Jobs pending:   10000
Jobs running:   0

Main schedule statistics (microseconds):
	Last cycle:   7254
	Max cycle:    18929

Latency for 1000 calls to gettimeofday(): 23 microseconds

Remote Procedure Call statistics by message type
	REQUEST_SUBMIT_BATCH_JOB                ( 4003) count:10000  ave_time:1088   total_time:10889175

Pending RPC statistics
	No pending RPCs
`

func TestWhatSlurmctldCountsIsReadOrRefused(t *testing.T) {
	t.Parallel()
	got, err := parse.Diagnostics([]byte(diagnostics))
	want := parse.Activity{Since: 1795249791, Submitted: 10000, Started: 7, Completed: 5, Canceled: 2, Failed: 1}
	if err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	for name, text := range map[string]string{
		"nothing":                  "",
		"a counter is missing":     strings.Replace(diagnostics, "Jobs failed:    1\n", "", 1),
		"a counter is no number":   strings.Replace(diagnostics, "Jobs failed:    1", "Jobs failed:    many", 1),
		"a counter is negative":    strings.Replace(diagnostics, "Jobs failed:    1", "Jobs failed:    -1", 1),
		"the beginning is missing": strings.Replace(diagnostics, "Data since", "Data", 1),
		"the beginning has no seconds": strings.Replace(diagnostics, "Data since      Sat Nov 21 08:29:51 2026 (1795249791)",
			"Data since      NEVER", 1),
	} {
		if got, err := parse.Diagnostics([]byte(text)); !errors.Is(err, parse.ErrFormat) || got != (parse.Activity{}) {
			t.Errorf("%s: %+v (%v), want %v", name, got, err, parse.ErrFormat)
		}
	}
}

func TestTheNumberOfTheNextJob(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"Configuration data as of 2026-11-21T08:30:51\nMinJobAge               = 300 sec\nNEXT_JOB_ID             = 10001\n": 10001,
		"NEXT_JOB_ID             = soon\n":  0,
		"MinJobAge               = 300 sec": 0,
	} {
		got, err := parse.NextJob([]byte(text))
		if got != want || (want == 0) != errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q: %d (%v), want %d", text, got, err, want)
		}
	}
}

func FuzzDiagnostics(f *testing.F) {
	f.Add([]byte(diagnostics))
	f.Add([]byte("Data since x (1)\nJobs submitted: 1\nJobs submitted: 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := parse.Diagnostics(text)
		if err != nil && (!errors.Is(err, parse.ErrFormat) || a != (parse.Activity{})) {
			t.Errorf("%+v: %v", a, err)
		}
		if err == nil && (a.Since <= 0 || min(a.Submitted, a.Started, a.Completed, a.Canceled, a.Failed) < 0) {
			t.Errorf("%+v", a)
		}
	})
}

// statistics are what slurmrestd of 22.05.8 answered to GET diag, shortened.
const statistics = `{"meta":{"Slurm":{"release":"22.05.8"}},"errors":[],"statistics":{"parts_packed":1,"req_time":1795249851,
"req_time_start":1795249791,"server_thread_count":3,"jobs_submitted":10000,"jobs_started":7,"jobs_completed":5,"jobs_canceled":2,
"jobs_failed":1,"jobs_pending":10000,"jobs_running":0}}`

func TestWhatSlurmrestdCountsIsReadOrRefused(t *testing.T) {
	t.Parallel()
	want := parse.Activity{Since: 1795249791, Submitted: 10000, Started: 7, Completed: 5, Canceled: 2, Failed: 1}
	for name, text := range map[string]string{
		"numbers": statistics,
		"numbers that say that they are set": strings.Replace(statistics, `"req_time_start":1795249791`,
			`"req_time_start":{"set":true,"infinite":false,"number":1795249791}`, 1),
	} {
		if got, err := parse.Statistics([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, want)
		}
	}
	for name, text := range map[string]string{
		"nothing":                   "",
		"no statistics":             `{"errors":[{"error":"no"}]}`,
		"a counter is missing":      strings.Replace(statistics, `"jobs_failed":1,`, "", 1),
		"a counter is no number":    strings.Replace(statistics, `"jobs_failed":1`, `"jobs_failed":"1"`, 1),
		"a counter is negative":     strings.Replace(statistics, `"jobs_failed":1`, `"jobs_failed":-1`, 1),
		"a counter is not set":      strings.Replace(statistics, `"jobs_failed":1`, `"jobs_failed":{"set":false,"number":0}`, 1),
		"the counting never began":  strings.Replace(statistics, `"req_time_start":1795249791`, `"req_time_start":0`, 1),
		"the beginning is infinite": strings.Replace(statistics, `"req_time_start":1795249791`, `"req_time_start":{"infinite":true}`, 1),
	} {
		if got, err := parse.Statistics([]byte(text)); !errors.Is(err, parse.ErrFormat) || got != (parse.Activity{}) {
			t.Errorf("%s: %+v (%v), want %v", name, got, err, parse.ErrFormat)
		}
	}
}

func FuzzStatistics(f *testing.F) {
	f.Add([]byte(statistics))
	f.Add([]byte(`{"statistics":{"req_time_start":{"set":true,"number":1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := parse.Statistics(text)
		if err != nil && (!errors.Is(err, parse.ErrFormat) || a != (parse.Activity{})) {
			t.Errorf("%+v: %v", a, err)
		}
		if err == nil && (a.Since <= 0 || min(a.Submitted, a.Started, a.Completed, a.Canceled, a.Failed) < 0) {
			t.Errorf("%+v", a)
		}
	})
}
