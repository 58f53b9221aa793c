package command_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

// recordings are the two halves of what the evaluations read, as another site has it: the
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
	dir := t.TempDir()
	return written(t, dir, "trials.csv", a.String()), written(t, dir, "samples.csv", b.String()), written(t, dir, "curves.csv", c.String())
}

// Every evaluation takes its files as repeated flags, as a comma list, and after one
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

const (
	trialsFile = "workload,machine,knob_cores,seconds,joules\n" +
		"a,m,1,8,80\na,m,2,4,60\na,m,4,3,70\nb,m,1,9,9\nb,m,2,9,8\nb,m,4,9,\n"
	curvesFile = "run,workload,machine,knob_lr,epoch,seconds,quality\n" +
		"1,a,m,0.1,1,2,0.5\n1,a,m,0.1,2,4,0.9\n2,a,m,0.2,1,2,0.6\n2,a,m,0.2,2,4,0.7\n"
	// jobsFile is a job that two cores serve as well as four, for fewer joules.
	jobsFile = "workload,machine,knob_cores,seconds,joules,cpu_seconds\na,m,4,100,1000,105\na,m,2,100,600,105\nb,m,4,100,1000,400\n"
)

// learned are three runs whose loss falls towards its own end.
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

func TestEvaluationsPrintBothForms(t *testing.T) {
	t.Parallel()
	repeats := "workload,machine,knob_cores,seconds\n" + strings.Repeat("a,m,1,10\n", 20)
	for _, c := range []struct {
		name string
		args []string
		rows int
		json []string // that are in it, without white space
		text string
		says string // on the standard error
	}{
		{
			"tuner",
			[]string{"--trials", write(t, "trials.csv", trialsFile), "--objective", "time", "--seeds", "2", "--default", "cores=1"},
			2,
			[]string{`"oracle_ratio":0.375`, `"final":"cores=4"`, `"recurrences":20`, `"default":"cores=1"`},
			"objective                       time ", "2 of 2 ",
		},
		{
			"plan",
			[]string{"--trials", write(t, "trials.csv", jobsFile), "--objective", "cost", "--epochs", "4,60", "--restart-cost", "10", "--seeds", "2"},
			2,
			[]string{`"moved":0,`, `"paid":1,`, `"final":"cores=2"`, `"skipped":1`, `"restart_seconds":10`},
			"restart_seconds     10.000", "2 of 2 ",
		},
		{
			"plan",
			[]string{"--trials", write(t, "trials.csv", jobsFile), "--objective", "cost", "--epochs", "60", "--seeds", "1", "--site", write(t, "site.yaml", "default:\n  margin: 1000\n")},
			1,
			[]string{`"moved":0,"paid":0`},
			"moved               0 %", "",
		},
		{
			"search",
			[]string{"--trials", write(t, "trials.csv", trialsFile), write(t, "curves.csv", curvesFile), "--budget", "1,3", "--seeds", "2"},
			30,
			[]string{`"outcome":"joules"`, `"outcome":"error"`},
			"gaussian_process_warm", "15 of 15 ",
		},
		{
			"search",
			[]string{"--trials", write(t, "curves.csv", curvesFile), "--budget", "2", "--seeds", "1"},
			5,
			[]string{`"outcome":"error"`},
			"error", "",
		},
		{
			"hyper",
			[]string{"--curves", write(t, "curves.csv", curvesFile), "--seconds", "8", "--seeds", "2", "--method", "random,asha"},
			2,
			[]string{`"seconds":8,`, `"regret_mean":0,`},
			"REGRET", "",
		},
		{"speed", []string{"--trials", write(t, "trials.csv", rates()), "--samples", "4"}, 2, []string{`"settings":8,"samples":4`}, "attained_min    1.000", ""},
		{
			"speed",
			[]string{"--trials", write(t, "trials.csv", rates()), "--samples", "4", "--outcome", "epoch_seconds"},
			2,
			[]string{`"chosen":"cores=8"`},
			"ATTAINED", "",
		},
		{
			"forecast",
			[]string{"--curves", write(t, "curves.csv", learned()), "--seen", "0.3,0.5", "--measure", "both"},
			4,
			[]string{`"measure":"loss","seen":0.3,"runs":3`, `"measure":"quality"`},
			"BEST SINGLE", "2 of 2 ",
		},
		{
			"forecast",
			[]string{"--curves", write(t, "adaptations.csv", "run,workload,scenario,epoch,seconds,action,quality\n"+
				"1,a,s,1,5,none,0.1\n1,a,s,2,10,none,0.3\n1,a,s,3,15,none,0.45\n1,a,s,4,20,none,0.5\n1,a,s,5,25,none,0.52\n1,a,s,6,30,none,0.53\n"), "--seen", "0.5"},
			1,
			[]string{`"measure":"quality"`},
			"quality", "",
		},
		{
			"adapt",
			[]string{"--adaptations", write(t, "adaptations.csv", adapted())},
			2,
			[]string{`"held_out":"scenario"`, `"actions":["grow"]`},
			"ORACLE", "2 of 2 ",
		},
		{"verify", []string{"--trials", write(t, "trials.csv", repeats), "--seeds", "2", "--epochs", "3", "--pairs", "8"}, 80, []string{`"replays":2`}, "repeats of one setting", "of "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"evaluate", c.name}, c.args...)
			r := pitchpipe(t, append(args, "--json")...)
			var report struct {
				Command string `json:"command"`
				Rows    []any  `json:"rows"`
			}
			decode(t, r.out, &report)
			if r.code != command.ExitOK || report.Command != "evaluate "+c.name || len(report.Rows) != c.rows || !strings.Contains(r.errors, c.says) {
				t.Fatalf("exit %d, %d rows: %s %s", r.code, len(report.Rows), r.out, r.errors)
			}
			plain := strings.NewReplacer("\n", "", "  ", "", "\": ", "\":").Replace(r.out)
			for _, want := range c.json {
				if !strings.Contains(plain, want) {
					t.Errorf("no %s in %s", want, plain)
				}
			}
			if again := pitchpipe(t, append(args, "--json")...); again.out != r.out {
				t.Error("the same seed gives another output")
			}
			if text := pitchpipe(t, args...); !strings.Contains(text.out, c.text) {
				t.Errorf("no %q in %s", c.text, text.out)
			}
		})
	}
}

