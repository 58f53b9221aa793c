package detect_test

import (
	std "cmp"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// trial is what the files below become: lr and momentum have values, threads stays.
func trial() jobfile.Fix {
	return jobfile.Fix{Env: map[string]string{"LR": "0.3", "THREADS": "2"}, Knobs: []string{"lr", "optimizer", "momentum"}}
}

const batch = `#!/bin/bash
# My job.
#SBATCH -c 2
#TUNE mode=apply
#TUNE search method=asha trials=9
#TUNE knob lr env=LR
#TUNE knob lr min=0.1 max=1 when='optimizer=sgd'
#TUNE knob threads env=THREADS values=1,2 when=optimizer=sgd default=1
#TUNE progress report=true
#TUNE quality measures=quality,time direction=max
# The work:

export LR=${LR:-0.1}
exec ./train
`

const batchFixed = `#!/bin/bash
# My job.
#SBATCH -c 2
#TUNE mode=apply
#TUNE knob threads env=THREADS values=1,2 default=1
#TUNE progress report=true
#TUNE quality direction=max
export LR='0.3' # set by pitchpipe search
export THREADS="${THREADS:-2}" # set by pitchpipe search
# The work:

export LR=${LR:-0.1}
exec ./train
`

const hcl = `variable "epochs" {
  type = number
}
variable "key" {
  default   = "none"
  sensitive = true
}
variables { input = 1 } # which one
job "j" {
  type = "batch"
  group "g" {
    tuning {
      mode = "apply"
      search {
        trials = 9
      }
      # The rate.
      knob "lr" { # by a flag
        arg = "--lr"
        min = 0.1
        max = 1
      }
      knob "threads" {
        env    = "THREADS"
        when   = "optimizer=sgd"
        values = [1, 2]
      }
      progress { report = true }
      quality {
        direction = "max"
        measures  = ["quality", "time"]
      }
    }
    task "t" {
      driver = "exec"
      config {
        command = "/bin/train"
        args = [
          "--epochs", "${var.epochs}", # as given
          "--lr=0.1",
          "--seed", "1",
          "--",
          "--lr=0.1",
        ]
      }
      env { THREADS = 1 }
    }
  }
}
`

const hclFixed = `variable "epochs" {
  type = number
  default = 7
}
variable "key" {
  default   = "none"
  sensitive = true
}
variables { input = "2" } # which one
job "j" {
  type = "batch"
  group "g" {
    tuning {
      mode = "apply"
      # The rate.
      knob "threads" {
        env    = "THREADS"
        values = [1, 2]
      }
      progress { report = true }
      quality {
        direction = "max"
      }
    }
    task "t" {
      driver = "exec"
      config {
        command = "/bin/train"
        args = [
          "--epochs", "${var.epochs}", # as given
          "--lr=0.3",
          "--seed", "2", "--decay", "0.01",
          "--",
          "--lr=0.1",
        ]
      }
      env {
        THREADS = "2"
        LR = "0.3"
      }
    }
  }
}
`

const asJSON = `{"Job":{"ID":"j","Type":"batch","TaskGroups":[{"Name":"g","Scaling":{"Policy":{"tuning":[{"search":[{"trials":9}],"mode":"apply","quality":[{"measures":["quality"]}],
"knob":[{"lr":[{"arg":"--lr","min":0.1,"max":1}]},{"threads":[{"env":"THREADS","values":[1,2],"when":"optimizer=sgd"}]}]}]}},
"Tasks":[{"Name":"t","Driver":"exec","Config":{"command":"/bin/train","args":["--seed=1"]},"Env":{"A":"1"}}]}]}}`

func TestAFixedFileKeepsWhatItsAuthorWrote(t *testing.T) {
	t.Parallel()
	flags := trial()
	flags.Args = map[string]string{"--lr": "0.3", "--seed": "2", "--decay": "0.01"}
	for _, tt := range []struct {
		name, file, src string
		vars            map[string]string
		fix             jobfile.Fix
		want            string
	}{
		{"a batch script", "a.sh", batch, nil, trial(), batchFixed},
		{"a batch script without a command", "a.sh", "#!/bin/sh\n#TUNE knob lr env=LR", nil, jobfile.Fix{Env: map[string]string{"LR": "a'b"}, Knobs: []string{"lr"}}, "#!/bin/sh\nexport LR='a'\\''b' # set by pitchpipe search\n"},
		{
			"a trial, whose search goes on", "a.sh", "#!/bin/sh\n#TUNE search trials=9\n#TUNE knob lr env=LR when=a=b", nil,
			jobfile.Fix{Env: map[string]string{"LR": "2"}, Knobs: []string{"lr"}, Search: true, Cores: 4},
			"#!/bin/sh\n#TUNE search trials=9\n#TUNE knob lr env=LR when=a=b\n#SBATCH --cpus-per-task=4\nexport LR=\"${LR:-2}\" # set by pitchpipe search\n",
		},
		{
			"the mode takes the place of the search", "a.sh", "#!/bin/sh\n#TUNE search trials=9\n#TUNE search eta=3\n#TUNE knob lr env=LR\n#TUNE progress report=true\n", nil,
			jobfile.Fix{Env: map[string]string{"LR": "2"}, Knobs: []string{"lr"}, Mode: "apply"},
			"#!/bin/sh\n#TUNE mode=apply\n#TUNE progress report=true\nexport LR='2' # set by pitchpipe search\n",
		},
		{"a Nomad job file", "a.nomad.hcl", hcl, map[string]string{"epochs": "7", "input": "2", "key": "secret"}, flags, hclFixed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := detect.Fix(tt.file, []byte(tt.src), tt.vars, tt.fix)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFixedFileIsAJobWithTheValues(t *testing.T) {
	t.Parallel()
	task := func(group, task string) string {
		return `job "j" {
  type = "batch"
  group "g" {
` + group + `
    task "t" {
      driver = "exec"
` + task + `
    }
  }
}
`
	}
	const config = "config {\n command = \"/bin/train\"\n args = []\n}"
	const knobs = `{ mode = "apply", search = { trials = 9 }, quality = { direction = "max", measures = ["quality"] }, knob = { lr = { arg = "--lr", values = [1, 2] }, threads = { env = "THREADS", when = "lr=1", values = [1, 2] } } }`
	const text = `"{\"search\":{},\"knob\":{\"lr\":{\"values\":[1]},\"threads\":{\"env\":\"THREADS\",\"when\":\"lr=1\",\"values\":[1,2]}}}"`
	policy := func(tuning string) string {
		return "scaling {\n enabled = false\n policy {\n " + tuning + "\n }\n}"
	}
	for name, src := range map[string]string{
		"no env block":                   task("tuning {\n search {}\n knob \"threads\" { when = \"lr=1\" }\n}", config),
		"an empty env block":             task("", config+"\nenv {}"),
		"an env block of several lines":  task("", config+"\nenv {\n A = 1 # a\n # b\n}"),
		"an env block on one line":       task("", config+"\nenv { A = 1 }"),
		"whole cores":                    task("", config+"\nresources {\n cores = 1\n memory = 100\n}"),
		"a share of the cores":           task("", config+"\nresources {\n cpu = 500 # MHz\n memory = 100\n}"),
		"memory alone":                   task("", config+"\nresources { memory = 100 }"),
		"a map":                          task("", config+"\nenv = { A = 1 }"),
		"no arguments":                   task("", "config {\n command = \"/bin/train\"\n}"),
		"no arguments, on one line":      task("", "config { command = \"/bin/train\" }"),
		"arguments behind --":            task("", "config {\n command = \"/bin/train\"\n args = [\"--\", \"--lr\"]\n}"),
		"a comma behind the last":        task("", "config {\n command = \"/bin/train\"\n args = [\n\"-x\",\n]\n}"),
		"a flag without its value":       task("", "config {\n command = \"/bin/train\"\n args = [\"--lr\"]\n}"),
		"knobs as an object":             task("tuning {\n search = {}\n quality = { measures = [\"quality\"] }\n knob = { lr = { arg = \"--lr\" }, threads = { env = \"THREADS\" } }\n}", config),
		"a policy with an object":        task(policy("tuning = "+knobs), config),
		"a policy with a block":          task(policy("tuning {\n search {}\n knob \"lr\" {}\n knob \"threads\" {}\n}"), config),
		"meta with a text":               task("meta {\n tuning = "+text+"\n}", config),
		"meta with an encoded object":    task("meta {\n tuning = jsonencode("+knobs+")\n}", config),
		"meta as a map with a text":      task("meta = { tuning = "+text+" }", config),
		"a job that is registered":       asJSON,
		"a job with its stanza in meta":  strings.Replace(strings.Replace(asJSON, `"Policy"`, `"Policies"`, 1), `"ID":"j"`, `"ID":"j","Meta":{"tuning":`+text+`}`, 1),
		"a job without any environment":  strings.Replace(asJSON, `,"Env":{"A":"1"}`, "", 1),
		"a job as the API takes it":      strings.TrimSuffix(strings.TrimPrefix(asJSON, `{"Job":`), "}"),
		"another job with two helpers":   strings.Replace(asJSON, `"Tasks":[`, `"Tasks":[{"Name":"h","Lifecycle":{"Hook":"prestart"}},`, 1),
		"a file with text beyond ASCII":  task("# Ünïcödé\n tuning {\n # ä\n search {} # ö\n}", config+" # ü"),
		"a file of another line spacing": strings.ReplaceAll(task("tuning {\n search {}\n}", config), "  ", "\t"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "a.nomad.hcl"
			if src[0] == '{' {
				file = "a.nomad.json"
			}
			fix := trial()
			fix.Mode = "observe"
			fix.Args, fix.Cores = map[string]string{"--lr": "a b$c"}, 3
			before, err := detect.For("nomad")(file, []byte(src), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := detect.Fix(file, []byte(src), nil, fix)
			if err != nil {
				t.Fatal(err)
			}
			job, err := detect.For("nomad")(file, got, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			before.Env["LR"], before.Env["THREADS"] = "0.3", "2"
			if diff := cmp.Diff(before.Env, job.Env); diff != "" {
				t.Errorf("environment (-want +got):\n%s\n%s", diff, got)
			}
			if job.Cores != 3 || job.MemoryBytes != before.MemoryBytes {
				t.Errorf("%d cores and %d bytes, want 3 and %d\n%s", job.Cores, job.MemoryBytes, before.MemoryBytes, got)
			}
			if args := strings.Join(job.Argv, " "); !strings.Contains(args, "--lr a b$c") {
				t.Errorf("arguments %q\n%s", args, got)
			}
			if job.Stanza == nil {
				return
			}
			for _, b := range job.Stanza.Blocks {
				if b.Type == "search" || b.Label == "lr" || b.Text("when") != "" || slices.ContainsFunc(b.Attrs, func(a jobfile.Attr) bool { return a.Name == "measures" }) {
					t.Errorf("%s %s is still there\n%s", b.Type, b.Label, got)
				}
			}
			if mode := std.Or(before.Stanza.Text("mode"), "observe"); strings.Contains(src, "search") && job.Stanza.Text("mode") != mode {
				t.Errorf("mode %q, want %q\n%s", job.Stanza.Text("mode"), mode, got)
			}
			if strings.Contains(src, "THREADS") && strings.Contains(src, "mode") && strings.Contains(src, "quality") && len(job.Stanza.Blocks) == 0 {
				t.Errorf("the stanza lost more than it had to:\n%s", got)
			}
		})
	}
}

func TestAFileThatCannotHaveTheValuesIsRefused(t *testing.T) {
	t.Parallel()
	env := func(value string) jobfile.Fix { return jobfile.Fix{Env: map[string]string{"LR": value}} }
	args := jobfile.Fix{Args: map[string]string{"--lr": "1"}}
	list := strings.Replace(nomad, `"/bin/true"`, "\"/bin/true\"\n args = concat([], [])\n", 1)
	list = strings.Replace(strings.Replace(list, "config {", "config {\n", 1), "\n }", "\n\n}", 1)
	for _, tt := range []struct {
		name, file, src string
		fix             jobfile.Fix
		want            string
	}{
		{"arguments of a batch script", "a.sh", batch, args, "a.sh:1:1: a batch script has no command line to change"},
		{"a script in another language", "a.sh", "#!/usr/bin/env python3\n#SBATCH -c 1\n", env("1"), "a.sh:1:1: a script that no shell runs"},
		{"a variable that the script sets", "a.sh", "#!/bin/sh\nexport LR=1\n", env("2"), "a.sh:2:8: the script sets LR itself; want it written ${LR:-...}"},
		{"two lines", "a.sh", batch, env("a\nb"), "a.sh:1:1: a value of LR that is no line of text"},
		{"nothing", "a.sh", batch, env(""), "a.sh:1:1: an empty value of LR"},
		{"a value of a knob that stays", "a.sh", batch, jobfile.Fix{Env: map[string]string{"THREADS": "it's"}}, "a.sh:1:1: the value \"it's\" of a knob that stays"},
		{"a variable that is none", "a.sh", batch, jobfile.Fix{Env: map[string]string{"a b": "1"}}, "a.sh:1:1: the variable a b"},
		{"what Nomad replaces", "a.nomad", nomad, env("${attr.os}"), "a.nomad:1:1: a value of LR with ${"},
		{"arguments that are computed", "a.nomad", list, args, "a.nomad:8:9: arguments that are no list"},
		{"two main tasks", "a.json", `{"ID":"j","Type":"batch","TaskGroups":[{"Tasks":[{"Name":"a"},{"Name":"b"}]}]}`, env("1"), "a.json:1:1: a job without a main task"},
		{"a task without a command", "a.json", `{"ID":"j","Type":"batch","TaskGroups":[{"Tasks":[{"Name":"a"}]}]}`, args, "a.json:1:1: a task without a command line"},
		{"a broken script", "a.sh", "#!/bin/sh\n#SBATCH --time\n", env("1"), "a.sh:2:9"},
		{"a file of no format", "a.txt", "x", env("1"), "a.txt:1:1: a file of no known format"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := detect.Fix(tt.file, []byte(tt.src), nil, tt.fix); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %s\n%s", err, tt.want, got)
			}
		})
	}
}

func TestAFixedScriptIsTheSameCommand(t *testing.T) {
	t.Parallel()
	if jobfile.ScriptIdentity([]byte(batch)) != jobfile.ScriptIdentity([]byte(batchFixed)) {
		t.Error("what is known of the trials does not serve the job with the best of their settings")
	}
	if own := strings.ReplaceAll(batchFixed, jobfile.FixedMark, ""); jobfile.ScriptIdentity([]byte(own)) == jobfile.ScriptIdentity([]byte(batch)) {
		t.Error("a variable more is no other command")
	}
}

func FuzzAFixedFileIsReadAgain(f *testing.F) {
	for _, src := range []string{batch, batchFixed, hcl, nomad, asJSON, "#!/bin/sh\n#TUNE mode=apply\r"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, file := range []string{"a.sh", "a.nomad", "a.json"} {
			fix := jobfile.Fix{Env: map[string]string{"LR": "1"}, Knobs: []string{"lr"}, Cores: 2}
			if file != "a.sh" {
				fix.Args = map[string]string{"--lr": "1"}
			}
			got, err := detect.Fix(file, []byte(src), nil, fix)
			if err != nil {
				continue
			}
			job, err := detect.For("nomad")(file, got, nil)
			if file == "a.sh" {
				job, err = detect.For("slurm")(file, got, nil)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			if file != "a.sh" && job.Env["LR"] != "1" || job.Cores != 2 || job.Stanza != nil && slices.ContainsFunc(job.Stanza.Blocks, func(b *jobfile.Block) bool { return fix.Leaves(b.Type, b.Label) }) {
				t.Errorf("%d cores, environment %q\n%s", job.Cores, job.Env, got)
			}
		}
	})
}

func FuzzNomadReadsAValueAsItIs(f *testing.F) {
	for _, v := range []string{"0.1", "a b", `"`, `\`, "$$", "%{if}", "$$${", "é", "e\u0301", "--x=1", "", "a=b"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		fix := jobfile.Fix{Env: map[string]string{"X": value}, Args: map[string]string{"--x": value}}
		if fix.Check("a.nomad", jobfile.NomadHCL) != nil {
			return
		}
		got, err := detect.Fix("a.nomad", []byte(nomad), nil, fix)
		if err != nil {
			t.Fatal(err)
		}
		job, err := detect.For("nomad")("a.nomad", got, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		want := cty.NormalizeString(value)
		if diff := cmp.Diff([]string{"/bin/true", "--x", want}, job.Argv); diff != "" || job.Env["X"] != want {
			t.Errorf("read as %q and (-want +got):\n%s\n%s", job.Env["X"], diff, got)
		}
	})
}

func FuzzAShellPrintsAValueAsItIs(f *testing.F) {
	for _, v := range []string{"0.1", "a b", "it's", `"`, `\`, "$HOME", "`id`", "a}b", "${X}", "!!", "*", "~", "# x", " x ", "é", "--x", "$(id)", `\'`, "'\\''", "%s"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, stays := range []bool{false, true} {
			fix := jobfile.Fix{Env: map[string]string{"X": value}}
			if !stays {
				fix.Knobs = []string{"x"}
			}
			for _, shell := range []string{"sh", "bash"} {
				src := "#!/bin/" + shell + "\n#TUNE knob x env=X values=1,2\nX=${X:-9}\nprintf %s \"$X\"\n"
				got, err := detect.Fix("a.sh", []byte(src), nil, fix)
				if err != nil && (fix.Check("a.sh", jobfile.Sbatch) != nil || stays && !jobfile.IsPlain(value)) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := detect.Parse("a.sh", got, nil); err != nil {
					t.Fatalf("%v\n%s", err, got)
				}
				c := exec.CommandContext(t.Context(), shell, "-c", string(got))
				c.Env = []string{"LC_ALL=C.UTF-8"}
				if printed, err := c.Output(); err != nil || string(printed) != value {
					t.Errorf("%s printed %q (%v), want %q\n%s", shell, printed, err, value, got)
				}
			}
		}
	})
}
