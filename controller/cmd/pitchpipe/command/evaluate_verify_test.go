package command_test

import (
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/models"
)

func TestEvaluateVerifyPrintsBothForms(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	rows.WriteString("workload,machine,knob_cores,seconds\n")
	rows.WriteString(strings.Repeat("a,m,1,10\n", 20))
	args := []string{"evaluate", "verify", "--trials", write(t, "trials.csv", rows.String()), "--seeds", "2", "--epochs", "3", "--pairs", "8"}
	r := pitchpipe(t, append(args, "--json")...)
	var report models.VerifyReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || report.Command != "evaluate verify" || len(report.Data) != 1 || report.Summary.Replays != 2 {
		t.Fatalf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
		t.Error("the same seed gives another output")
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "repeats of one setting") || !strings.Contains(text.errors, "of ") {
		t.Errorf("output %q, progress %q", text.out, text.errors)
	}
}

func TestEvaluateVerifyRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	bad := write(t, "bad.csv", "workload,machine,seconds\na,m,fast\n")
	for name, args := range map[string][]string{
		"a word for a number":      {"--trials", bad},
		"trials for samples":       {"--samples", bad},
		"trials for curves":        {"--curves", bad},
		"a level that is no share": {"--level", "5"},
		"seeds below one":          {"--seeds", "-2"},
	} {
		if r := pitchpipe(t, append([]string{"evaluate", "verify"}, args...)...); r.code != command.ExitInvalid || r.out != "" || strings.Count(r.errors, "\n") != 1 {
			t.Errorf("%s: exit %d, %q %q", name, r.code, r.out, r.errors)
		}
	}
}
