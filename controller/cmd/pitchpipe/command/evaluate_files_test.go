package command_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

// recordings are the two halves of what the evaluations read, as a stranger has it: the
// second half is about other workloads, whose runs have the same names.
func recordings(t *testing.T, half int) (trials, samples, curves string) {
	t.Helper()
	var a, b, c strings.Builder
	a.WriteString("workload,machine,run,input,knob_cores,seconds,epoch_seconds,samples_per_second,joules,repeat,failed,host\n")
	b.WriteString("workload,run,machine,input,knob_cores,t_seconds,cpu_user_seconds,cpu_system_seconds,cpu_seconds,voluntary_switches,minor_faults,note\n")
	c.WriteString("run,workload,machine,input,knob_cores,epoch,seconds,loss,quality,phase\n")
	for w := range 2 {
		name := string(rune('a' + 2*half + w))
		for input := 1; input <= 2; input++ {
			for run := range 4 {
				cores, repeat := 1+run%2, run/2
				seconds := float64(10*input) / float64(1+w*(cores-1)) * (1 + .01*float64(repeat))
				id := fmt.Sprintf("%d-%d", input, run)
				fmt.Fprintf(&a, "%s,m,%s,%d,%d,%g,%g,%g,%g,%d,False,node-%d\n", name, id, input, cores, seconds, seconds/5, 100/seconds, 7*seconds, repeat, run)
				for i := 1; i <= 8; i++ {
					fmt.Fprintf(&b, "%s,%s,m,%d,%d,%g,%g,0.05,%g,%d,%d,ok\n", name, id, input, cores, float64(i)/2,
						.4+float64(w)/3, .45+float64(w)/3, 10+4000*w+i%2, 30+9000*w+run)
				}
				for e := 1; e <= 12; e++ {
					fmt.Fprintf(&c, "%s,%s,m,%d,%d,%d,%g,%g,%g,x\n", id, name, input, cores, e, float64(e)*seconds/12, 1/float64(e)+.1*float64(cores), 1-1/float64(e+1)-.01*float64(cores))
				}
			}
		}
	}
	return write(t, "trials.csv", a.String()), write(t, "samples.csv", b.String()), write(t, "curves.csv", c.String())
}

// Every evaluation takes its files as repeated flags, as a comma list, and behind one
// flag, as the shell makes them of a pattern; the output is the same.
func TestEvaluationsTakeFilesInEveryWay(t *testing.T) {
	t.Parallel()
	trials, samples, curves := recordings(t, 0)
	trials2, samples2, curves2 := recordings(t, 1)
	kinds := map[string][]string{"--trials": {trials, trials2}, "--samples": {samples, samples2}, "--curves": {curves, curves2}}
	for _, c := range []struct {
		words []string
		flags []string // that name files
	}{
		{[]string{"tuner", "--objective", "time", "--seeds", "1", "--recurrences", "3"}, []string{"--trials"}},
		{[]string{"classifier", "--resamples", "1"}, []string{"--samples"}},
		{[]string{"classifier", "--resamples", "1", "--objective", "time"}, []string{"--samples", "--trials"}},
		{[]string{"regret"}, []string{"--trials", "--samples", "--curves"}},
		{[]string{"forecast", "--seen", "0.5"}, []string{"--curves"}},
		{[]string{"speed", "--samples", "2"}, []string{"--trials"}},
		{[]string{"search", "--budget", "1", "--seeds", "1", "--method", "random"}, []string{"--trials"}},
		{[]string{"hyper", "--seeds", "1", "--method", "random"}, []string{"--curves"}},
		{[]string{"plan", "--objective", "time", "--epochs", "5", "--seeds", "1", "--returns", "0"}, []string{"--trials"}},
		{[]string{"verify", "--seeds", "1", "--epochs", "2", "--pairs", "4"}, []string{"--samples"}},
		{[]string{"verify", "--seeds", "1", "--epochs", "2", "--pairs", "4"}, []string{"--trials", "--samples", "--curves"}},
	} {
		t.Run(strings.Join(append(c.words[:1:1], c.flags...), " "), func(t *testing.T) {
			t.Parallel()
			want := ""
			for name, form := range map[string]func(flag string, files []string) []string{
				"repeated flags": func(flag string, files []string) []string { return []string{flag, files[0], flag, files[1]} },
				"a comma list":   func(flag string, files []string) []string { return []string{flag, strings.Join(files, ",")} },
				"one flag":       func(flag string, files []string) []string { return []string{flag, files[0], files[1]} },
			} {
				args := slices.Concat([]string{"evaluate"}, c.words)
				for _, flag := range c.flags {
					args = append(args, form(flag, kinds[flag])...)
				}
				r := pitchpipe(t, append(args, "--json")...)
				if r.code != command.ExitOK {
					t.Fatalf("%s: exit %d: %s", name, r.code, r.errors)
				}
				var report struct {
					Data []string `json:"data"`
					Rows []any    `json:"rows"`
				}
				decode(t, r.out, &report)
				if len(report.Data) < 2 || len(report.Rows) == 0 {
					t.Errorf("%s: data %q, %d rows", name, report.Data, len(report.Rows))
				}
				if want == "" {
					want = r.out
				}
				if r.out != want {
					t.Errorf("%s gives another output than another form", name)
				}
			}
		})
	}
}

func TestAFileThatFitsNoFlagIsRefused(t *testing.T) {
	t.Parallel()
	trials, samples, curves := recordings(t, 0)
	r := pitchpipe(t, "evaluate", "classifier", "--samples", samples, "--trials", trials, curves)
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, filepath.Base(curves)+" is a table of curves: want those of --samples, --trials") || strings.Count(r.errors, "\n") != 1 {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
}
