package sbatch_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/sbatch"
)

func parse(t *testing.T, src string) *jobfile.Job {
	t.Helper()
	job, err := sbatch.Parse("dir/job.sh", []byte(src))
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return job
}

func TestOptions(t *testing.T) {
	t.Parallel()
	src := `#!/bin/bash
#SBATCH --job-name="my job" -c4
#SBATCH --mem 2G --time=1-02:03:04 # a remark
#SBATCH -o 'out %j.txt' -D /tmp/a\ b
#SBATCH -p short -A physics --no-requeue
##SBATCH -c 99
 #SBATCH -c 98
#SBATCH -N 1 -n 1 --open-mode=append --mail-type ALL --comment=x --export=ALL -e err.txt --signal=B:USR1@60 -vQ --exclusive
#SBATCH --gres=gpu:1 --nice --nodes=1-1

echo hi
#SBATCH -c 97
`
	got := parse(t, src)
	idle := func(line, column int, option string) jobfile.Error {
		return jobfile.Error{Pos: jobfile.Pos{Filename: "dir/job.sh", Line: line, Column: column}, Found: option, Want: "the local scheduler, unlike Slurm, ignores it"}
	}
	want := &jobfile.Job{
		Warnings: jobfile.Errors{idle(8, 79, "-e"), idle(8, 90, "--signal"), idle(9, 9, "--gres")},
		Format:   jobfile.Sbatch, Name: "my job", Partition: "short", Account: "physics", Cores: 4, MemoryBytes: 2 << 30,
		TimeLimit: 26*time.Hour + 3*time.Minute + 4*time.Second, Dir: "/tmp/a b", Output: "out %j.txt", NoRequeue: true, Whole: true, OpenMode: "append",
		Export: "ALL", Comment: "x",
		Script: []byte(src), Env: map[string]string{}, Fixed: map[string]jobfile.Pos{}, Computed: map[string]jobfile.Pos{}, Follow: map[string]jobfile.Pos{}, Command: got.Command,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Command) != 12 {
		t.Errorf("command %q, want 12 digits", got.Command)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := parse(t, "#!/bin/sh\n./a\n")
	if got.Name != "job.sh" || got.Cores != 1 || got.MemoryBytes != 0 || got.TimeLimit != 0 || got.Stanza != nil {
		t.Errorf("defaults are %+v", got)
	}
	if got := parse(t, "#!/bin/sh\n#SBATCH --no-requeue\n#SBATCH --requeue -c 2 --mem-per-cpu=100\n"); got.NoRequeue || got.MemoryBytes != 200<<20 {
		t.Errorf("the last of two options does not count, or memory per core is wrong: %+v", got)
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int64{"0": 0, "7": 7 << 20, "512K": 512 << 10, "3m": 3 << 20, "1G": 1 << 30, "2T": 2 << 40, "4GB": 4 << 30} {
		if got := parse(t, "#!/bin/sh\n#SBATCH --mem="+value+"\n").MemoryBytes; got != want {
			t.Errorf("--mem=%s is %d, want %d", value, got, want)
		}
	}
	times := map[string]time.Duration{
		"90": 90 * time.Minute, "1:30": 90 * time.Second, "2:00:05": 2*time.Hour + 5*time.Second, "1-6": 30 * time.Hour,
		"1-0:30": 24*time.Hour + 30*time.Minute, "2-00:00:01": 48*time.Hour + time.Second, "0": 0, "UNLIMITED": 0, "infinite": 0, "-1": 0,
	}
	for value, want := range times {
		if got := parse(t, "#!/bin/sh\n#SBATCH -t "+value+"\n").TimeLimit; got != want {
			t.Errorf("-t %s is %s, want %s", value, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"no interpreter", "#SBATCH -c 1\n", "1:1: the script does not start with #!"},
		{"a byte order mark", "\ufeff#!/bin/sh\n#TUNE mode=apply\n", "1:1: the script begins with a byte order mark; want the file saved as UTF-8 without one"},
		{"DOS line ends", "#!/bin/sh\n#SBATCH -c 1\r\n", "2:13: the line ends as under DOS"},
		{"a NUL byte", "#!/bin/sh\na\x00\n", "2:2: a NUL byte"},
		{"an array", "#!/bin/sh\n#SBATCH  --array=1-3\n", "2:10: --array; arrays are not run by the local scheduler; submit them to Slurm"},
		{"an array, short", "#!/bin/sh\n#SBATCH -a 1-3\n", "2:9: -a; arrays are not run"},
		{"a dependency", "#!/bin/sh\n#SBATCH -d afterok:1\n", "2:9: -d; dependencies are not known"},
		{"several nodes", "#!/bin/sh\n#SBATCH -N 2\n", `2:12: -N is "2"; want 1: jobs of several nodes or tasks`},
		{"several tasks", "#!/bin/sh\n#SBATCH --ntasks=4\n", `2:18: --ntasks is "4"; want 1: jobs of several`},
		{"no number of tasks", "#!/bin/sh\n#SBATCH -n x\n", `2:12: -n is "x"; want 1`},
		{"an unknown option with a near one", "#!/bin/sh\n#SBATCH --cpu-per-task=2\n", `2:9: unknown option "--cpu-per-task"; want an option of sbatch; did you mean "--cpus-per-task"?`},
		{"an unknown option with its value is one fault", "#!/bin/sh\n#SBATCH --banana 2\n", `2:9: unknown option "--banana"; want an option of sbatch`},
		{"an unknown short option", "#!/bin/sh\n#SBATCH -Y\n", `2:9: unknown option "-Y"`},
		{"no cores", "#!/bin/sh\n#SBATCH -c 0\n", `2:12: -c is "0"; want a whole number of cores`},
		{"no memory", "#!/bin/sh\n#SBATCH --mem=2X\n", `2:15: --mem is "2X"`},
		{"memory in the middle", "#!/bin/sh\n#SBATCH --mem=2G3\n", `2:15: --mem is "2G3"`},
		{"a lone B", "#!/bin/sh\n#SBATCH --mem=7B\n", `2:15: --mem is "7B"`},
		{"too much memory", "#!/bin/sh\n#SBATCH --mem=9999999999T\n", `2:15: --mem is "9999999999T"`},
		{"no time", "#!/bin/sh\n#SBATCH -t soon\n", `2:12: -t is "soon"; want minutes, MM:SS`},
		{"too many fields of time", "#!/bin/sh\n#SBATCH -t 1:2:3:4\n", `2:12: -t is "1:2:3:4"`},
		{"both amounts of memory", "#!/bin/sh\n#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=1G\n", "3:9: both --mem and --mem-per-cpu"},
		{"no value", "#!/bin/sh\n#SBATCH --time\n", "2:9: --time has no value"},
		{"a value too many", "#!/bin/sh\n#SBATCH --no-requeue=1\n", `2:22: --no-requeue has the value "1"`},
		{"a word", "#!/bin/sh\n#SBATCH -J my job\n", `2:15: the word "job" where an option is expected`},
		{"an open quote", "#!/bin/sh\n#SBATCH -J 'my job\n", "2:12: the quote ' is not closed"},
		{"exported values", "#!/bin/sh\n#SBATCH --export=ALL,A=1\n", `2:18: --export is "ALL,A=1"`},
		{"several components", "#!/bin/sh\n#SBATCH hetjob\n", "2:9: several components"},
		{"a stanza behind the first command", "#!/bin/sh\n./a\n  #TUNE mode=apply\n", "3:3: #TUNE behind the first command"},
		{"a stanza behind blanks", "#!/bin/sh\n  #TUNE mode=apply\n", "2:3: #TUNE behind blanks"},
		{"blanks around the equals sign", "#!/bin/sh\n#TUNE mode = apply\n", "2:12: an equals sign without a key"},
		{"no value of a key", "#!/bin/sh\n#TUNE mode= apply\n", "2:12: no value behind mode="},
		{"a word for a key", "#!/bin/sh\n#TUNE mode=apply twice\n", `2:18: the word "twice" where a key is expected`},
		{"a continued line", "#!/bin/sh\n#TUNE mode=apply \\\n", `2:18: the word "\\" where a key is expected`},
		{"an open quote of a value", "#!/bin/sh\n#TUNE progress pattern='x\n", "2:24: the quote ' is not closed"},
		{"a quote in the middle", "#!/bin/sh\n#TUNE mode=ap'ply'\n", "2:14: a quote inside a bare value"},
		{"something behind a quote", "#!/bin/sh\n#TUNE mode='ap'ply\n", `2:16: the character 'p' behind a closing quote`},
		{"another escape", "#!/bin/sh\n#TUNE progress pattern=\"\\d\"\n", "2:25: a backslash in double quotes"},
		{"an empty element", "#!/bin/sh\n#TUNE knob cores values=1,,2\n", "2:27: an empty element in a list"},
		{"a quote in a key", "#!/bin/sh\n#TUNE mo'de=x\n", `2:9: the character '\''`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := sbatch.Parse("f", []byte(tt.src))
			var faults jobfile.Errors
			if !errors.As(err, &faults) {
				t.Fatalf("error %v, want jobfile.Errors", err)
			}
			if len(faults) != 1 || !strings.HasPrefix(err.Error(), "f:"+tt.want) {
				t.Errorf("error\n%v\nwant one that begins with\nf:%s", err, tt.want)
			}
		})
	}
}

func TestSeveralFaultsComeInTheOrderOfTheirPlaces(t *testing.T) {
	t.Parallel()
	_, err := sbatch.Parse("f", []byte("#SBATCH -c 0 --mem=x\n#TUNE mode= x\n./a\n#TUNE mode=apply\n"))
	var faults jobfile.Errors
	if !errors.As(err, &faults) {
		t.Fatalf("error %v, want jobfile.Errors", err)
	}
	var at []string
	for _, f := range faults {
		at = append(at, f.Pos.String())
	}
	if want := []string{"f:1:1", "f:1:12", "f:1:20", "f:2:12", "f:4:1"}; !slices.Equal(at, want) {
		t.Errorf("faults at %v, want %v", at, want)
	}
}

func TestStanzaHasExactPlaces(t *testing.T) {
	t.Parallel()
	got := parse(t, "#!/bin/sh\n#TUNE mode=apply\n#TUNE  knob cores values=1,'a b'\n#TUNE knob cores min=1\n").Stanza
	at := func(line, column int) jobfile.Pos {
		return jobfile.Pos{Filename: "dir/job.sh", Line: line, Column: column}
	}
	bare := func(s string) jobfile.Value { return jobfile.Value{Kind: jobfile.Bare, Text: s} }
	one := jobfile.Value{Kind: jobfile.Bare, Text: "1", Number: 1}
	want := &jobfile.Block{
		Pos:   at(2, 1),
		Attrs: []jobfile.Attr{{Name: "mode", Pos: at(2, 7), Value: bare("apply"), ValuePos: at(2, 12)}},
		Blocks: []*jobfile.Block{{
			Type: "knob", Label: "cores", Pos: at(3, 8), LabelPos: at(3, 13),
			Attrs: []jobfile.Attr{
				{Name: "values", Pos: at(3, 19), ValuePos: at(3, 26), Value: jobfile.Value{Kind: jobfile.List, List: []jobfile.Item{
					{Pos: at(3, 26), Value: one}, {Pos: at(3, 28), Value: jobfile.Value{Kind: jobfile.String, Text: "a b"}},
				}}},
				{Name: "min", Pos: at(4, 18), Value: one, ValuePos: at(4, 22)},
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       map[string]string
		fixed      []string
	}{
		{"literals", "A=1\nexport B=two C='th ree' # remark\nexport D=\"4 4\"\n", map[string]string{"A": "1", "B": "two", "C": "th ree", "D": "4 4"}, []string{"A", "B", "C", "D"}},
		{"a default of its own", "export A=${A:-32}\nB=\"${B-x y}\"\n", map[string]string{"A": "32", "B": "x y"}, nil},
		{"a default of another variable", "A=${B:-32}\n", map[string]string{"A": "32", "B": "32"}, []string{"A"}},
		{"a default of a variable that is set", "B=1\nA=${B:-32}\n", map[string]string{"A": "1", "B": "1"}, []string{"A", "B"}},
		{"the command that does nothing", ": ${A:=7}\n: \"${B:=8}\"\n", map[string]string{"A": "7", "B": "8"}, nil},
		{"lines that set nothing are passed", "set -e\ncd /tmp\nmodule load x\n\n# r\nA=1\n", map[string]string{"A": "1"}, []string{"A"}},
		{"the first command ends it", "A=1\n./a\nB=2\n", map[string]string{"A": "1"}, []string{"A"}},
		{"an assignment for one command is none", "A=1\nA=2 B=2 ./a\n", map[string]string{"A": "1"}, []string{"A"}},
		{"what must run is unknown", "A=1\nA=$(nproc)\nB=$A\nC=`x`\nD=\"$A\"\nE=1\n", map[string]string{"E": "1"}, []string{"E"}},
		{"an operator ends it", "A=1; ./a\nB=1\n", map[string]string{}, nil},
		{"a name alone is exported only", "A=1\nexport A\nB=2\n", map[string]string{"A": "1", "B": "2"}, []string{"A", "B"}},
		{"a default behind a literal changes nothing", "A=1\nA=${A:-2}\n", map[string]string{"A": "1"}, []string{"A"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := parse(t, "#!/bin/sh\n"+tt.body)
			if diff := cmp.Diff(tt.want, job.Env); diff != "" {
				t.Errorf("env (-want +got):\n%s", diff)
			}
			if got := slices.Sorted(maps.Keys(job.Fixed)); !slices.Equal(got, tt.fixed) {
				t.Errorf("fixed %v, want %v", got, tt.fixed)
			}
			if must := strings.Contains(tt.name, "must run"); must != (len(job.Computed) == 4) || !must && len(job.Computed) > 0 {
				t.Errorf("computed %v", job.Computed)
			}
		})
	}
}

func TestWhatSlurmRunsAndItsDriverLeavesAlone(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]struct {
		observed string
		whole    bool
	}{
		"-c 4":                    {},
		"--nodes=1 --ntasks 1":    {},
		"--nodes=2":               {observed: "--nodes=2"},
		"-n 8":                    {observed: "-n=8"},
		"--deadline=tomorrow":     {observed: "--deadline=tomorrow"},
		"--exclusive":             {whole: true},
		"--exclusive=user":        {},
		"hetjob\n#SBATCH -c 2":    {observed: "hetjob"},
		"--exclusive --ntasks=16": {observed: "--ntasks=16", whole: true},
	} {
		job, err := sbatch.ParseForSlurm("job.sh", []byte("#!/bin/sh\n#SBATCH "+option+"\n"))
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		if job.Observed != want.observed || job.Whole != want.whole {
			t.Errorf("%s: observed %q, whole %v", option, job.Observed, job.Whole)
		}
	}
}

func TestAnOptionThatOnlySlurmMayKnowIsAWarning(t *testing.T) {
	t.Parallel()
	for option, warns := range map[string]string{
		"--container-image=x":        `2:9: unknown option "--container-image"; left to Slurm`,
		"--container-image x -c 4":   `2:9: unknown option "--container-image"; left to Slurm`,
		"--hooks -c 4":               `2:9: unknown option "--hooks"; left to Slurm`,
		"--cpus-per-tsk=4":           `2:9: unknown option "--cpus-per-tsk"; left to Slurm; did you mean "--cpus-per-task"?`,
		"--stepmgr --oom-kill-step":  "",
		"--batch=a --segment 2 -c 4": "",
	} {
		job, err := sbatch.ParseForSlurm("f", []byte("#!/bin/sh\n#SBATCH "+option+"\n#TUNE mode=apply\n"))
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		if warns != "" {
			warns = "f:" + warns
		}
		if got := job.Warnings.Error(); job.Stanza == nil || got != warns || (job.Cores == 4) != strings.HasSuffix(option, "-c 4") {
			t.Errorf("%s: %d cores, stanza %v, warnings %q, want %q", option, job.Cores, job.Stanza, got, warns)
		}
	}
}

func TestAShellThatTheSignalOfTheCheckpointEndsIsAWarning(t *testing.T) {
	t.Parallel()
	for script, warns := range map[string]bool{
		"#!/bin/bash\n#TUNE checkpoint exit=85\npython train.py\n":                    true,
		"#!/usr/bin/env bash\n#TUNE checkpoint exit=85\n# no exec here\nsrun train\n": true,
		"#!/bin/bash\n#TUNE checkpoint exit=85\nmkdir -p x && exec python train.py\n": false,
		"#!/bin/sh\n#TUNE checkpoint exit=85\ntrap '' USR1\npython train.py\n":        false,
		"#!/bin/sh\n#TUNE checkpoint exit=85\n. ./job.sh\npython train.py\n":          false,
		"#!/usr/bin/env python3\n#TUNE checkpoint exit=85\nimport train\n":            false,
		"#!/bin/bash\n#TUNE progress pattern='e (?P<epoch>\\d+)'\npython train.py\n":  false,
		"#!/bin/bash\n#SBATCH -c 2\npython train.py\n":                                false,
		"#!/bin/bash\n#TUNE checkpoint exit=85\n":                                     false,
	} {
		job, err := sbatch.Parse("f", []byte(script))
		if err != nil || (len(job.Warnings) == 1) != warns {
			t.Errorf("%q: %v, %v; a warning is wanted: %v", script, err, job.Warnings, warns)
		}
	}
}

func TestAScriptMayTakeAVariableFromItsCores(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"export T=${T:-$SLURM_CPUS_PER_TASK}":       true,
		`export T="${T:-${SLURM_CPUS_PER_TASK}}"`:   true,
		"export T=${T:-${SLURM_CPUS_PER_TASK:-1}}":  true,
		"export T=$SLURM_CPUS_PER_TASK}":            false,
		"export T=$SLURM_CPUS_PER_TASK":             true,
		"export T=${T:-4}":                          false,
		"export T=${OTHER:-$SLURM_CPUS_PER_TASK}":   false,
		"export T=$((SLURM_CPUS_PER_TASK / 2))":     false,
		"export T=$SLURM_CPUS_PER_TASK\nexport T=2": false,
	} {
		job, err := sbatch.Parse("job.sh", []byte("#!/bin/sh\n"+line+"\n./train\n"))
		if err != nil {
			t.Fatal(err)
		}
		if at, got := job.Follow["T"]; got != want || got && at.Line != 2 {
			t.Errorf("%q: %t, line %d; want %t, line 2", line, got, at.Line, want)
		}
	}
}
