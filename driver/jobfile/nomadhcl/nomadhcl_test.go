package nomadhcl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
)

// file is a whole job file; tests replace the remarks in it.
const file = `#top
job "train" {
  type = "batch"
#job
  group "g" {
#group
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/train"
#config
      }
#task
    }
  }
}
`

// with puts text in place of a remark: "job: text".
func with(places ...string) string {
	out := file
	for _, p := range places {
		where, text, _ := strings.Cut(p, ": ")
		out = strings.Replace(out, "#"+where+"\n", text+"\n", 1)
	}
	return out
}

func parse(t *testing.T, src string, vars map[string]string) *jobfile.Job {
	t.Helper()
	job, err := nomadhcl.Parse("job.hcl", []byte(src), vars)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return job
}

func TestWholeJob(t *testing.T) {
	t.Parallel()
	got := parse(t, `
variable "data" {
  type        = string
  description = "input"
}
variable "epochs" {
  type    = number
  default = 5
}
variable "fast" {
  type    = bool
  default = false
}
variable "any" { default = "x" }
locals {
  both = join("-", concat([local.first], [upper("b"), lower("C")]))
  first = format("%s%d", "a", max(1, min(2, 3)))
}
job "train" {
  name        = "trainer"
  type        = "batch"
  namespace   = "science"
  datacenters = ["*"]
  priority    = 40
  constraint { attribute = "x" }
  meta { a = 1 }
  group "g" {
    count = 1
    restart { attempts = 0 }
    ephemeral_disk { size = 100 }
    meta = { a = 2, b = local.both }
    task "t" {
      driver      = "exec"
      kill_signal = "SIGTERM"
      logs { max_files = 1 }
      config {
        command  = "/bin/train"
        args     = ["--data", var.data, "--epochs=${var.epochs}", "${NOMAD_ALLOC_ID}", "x${env["HOME"]}y", tostring(tonumber("3"))]
        work_dir = "/tmp"
      }
      env {
        FAST = var.fast
        NODE = "${attr.kernel.name}"
        ANY  = var.any
      }
      meta { c = "3" }
      resources {
        cores      = 4
        memory     = 512
        memory_max = 1024
      }
    }
  }
}
`, map[string]string{"data": "in.csv"})
	want := &jobfile.Job{
		Format: jobfile.NomadHCL, Name: "trainer", Partition: "science", Cores: 4, MemoryBytes: 1 << 30, Dir: "/tmp",
		Argv:    []string{"/bin/train", "--data", "in.csv", "--epochs=5", "${NOMAD_ALLOC_ID}", `x${env["HOME"]}y`, "3"},
		Env:     map[string]string{"FAST": "false", "NODE": "${attr.kernel.name}", "ANY": "x"},
		Meta:    map[string]string{"a": "2", "b": "a2-B-c", "c": "3"},
		Command: got.Command,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Command) != 12 {
		t.Errorf("command %q, want 12 digits", got.Command)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		cores      int
		memory     int64
	}{
		{"nothing said", "", 1, 0},
		{"shares of a core", "resources {\n cpu = 500\n memory = 256\n}", 1, 256 << 20},
		{"a ceiling above the request is the limit", "resources {\n memory = 256\n memory_max = 512\n}", 1, 512 << 20},
		{"an unbounded ceiling is no limit", "resources {\n memory = 256\n memory_max = -1\n}", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := parse(t, with("task: "+tt.text), nil); got.Cores != tt.cores || got.MemoryBytes != tt.memory {
				t.Errorf("%d cores and %d bytes, want %d and %d", got.Cores, got.MemoryBytes, tt.cores, tt.memory)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src string
		vars      map[string]string
		want      string
	}{
		{"broken syntax", "job {", nil, "1:"},
		{"no job", "", nil, "1:1: 0 jobs; want one job block"},
		{"two jobs", with() + "job \"b\" {}\n", nil, "1:1: 2 jobs; want one job block"},
		{"a key outside", with("top: x = 1"), nil, `1:1: unknown key "x" in the file; want one of job, locals, variable`},
		{"an unknown block outside", with("top: jobs \"x\" {}"), nil, `1:1: unknown block "jobs" in the file; want one of job, locals, variable; did you mean "job"?`},
		{"no type", strings.Replace(with(), `type = "batch"`, "", 1), nil, `2:1: a job without type; want "batch"`},
		{"another type", strings.Replace(with(), `"batch"`, `"service"`, 1), nil, `3:10: type is "service"; want "batch"`},
		{"no group", "job \"a\" {\n type = \"batch\"\n}\n", nil, "1:1: a job without group"},
		{"two groups", with("job: group \"h\" {}"), nil, "4:1: a group without task; want one"},
		{"two tasks", with("group: task \"h\" {}"), nil, "6:1: a task without config; want one"},
		{"several copies", with("group: count = 2"), nil, "6:9: count is 2; want 1"},
		{"another driver", strings.Replace(with(), "raw_exec", "docker", 1), nil, `8:16: driver is "docker"; want "raw_exec" or "exec"`},
		{"no driver", strings.Replace(with(), `driver = "raw_exec"`, "", 1), nil, "7:5: a task without driver; want \"raw_exec\" or \"exec\""},
		{"no command", strings.Replace(with(), `command = "/bin/train"`, "", 1), nil, "9:7: a config without command; want the path of a program"},
		{"an empty command", strings.Replace(with(), "/bin/train", "", 1), nil, "10:19: command is \"\"; want the path of a program"},
		{"no list of arguments", with("config: args = 3"), nil, "11:8: args is 3; want a list such as"},
		{"an argument that is a list", with("config: args = [[1]]"), nil, "11:8: args is [[1]]; want a list such as"},
		{"an image", with("config: image = \"x\""), nil, `11:1: unknown key "image" in the config; want one of args, command, work_dir`},
		{"a misspelt key", with("config: arg = []"), nil, `11:1: unknown key "arg" in the config; want one of args, command, work_dir; did you mean "args"?`},
		{"a network", with("group: network {}"), nil, "6:1: network in the group; networks and services are not set up"},
		{"a service", with("task: service {}"), nil, "13:1: service in the task; networks and services"},
		{"a volume", with("group: volume \"x\" {}"), nil, "6:1: volume in the group; volumes are not mounted"},
		{"a template", with("task: template {}"), nil, "13:1: template in the task; templates are not rendered"},
		{"an artifact", with("task: artifact {}"), nil, "13:1: artifact in the task; artifacts are not fetched"},
		{"secrets", with("task: vault {}"), nil, "13:1: vault in the task; secrets are not fetched"},
		{"a periodic job", with("job: periodic {}"), nil, "4:1: periodic in the job; jobs that start others"},
		{"a parameterized job", with("job: parameterized {}"), nil, "4:1: parameterized in the job; jobs that start others"},
		{"a lifecycle", with("task: lifecycle {}"), nil, "13:1: lifecycle in the task; jobs of several tasks"},
		{"another user", with("task: user = \"root\""), nil, "13:1: user in the task; a job runs as the user who submits it"},
		{"an unknown block", with("group: tasks \"x\" {}"), nil, `6:1: unknown block "tasks" in the group`},
		{"two configs", with("task: config {\n command = \"x\"\n}"), nil, "13:1: a second config in the task; want one; the first is at job.hcl:9:7"},
		{"cpu and cores", with("task: resources {\n cpu = 1\n cores = 1\n}"), nil, "14:2: both cpu and cores"},
		{"cores that are no number", with("task: resources { cores = \"x\" }"), nil, "13:21: cores is \"x\"; want a whole number from 1"},
		{"half a core", with("task: resources { cores = 0.5 }"), nil, "13:21: cores is 0.5; want a whole number from 1"},
		{"an environment that is no map", with("task: env = 3"), nil, "13:7: env is 3; want a map such as"},
		{"an environment with a block", with("task: env {\n a {}\n}"), nil, `14:2: unknown block "a" in the env; want NAME = value`},
		{"an unknown variable", with("config: args = [var.x]"), nil, "11:"},
		{"an unknown function", with("config: args = [file(\"x\")]"), nil, "11:9: call to unknown function"},
		{"a variable without a value", with("top: variable \"x\" {}"), nil, `1:1: the variable "x" has no value and no default; give one with --var x=VALUE`},
		{"a value for no variable", with(), map[string]string{"x": "1"}, `1:1: a value for the unknown variable "x"; the file has no variables`},
		{"a value for a misspelt variable", with("top: variable \"data\" { default = 1 }"), map[string]string{"dta": "1"}, `1:1: a value for the unknown variable "dta"; its variables are data; did you mean "data"?`},
		{"a value of another type", with("top: variable \"x\" { type = number }"), map[string]string{"x": "y"}, `1:1: the variable "x" is given as "y"; want a number`},
		{"a default of another type", with("top: variable \"x\" {\n type = bool\n default = \"y\"\n}"), nil, `3:12: the default of the variable "x" is of another type; want a bool`},
		{"a condition on a variable", with("top: variable \"x\" {\n default = 1\n validation {}\n}"), nil, `3:2: unknown block "validation" in the variable`},
		{"an unknown key of a variable", with("top: variable \"x\" {\n default = 1\n sensitive = true\n}"), nil, `3:2: unknown key "sensitive" in the variable`},
		{"a variable twice", with("top: variable \"x\" { default = 1 }\nvariable \"x\" { default = 1 }"), nil, `2:1: a second variable "x"; the first is at job.hcl:1:1`},
		{"a local that refers to itself", with("top: locals {\n a = local.b\n b = local.a\n}"), nil, `2:2: the local "a" refers to itself`},
		{"a local twice", with("top: locals { a = 1 }\nlocals { a = 2 }"), nil, `2:10: a second local "a"; the first is at job.hcl:1:10`},
		{"a second stanza", with("job: tuning {}", "group: tuning {}"), nil, "6:1: a second tuning stanza; want one; the first is at job.hcl:4:1"},
		{"a second stanza in meta", with("job: tuning {}", "group: meta { tuning = \"{}\" }"), nil, "6:8: a second tuning stanza"},
		{"a second stanza in the same place", with("job: tuning {}\ntuning {}"), nil, "5:1: a second tuning stanza"},
		{"a stanza of the task", with("task: tuning {}"), nil, `13:1: unknown block "tuning" in the task`},
		{"a stanza with a name", with("job: tuning \"x\" {}"), nil, `4:8: the name "x" of the tuning stanza`},
		{"a knob with two names", with("job: tuning {\n knob \"x\" \"y\" {}\n}"), nil, `5:11: a second name "y" of a knob block`},
		{"a stanza that is no JSON", with("job: meta { tuning = \"{\" }"), nil, "4:17: broken JSON: unexpected end of JSON input"},
		{"a stanza that is no object", with("job: meta { tuning = \"3\" }"), nil, "4:17: the tuning stanza is not an object"},
		{"a stanza of the node", with("job: tuning { mode = NOMAD_X }"), nil, "4:17: unknown variable"},
		{"deep nesting", with("config: args = " + strings.Repeat("[", 100000)), nil, "1:1: brackets and operators beyond all reason"},
		{"deep negation", with("config: args = " + "(" + strings.Repeat("!\n", 100000) + "true)"), nil, "1:1: brackets and operators beyond all reason"},
		{"a file that is no text", "\xff", nil, "1:1: text that is not UTF-8"},
		{"a huge file", strings.Repeat("\n", 2<<20), nil, "1:1: a job file of more than 256 KiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := nomadhcl.Parse("job.hcl", []byte(tt.src), tt.vars)
			if _, ok := errors.AsType[jobfile.Errors](err); !ok {
				t.Fatalf("error %v, want jobfile.Errors", err)
			}
			if !strings.HasPrefix(err.Error(), "job.hcl:"+tt.want) {
				t.Errorf("error\n%v\nwant one that begins with\njob.hcl:%s", err, tt.want)
			}
		})
	}
}

func TestSeveralFaultsComeInTheOrderOfTheirPlaces(t *testing.T) {
	t.Parallel()
	_, err := nomadhcl.Parse("job.hcl", []byte(with("job: x = 1", "group: count = 2\nnetwork {}", "task: resources { cores = 0 }")), nil)
	var at []string
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, f := range faults {
			at = append(at, f.Pos.String())
		}
	}
	if diff := cmp.Diff([]string{"job.hcl:4:1", "job.hcl:6:9", "job.hcl:7:1", "job.hcl:14:21"}, at); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStanzaHasExactPlacesInBytes(t *testing.T) {
	t.Parallel()
	at := func(line, column int) jobfile.Pos {
		return jobfile.Pos{Filename: "job.hcl", Line: line, Column: column}
	}
	want := &jobfile.Block{
		Pos: at(4, 9),
		Attrs: []jobfile.Attr{
			{Name: "mode", Pos: at(5, 2), Value: jobfile.Value{Kind: jobfile.String, Text: "apply"}, ValuePos: at(5, 9)},
		},
		Blocks: []*jobfile.Block{{
			Type: "knob", Label: "b", Pos: at(6, 2), LabelPos: at(6, 7),
			Attrs: []jobfile.Attr{{
				Name: "values", Pos: at(6, 13), ValuePos: at(6, 22),
				Value: jobfile.Value{Kind: jobfile.List, List: []jobfile.Item{
					{Pos: at(6, 23), Value: jobfile.Value{Kind: jobfile.Number, Number: 1, Text: "1"}},
					{Pos: at(6, 26), Value: jobfile.Value{Kind: jobfile.Bool, Bool: true}},
					{Pos: at(6, 32), Value: jobfile.Value{Kind: jobfile.Other}},
				}},
			}},
		}},
	}
	got := parse(t, with("job: /* ä */ tuning { mode = \"apply\"}"), nil).Stanza
	got2 := parse(t, with("job: /* ä */tuning {\n mode = \"apply\"\n knob \"b\" { values = [1, true, null] }\n}"), nil).Stanza
	if got.Pos != at(4, 10) {
		t.Errorf("the stanza is at %s, want column 10", got.Pos)
	}
	if diff := cmp.Diff(want, got2); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSONInJsonencodeKeepsItsPlaces(t *testing.T) {
	t.Parallel()
	got := parse(t, with("job: meta = {\n tuning = jsonencode({ mode = \"apply\" })\n}"), nil)
	if len(got.Stanza.Attrs) != 1 || got.Stanza.Attrs[0].Pos.String() != "job.hcl:5:24" {
		t.Errorf("stanza %+v, want mode at 5:24", got.Stanza)
	}
	if got.Meta["tuning"] != `{"mode":"apply"}` {
		t.Errorf("meta is %q", got.Meta)
	}
	computed := parse(t, with("top: locals { t = { mode = \"apply\" } }", "job: meta { tuning = jsonencode(local.t) }"), nil).Stanza
	if len(computed.Attrs) != 1 || computed.Attrs[0].Name != "mode" {
		t.Errorf("stanza %+v, want mode", computed)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	command := func(args string) string { return parse(t, with("config: args = "+args), nil).Command }
	base := command(`["--data", "a.csv", "--lr=0.1"]`)
	if got := command(`["--data", "/b.csv", "--lr=5"]`); got != base {
		t.Errorf("other values are another command")
	}
	if got := command(`["--input", "a.csv", "--lr=0.1"]`); got == base {
		t.Errorf("another flag is the same command")
	}
}
