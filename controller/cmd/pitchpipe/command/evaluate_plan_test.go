package command_test

import (
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/replay"
)

// jobsFile is a job that two cores serve as well as four, for fewer joules.
const jobsFile = "workload,machine,knob_cores,seconds,joules,cpu_seconds\na,m,4,100,1000,105\na,m,2,100,600,105\nb,m,4,100,1000,400\n"

func TestEvaluatePlanPrintsBothForms(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", "plan", "--trials", write(t, "trials.csv", jobsFile), "--objective", "cost", "--epochs", "4,60", "--restart-cost", "10", "--seeds", "2"}
	r := pitchpipe(t, append(args, "--json")...)
	var report replay.PlanReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || report.Command != "evaluate plan" || len(report.Data) != 1 || len(report.Rows) != 2 || !strings.Contains(r.errors, "2 of 2 ") {
		t.Fatalf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	short, long := report.Rows[0], report.Rows[1]
	if short.Moved != 0 || short.Ratio != 1 || long.Paid != 1 || long.Final != "cores=2" || report.Summary.Skipped != 1 || report.Summary.Restart != 10 {
		t.Errorf("%+v", report)
	}
	if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
		t.Error("the same seed gives another output")
	}
	strict := write(t, "site.yaml", "default:\n  margin: 1000\n")
	decode(t, pitchpipe(t, append(args, "--json", "--site", strict)...).out, &report)
	if report.Summary.Moved != 0 {
		t.Errorf("a site that asks for too much has jobs moved: %+v", report.Rows)
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "restart_seconds     10.000") {
		t.Errorf("output %q", text.out)
	}
}

func TestEvaluatePlanRefusesWhatItCannotReplay(t *testing.T) {
	t.Parallel()
	good, bad := write(t, "good.csv", jobsFile), write(t, "bad.csv", "workload,machine,seconds\na,m,fast\n")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no file":                          {nil, "want --trials FILE"},
		"an unknown objective":             {[]string{"--trials", good, "--objective", "speed"}, `objective "speed"`},
		"a limit that no one keeps":        {[]string{"--trials", good, "--max-slowdown", "0.5"}, "want at least 1"},
		"a restart for nothing":            {[]string{"--trials", good, "--restart-cost", "0"}, "a restart of 0s"},
		"noise of three sorts":             {[]string{"--trials", good, "--noise", "0.1,0.1,0.1"}, "--noise: 3 numbers"},
		"a restart that never ends":        {[]string{"--trials", good, "--restart-cost", "1e300"}, "at most"},
		"a file that is not one of trials": {[]string{"--trials", bad}, `bad.csv:2:5: seconds is "fast"`},
		"a site policy that is none":       {[]string{"--trials", good, "--site", write(t, "site.yaml", "default:\n  mood: 1\n")}, "mood"},
		"trials where curves go":           {[]string{"--trials", good, "--curves", good}, `column "run" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"evaluate", "plan"}, c.args...)...)
			if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("exit %d, output %q, errors %q; want %d, none, one line with %q", r.code, r.out, r.errors, command.ExitInvalid, c.says)
			}
		})
	}
}
