package command_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/models"
)

// learned are three runs whose loss falls towards an end of its own.
func learned() string {
	var b strings.Builder
	b.WriteString("run,workload,machine,knob_lr,epoch,seconds,loss,quality\n")
	for run := range 3 {
		for e := 1; e <= 20; e++ {
			loss := .1*float64(run+1) + 2*math.Exp(-float64(e)/4)
			fmt.Fprintf(&b, "%d,a,m,0.%d,%d,%d,%.5f,%.5f\n", run, run+1, e, 3*e, loss, 1-loss/3)
		}
	}
	return b.String()
}

func TestEvaluateForecastPrintsBothForms(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", "forecast", "--curves", write(t, "curves.csv", learned()), "--seen", "0.3,0.5", "--measure", "both"}
	r := pitchpipe(t, append(args, "--json")...)
	var report models.ForecastReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || report.Command != "evaluate forecast" || len(report.Data) != 1 || len(report.Rows) != 4 || report.Summary.Rows != 4 {
		t.Fatalf("exit %d: %s %s", r.code, r.out, r.errors)
	}
	measures := map[string]int{}
	for _, row := range report.Rows {
		measures[row.Measure]++
		if row.Workload != "a" || row.Runs != 3 || !row.FinalErrorMedian.Known() || row.FinalErrorMedian > row.LastErrorMedian {
			t.Errorf("%+v", row)
		}
	}
	if measures[models.Loss] != 2 || measures[models.Quality] != 2 || r.errors == "" {
		t.Errorf("rows by measure %v, progress %q", measures, r.errors)
	}
	if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
		t.Error("the same data give another output")
	}
	if text := pitchpipe(t, args...); !strings.Contains(text.out, "BEST SINGLE") || !strings.Contains(text.out, "over the better of last value") {
		t.Errorf("output %q", text.out)
	}
}

func TestEvaluateForecastTakesAdaptationsToo(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("run,workload,scenario,epoch,seconds,action,quality\n")
	for e := 1; e <= 12; e++ {
		fmt.Fprintf(&b, "1,a,s,%d,%d,none,%.4f\n", e, 2*e, .9-.5/float64(e))
	}
	r := pitchpipe(t, "evaluate", "forecast", "--curves", write(t, "adaptations.csv", b.String()), "--seen", "0.5", "--json")
	var report models.ForecastReport
	decode(t, r.out, &report)
	if r.code != command.ExitOK || len(report.Rows) != 1 || report.Rows[0].Measure != models.Quality || report.Rows[0].Runs != 1 {
		t.Errorf("exit %d: %s %s", r.code, r.out, r.errors)
	}
}

func TestEvaluateForecastRefusesWhatItCannotCut(t *testing.T) {
	t.Parallel()
	good, bad := write(t, "good.csv", learned()), write(t, "bad.csv", "run,workload,machine,epoch,loss\n1,a,m,1,low\n")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no file":                  {nil, "want --curves FILE"},
		"a file that is not there": {[]string{"--curves", good + "x"}, "good.csvx"},
		"a word for a number":      {[]string{"--curves", bad}, `bad.csv:2:9: loss is "low"`},
		"trials for curves":        {[]string{"--curves", write(t, "trials.csv", trialsFile)}, `column "run" is missing`},
		"a share that is none":     {[]string{"--curves", good, "--seen", "1.5"}, "1.5"},
		"an unknown measure":       {[]string{"--curves", good, "--measure", "joy"}, `"joy"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"evaluate", "forecast"}, c.args...)...)
			if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("exit %d, output %q, errors %q; want %d, none, one line with %q", r.code, r.out, r.errors, command.ExitInvalid, c.says)
			}
		})
	}
}