func TestEvaluationsRefuseWhatTheyCannotMeasure(t *testing.T) {
	t.Parallel()
	trials, samples, curves := recordings(t, 0)
	slow, many := write(t, "bad.csv", "workload,machine,seconds\na,m,fast\n"), write(t, "bad.csv", "workload,machine,joules\na,m,many\n")
	low, soon := write(t, "bad.csv", "run,workload,machine,epoch,loss\n1,a,m,1,low\n"), write(t, "samples.csv", "workload,run,machine,t_seconds\na,b,c,soon\n")
	one := write(t, "trials.csv", "workload,machine,knob_cores,seconds,repeat\na,m,1,2,0\n")
	none := write(t, "none.csv", "workload,machine,knob_x\na,m,1\n")
	flat, still := write(t, "flat.csv", "run,workload,machine,epoch\n1,a,m,1\n"), write(t, "still.csv", "run,workload,machine,epoch,loss\n1,a,m,1,2\n")
	back := write(t, "back.csv", "run,workload,machine,epoch,loss\n1,a,m,4,2\n1,a,m,3,1\n")
	untimed := write(t, "untimed.csv", "workload,machine,knob_cores,seconds\na,m,1,\na,m,2,0\n")
	for _, c := range []struct{ args, says string }{
		{"tuner --trials " + trials + " --objective speed", `objective "speed"`},
		{"tuner --trials " + trials + " --attain 0.98", "--attain and --max-joules go with"},
		{"tuner --trials " + trials + " --max-slowdown 0.5", "want at least 1"},
		{"tuner --trials " + trials + " --weight 2", "weight 2"},
		{"tuner --trials " + trials + " --default cores", "want NAME=VALUE"},
		{"tuner --trials " + slow, `bad.csv:2:5: seconds is "fast"`},
		{"tuner --trials " + trials + "," + trials, "named twice"},
		{"tuner --trials " + trials + " --seeds 0", "0 seeds: want at least 1"},
		{"tuner --trials " + trials + " --objective cores --attain 1.1", "attain 1.1"},
		{"tuner --trials " + untimed, "untimed.csv:2:1: of a nothing can be used: it has no time"},
		{"plan", "want --trials FILE"},
		{"plan --trials " + trials + " --weight NaN", "weight NaN"},
		{"plan --trials " + trials + " --seeds 0", "0 seeds"},
		{"plan --trials " + trials + " --probes -1", "-1 probes"},
		{"plan --trials " + trials + " --returns -1", "-1 returns"},
		{"plan --trials " + trials + " --tries -1", "try -1 times"},
		{"plan --trials " + trials + " --noise=0,-0.1", "-0.1 between epochs"},
		{"plan --trials " + trials + " --noise NaN", "noise of NaN"},
		{"plan --trials " + trials + " --epochs=-1", "-1 epochs"},
		{"plan --trials " + trials + " --objective speed", `objective "speed"`},
		{"plan --trials " + trials + " --max-slowdown 0.5", "want at least 1"},
		{"plan --trials " + trials + " --restart-cost 0", "a restart of 0s"},
		{"plan --trials " + trials + " --restart-cost 1e300", "at most"},
		{"plan --trials " + trials + " --noise 0.1,0.1,0.1", "--noise: 3 numbers"},
		{"plan --trials " + slow, `bad.csv:2:5: seconds is "fast"`},
		{"plan --trials " + trials + " --site " + write(t, "site.yaml", "default:\n  mood: 1\n"), "mood"},
		{"plan --trials " + trials + " --curves " + trials, `column "epoch" is missing`},
		{"search", "no file"},
		{"search --trials " + many, `bad.csv:2:5: joules is "many"`},
		{"search --curves " + one, `column "run" is missing`},
		{"search --trials " + trials + " --outcome joy", "want one of joules"},
		{"search --trials " + trials + " --seeds 0", "0 seeds"},
		{"search --trials " + trials + " --budget 4,0", "budget 0: want measurements, 1 at least"},
		{"search --trials " + trials + " --method luck", `method "luck": want one of random, grid, latin_hypercube, gaussian_process, gaussian_process_warm`},
		{"search --trials " + one + " --outcome error", `trials.csv:1:1: no column "quality", which the outcome error needs`},
		{"search --trials " + none, "none.csv:1:1: no column of an outcome: want one of joules, seconds, samples_per_second, epoch_seconds, error, loss"},
		{"search --trials " + one, "no workload can be searched: of a, it has a single setting"},
		{"hyper", "no file"},
		{"hyper --curves " + curves + " --seeds 0", "0 seeds: want 1 at least"},
		{"hyper --curves " + curves + " --seconds=-1", "-1 seconds, 10 runs: want more than 0"},
		{"hyper --curves " + curves + " --method bandit", `method "bandit": want one of random, grid, latin_hypercube, gaussian_process, asha,`},
		{"hyper --curves " + flat, "flat.csv:1:1: no column quality or loss"},
		{"hyper --curves " + still, "still.csv: no workload has two runs with an outcome"},
		{"hyper --curves " + one, `column "run" is missing`},
		{"speed", "want --trials FILE"},
		{"speed --trials " + trials + "x", "trials.csvx"},
		{"speed --trials " + slow, `bad.csv:2:5: seconds is "fast"`},
		{"speed --trials " + trials + " --samples 0", "0 samples"},
		{"speed --trials " + trials + " --outcome joy", "joy"},
		{"speed --trials " + one + " --outcome repeat", "no row has a repeat above 0"},
		{"forecast", "want --curves FILE"},
		{"forecast --curves " + curves + "x", "curves.csvx"},
		{"forecast --curves " + low, `bad.csv:2:9: loss is "low"`},
		{"forecast --curves " + one, `column "run" is missing`},
		{"forecast --curves " + curves + " --seen 1.5", "1.5"},
		{"forecast --curves " + curves + " --measure joy", `"joy"`},
		{"forecast --curves " + flat, "flat.csv: no row has a value"},
		{"forecast --curves " + back, "back.csv:3: epoch 3 of run 1"},
		{"classifier", "want --samples FILE"},
		{"classifier --samples " + soon, "samples.csv:2:7"},
		{"classifier --samples " + samples + " --trials " + trials + " " + curves, "curves.csv is a table of curves: want those of --samples, --trials"},
		{"regret --trials " + trials, "--samples FILE"},
		{"regret --trials " + samples + " --samples " + trials, "trials.csv:1:1"},
		{"regret --trials " + one + " --samples " + write(t, "samples.csv", "workload,run,machine,t_seconds\na,b,m,1\n"), "too little"},
		{"regret --trials " + trials + " --samples " + samples + " --objective luck", "objective"},
		{"regret --trials " + trials + " --samples " + samples + " --energy luck", "energy"},
		{"verify --trials " + slow, `bad.csv:2:5: seconds is "fast"`},
		{"verify --samples " + slow, `column "run" is missing`},
		{"verify --curves " + slow, `column "run" is missing`},
		{"verify --level 5", "level 5"},
		{"verify --seeds -2", "-2 seeds"},
		{"verify --epochs -1", "-1 epochs"},
		{"verify --candidates -1", "-1 candidates"},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"evaluate"}, strings.Fields(c.args)...)...)
			if r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, c.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("%s: exit %d, output %q, errors %q; want %d, none, one line with %q", c.args, r.code, r.out, r.errors, command.ExitInvalid, c.says)
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

// adapted has two scenarios of 4 runs; half of them grow.
func adapted() string {
	var b strings.Builder
	b.WriteString("run,workload,scenario,epoch,seconds,action,quality,budget_seconds\n")
	for _, start := range []int{10, 15} {
		for e := range start {
			fmt.Fprintf(&b, "b,w,before_%d,%d,%d,,0.5,200\n", start, e, 10*e+10)
		}
		for run := range 4 {
			for e := start; e < 20; e++ {
				fmt.Fprintf(&b, "%d,w,%d,%d,%d,%s,%g,200\n", run, start, e, 10*e+10, []string{"none", "grow"}[run%2*min(1, start/e)], 0.5+0.1*float64(run%2)+0.001*float64(run))
			}
		}
	}
	return b.String()
}
