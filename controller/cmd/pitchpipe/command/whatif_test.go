package command_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/test/fixtures"
)

// accounting is what sacct prints of a week: ann's program keeps one of 8 cores busy, bob's all of his 4.
func accounting() string {
	var b strings.Builder
	b.WriteString("JobID|User|Partition|State|Submit|Start|Elapsed|Timelimit|AllocCPUS|TotalCPU|ReqMem|MaxRSS|JobName\n")
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for i := range 56 {
		const form = "2006-01-02T15:04:05"
		submit := at.Add(time.Duration(i) * 3 * time.Hour)
		start := submit.Add(time.Duration(i%8) * 15 * time.Minute)
		row := fmt.Sprintf("%d|%%s|batch|COMPLETED|%s|%s|%%s|1-00:00:00|%%s\n", i+1, submit.Format(form), start.Format(form))
		if i%2 == 0 {
			fmt.Fprintf(&b, row, "ann", "04:00:00", "8|04:00:00|64G|8G|fold")
		} else {
			fmt.Fprintf(&b, row, "bob", "03:00:00", "4|12:00:00|16G|14G|dock")
		}
	}
	return b.String() + "99|ann|batch|COMPLETED|soon\n"
}

func TestWhatTuningWouldHaveBroughtAsAPersonAndAProgramReadIt(t *testing.T) {
	t.Parallel()
	path := write(t, "jobs.txt", accounting())
	run := func(args ...string) string {
		t.Helper()
		r := pitchpipe(t, append([]string{"whatif", "--from-sacct", path}, args...)...)
		if r.code != 0 || !strings.Contains(r.errors, "left out: line 58: ") || !strings.Contains(r.errors, "6 of 6 ") {
			t.Fatal(r.code, r.errors)
		}
		return strings.ReplaceAll(r.out, path, "jobs.txt")
	}
	update := flag.Lookup("update").Value.String() == "true"
	fixtures.Golden(t, update, "testdata/whatif.txt", run("--nodes", "1", "--cores-per-node", "8", "--memory-per-node", "64GiB"))
	fixtures.Golden(t, update, "testdata/whatif.json", run("--json"))
	if text := run("--nodes", "1", "--cores-per-node", "4"); !strings.Contains(text, "jobs that cannot run there: 28, the first in line 2: it needs 8 cores of 4") {
		t.Errorf("%s", text)
	}
	r := pitchpipe(t, "whatif", "--from-sacct", write(t, "bare.txt", "JobID|State|Submit|Elapsed|AllocCPUS\n1|COMPLETED|2026-01-05T08:00:00|01:00:00|4\n"))
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "want --nodes") || r.out != "" {
		t.Error(r.code, r.errors, r.out)
	}
}
