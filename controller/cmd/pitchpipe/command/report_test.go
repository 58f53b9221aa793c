package command_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/report"
	"pitchpipe/controller/report/sacct"
	"pitchpipe/test/sim"
)

func TestTheReportInItsThreeForms(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{EnergySource: "rapl"}})
	at := func(args ...string) []string { return append(args, "--socket", c.Config.Socket) }
	if text := ok(t, at("report")...); !strings.Contains(text, "There are none.") {
		t.Errorf("without jobs: %q", text)
	}
	if r := pitchpipe(t, at("advice")...); r.errors != "pitchpipe: invalid: the scheduler takes no advice\n" {
		t.Errorf("%q", r.errors)
	}
	id := strings.TrimSpace(ok(t, at("run", jobFile(t, "train", 3, 0.05, daemontest.Tuned("observe")...))...))
	done := c.Until(t, id, daemontest.Ended)

	var table report.Table
	decoded(t, &table, at("report", "--since", "1h")...)
	if len(table.Lines) != 1 || table.By != report.ByJob || table.Savings == nil {
		t.Fatalf("report %+v", table)
	}
	l := table.Lines[0]
	if l.Key != id || l.Name != "train" || l.Epochs == nil || *l.Epochs != 3 || l.Seconds == nil || *l.Seconds <= 0 || *l.Seconds > done.Seconds+1 ||
		l.CoreHours == nil || len(l.Energy) != 1 || l.Energy[0].Source != "rapl" || l.Energy[0].Joules != *done.Joules {
		t.Errorf("line %+v of the job %+v", l, done)
	}
	if text := ok(t, at("report", "--by", "user")...); !strings.HasPrefix(strings.Split(text, "\n")[2], "USER") || !strings.Contains(text, "(rapl)") {
		t.Errorf("by user:\n%s", text)
	}
	rows, err := csv.NewReader(strings.NewReader(ok(t, at("report", "--csv")...))).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][0] != id || rows[2][0] != "total" {
		t.Errorf("csv %q (%v)", rows, err)
	}
}

func TestKnowledgeAsItWasMeasured(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{EnergySource: "rapl"}})
	if text := ok(t, "knowledge", "--raw", "--socket", c.Config.Socket); text != "" {
		t.Errorf("before anything was learned: %q", text)
	}
	id := strings.TrimSpace(ok(t, "run", jobFile(t, "train", 3, 0.05, daemontest.Tuned("observe")...), "--socket", c.Config.Socket))
	c.Until(t, id, daemontest.Ended)
	lines := bufio.NewScanner(strings.NewReader(ok(t, "knowledge", "--raw", "--socket", c.Config.Socket)))
	var all []knowledge.Observation
	for lines.Scan() {
		var o knowledge.Observation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		all = append(all, o)
	}
	if len(all) != 1 || all[0].Job != id || len(all[0].Trials) == 0 {
		t.Errorf("observations %+v", all)
	}
}

// gzipped is what a file holds, compressed.
func gzipped(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAReportFromTheAccountingNeedsNoController(t *testing.T) {
	t.Parallel()
	file := write(t, "sacct.txt", "JobID|User|JobName|State|Elapsed|AllocCPUS|TotalCPU\n7|alice|train|COMPLETED|01:00:00|4|01:00:00\n8|alice|train|COMPLETED|01:00:00|4|01:00:00\n")
	if text := ok(t, "report", "--from-sacct", file); !strings.Contains(text, "6.0 of 8.0 core-hours") || !strings.Contains(text, "None of this is a saving") {
		t.Errorf("%s", text)
	}
	var s sacct.Summary
	if decoded(t, &s, "report", "--from-sacct", file); s.Total.Runs != 2 || s.Total.Returning != 1 || s.Total.CoreHours != 8 {
		t.Errorf("%+v", s)
	}
	if text := ok(t, "report", "--from-sacct", file, "--by", "kind"); !strings.Contains(text, "alice/train") || strings.Contains(text, "USER") {
		t.Errorf("%s", text)
	}
	if plain, zipped := ok(t, "report", "--from-sacct", file), ok(t, "report", "--from-sacct", write(t, "sacct.txt.gz", gzipped(t, file))); plain != zipped {
		t.Errorf("%s", zipped)
	}
	some := write(t, "some.txt", "JobID|State|Elapsed|AllocCPUS|JobName\n7|COMPLETED|soon|4|a\n8|COMPLETED|01:00:00|4|b\nof two lines\n9|COMPLETED|01:00:00|4|c\n")
	if r := pitchpipe(t, "report", "--from-sacct", some); r.code != 0 || !strings.Contains(r.errors, "left out: line 2: elapsed") ||
		!strings.HasPrefix(r.out, "2 runs that ended; 1 of the lines cannot be read and are left out\n") {
		t.Errorf("one line of three: exit %d, %q, %q", r.code, r.out, r.errors)
	}
	broken := write(t, "broken.txt", "JobID|Elapsed\n7|soon\n")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--from-sacct", broken}, "broken.txt: line 2: elapsed"},
		{[]string{"--from-sacct", broken + "x"}, "no such file"},
		{[]string{"--from-sacct", "-"}, "line 1"},
		{[]string{"--from-sacct", file, "--csv"}, "none of the others can be"},
		{[]string{"--from-sacct", file, "--since", "1d"}, "none of the others can be"},
		{[]string{"--from-sacct", file, "--by", "day"}, "want one of user, account, kind"},
	} {
		r := pitchpipe(t, append([]string{"report"}, c.args...)...)
		if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) {
			t.Errorf("%v: exit %d, %q, %q", c.args, r.code, r.out, r.errors)
		}
	}
}
