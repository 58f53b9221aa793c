package command_test

import (
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/replay"
)

func TestEvaluateTunerPrintsBothForms(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", "tuner", "--trials", write(t, "trials.csv", trialsFile), "--objective", "time", "--seeds", "2", "--default", "cores=1"}
	r := pitchpipe(t, append(args, "--json")...)
	var report replay.TunerReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || report.Command != "evaluate tuner" || len(report.Rows) != 2 || report.Summary.Skipped != 0 {
		t.Fatalf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	if row := report.Rows[0]; row.Workload != "a" || row.OracleRatio != .375 || row.Final != "cores=4" || row.Recurrences != replay.Recurrences {
		t.Errorf("%+v", row)
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "objective                       time ") {
		t.Errorf("output %q", text.out)
	}
}

func TestEvaluateTunerRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	good, bad := write(t, "good.csv", trialsFile), write(t, "bad.csv", "workload,machine,seconds\na,m,fast\n")
	for name, args := range map[string][]string{
		"an unknown objective":               {"--trials", good, "--objective", "speed"},
		"a share of speed for energy":        {"--trials", good, "--attain", "0.98"},
		"a limit that no one keeps":          {"--trials", good, "--max-slowdown", "0.5"},
		"a file that is not one of trials":   {"--trials", bad},
		"a share of energy that is no share": {"--trials", good, "--weight", "2"},
	} {
		if r := pitchpipe(t, append([]string{"evaluate", "tuner"}, args...)...); r.code != command.ExitInvalid || r.out != "" {
			t.Errorf("%s: exit %d, %q %q", name, r.code, r.out, r.errors)
		}
	}
}
