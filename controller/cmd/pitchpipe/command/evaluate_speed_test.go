package command_test

import (
	"fmt"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/replay"
)

// rates are two workloads on one to eight cores: one of Amdahl's kind, one that failed on
// a single core.
func rates() string {
	var b strings.Builder
	b.WriteString("workload,machine,knob_cores,samples_per_second,epoch_seconds,failed\n")
	for cores := 1; cores <= 8; cores++ {
		fmt.Fprintf(&b, "a,m,%d,%g,%g,0\n", cores, 100/(.2+.8/float64(cores)), .2+.8/float64(cores))
		if cores == 1 {
			b.WriteString("b,m,1,,,1\n")
			continue
		}
		fmt.Fprintf(&b, "b,m,%d,%d,%g,0\n", cores, 10*cores, 1/float64(cores))
	}
	return b.String()
}

func TestEvaluateSpeedPrintsBothForms(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", "speed", "--trials", write(t, "trials.csv", rates()), "--samples", "4"}
	r := pitchpipe(t, append(args, "--json")...)
	var report replay.SpeedReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || report.Command != "evaluate speed" || len(report.Data) != 1 || len(report.Rows) != 2 || report.Summary.Rows != 2 {
		t.Fatalf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	for _, row := range report.Rows {
		if row.Settings != 8 || row.Samples != 4 || !row.ErrorMean.Known() || row.ErrorMean > .1 || row.Attained < .9 || r.errors == "" {
			t.Errorf("%+v; progress %q", row, r.errors)
		}
	}
	if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
		t.Error("the same data give another output")
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "ATTAINED") || !strings.Contains(text.out, "attained_min    1.000") {
		t.Errorf("output %q", text.out)
	}
	cost := pitchpipe(t, append(args, "--outcome", "epoch_seconds", "--json")...)
	decode(t, cost.out, &report)
	if cost.code != command.ExitOK || report.Rows[0].Chosen != "cores=8" {
		t.Errorf("of a cost the highest is chosen: %s %s", cost.out, cost.errors)
	}
}

func TestEvaluateSpeedRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	good, bad := write(t, "good.csv", rates()), write(t, "bad.csv", "workload,machine,seconds\na,m,fast\n")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no file":                  {nil, "want --trials FILE"},
		"a file that is not there": {[]string{"--trials", good + "x"}, "good.csvx"},
		"a word for a number":      {[]string{"--trials", bad}, `bad.csv:2:5: seconds is "fast"`},
		"no samples":               {[]string{"--trials", good, "--samples", "0"}, "0 samples"},
		"a column of nothing":      {[]string{"--trials", good, "--outcome", "joy"}, "joy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"evaluate", "speed"}, c.args...)...)
			if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("exit %d, output %q, errors %q; want %d, none, one line with %q", r.code, r.out, r.errors, command.ExitInvalid, c.says)
			}
		})
	}
}
