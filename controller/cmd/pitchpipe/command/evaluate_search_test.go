package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/replay"
)

const trialsFile = "workload,machine,knob_cores,seconds,joules\n" +
	"a,m,1,8,80\na,m,2,4,60\na,m,4,3,70\nb,m,1,9,9\nb,m,2,9,8\nb,m,4,9,\n"

const curvesFile = "run,workload,machine,knob_lr,epoch,seconds,quality\n" +
	"1,a,m,0.1,1,2,0.5\n1,a,m,0.1,2,4,0.9\n2,a,m,0.2,1,2,0.6\n2,a,m,0.2,2,4,0.7\n"

func TestEvaluateSearchReadsTrialsAndCurvesAndPrintsBothForms(t *testing.T) {
	t.Parallel()
	trials, curves := write(t, "trials.csv", trialsFile), write(t, "curves.csv", curvesFile)
	args := []string{"evaluate", "search", "--trials", trials, curves, "--budget", "1,3", "--seeds", "2"}
	r := pitchpipe(t, append(args, "--json")...)
	if r.code != command.ExitOK || !strings.Contains(r.errors, "18 of 18 ") {
		t.Fatalf("exit %d: %s", r.code, r.errors)
	}
	var report replay.SearchReport
	decode(t, r.out, &report)
	outcomes := map[string]int{}
	for _, row := range report.Rows {
		outcomes[row.Outcome]++
	}
	if report.Command != "evaluate search" || len(report.Data) != 2 || outcomes["joules"] != 24 || outcomes["error"] != 12 {
		t.Errorf("%s over %v, rows by outcome %v", report.Command, report.Data, outcomes)
	}
	if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
		t.Error("the same seed gives another output")
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "LOG RATIO") || !strings.Contains(text.out, "gaussian_process_warm") {
		t.Errorf("output %q", text.out)
	}
}

func TestEvaluateHyperPrintsBothForms(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", "hyper", "--curves", write(t, "curves.csv", curvesFile), "--seconds", "8", "--seeds", "2", "--method", "random,asha"}
	r := pitchpipe(t, append(args, "--json")...)
	var report replay.HyperReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || len(report.Rows) != 2 || report.Rows[0].Seconds != 8 || report.Rows[0].RegretMean != 0 {
		t.Errorf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "REGRET") {
		t.Errorf("output %q", text.out)
	}
}

func TestEvaluationsOfBadFilesExitWithTwo(t *testing.T) {
	t.Parallel()
	bad := write(t, "bad.csv", "workload,machine,joules\na,m,many\n")
	good := write(t, "trials.csv", trialsFile)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no file to search":       {[]string{"search"}, "no file"},
		"a word for a number":     {[]string{"search", "--trials", bad}, "bad.csv:2:5: joules is \"many\""},
		"trials for curves":       {[]string{"search", "--curves", good}, "column \"run\" is missing"},
		"an outcome of nothing":   {[]string{"search", "--trials", good, "--outcome", "joy"}, "want one of joules"},
		"a search without a seed": {[]string{"search", "--trials", good, "--seeds", "0"}, "0 seeds"},
		"no curves":               {[]string{"hyper"}, "no file"},
		"trials where curves go":  {[]string{"hyper", "--curves", good}, "column \"run\" is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"evaluate"}, c.args...)...)
			if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("exit %d, output %q, errors %q; want %d, none, one line with %q", r.code, r.out, r.errors, command.ExitInvalid, c.says)
			}
		})
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
