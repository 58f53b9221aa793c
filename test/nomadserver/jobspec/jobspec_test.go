package jobspec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/nomadserver/jobspec"
)

// job is a whole job file; cases replace the remarks in it.
const job = `#top
job "train" {
  type = "batch"
#job
  group "g" {
#group
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
#config
      }
#task
      resources {
        memory = 64
#resources
      }
    }
  }
#end
}
`

func with(places ...string) string {
	out := job
	for _, p := range places {
		where, text, _ := strings.Cut(p, ": ")
		out = strings.Replace(out, "#"+where+"\n", text+"\n", 1)
	}
	return out
}

// accepted are job files that both parsers read alike.
func accepted() map[string]string {
	return map[string]string{
		"the least that a job has": with(),
		"all of a batch job": with(
			`top: variable "lr" {
  type    = number
  default = 0.1
}
variables {
  name = "n"
}
locals {
  b = "${local.a}-${var.name}"
  a = upper("x")
}`,
			`job: datacenters = ["dc1"]
  priority    = 70
  namespace   = "other"
  node_pool   = "pool"
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }
  constraint {
    attribute = "${node.class}"
    regexp    = "a.*"
  }
  constraint {
    distinct_hosts = true
  }
  affinity {
    attribute = "${node.datacenter}"
    value     = "dc1"
    weight    = 50
  }
  meta {
    key = "value-${local.b}"
    n   = 3
  }
  parameterized {
    payload       = "optional"
    meta_required = ["in"]
    meta_optional = ["out"]
  }
  reschedule {
    attempts  = 0
    unlimited = false
  }`,
			`group: count = 2
    shutdown_delay = "3s"
    meta = { "dotted.key" = "x", tuning = jsonencode({ mode = "apply", knob = { cores = { values = [1, 2] } } }) }
    restart {
      attempts = 3
      delay    = "1s"
      interval = "10m"
      mode     = "fail"
    }
    ephemeral_disk {
      size    = 300
      sticky  = true
      migrate = true
    }
    scaling {
      enabled = false
      min     = 1
      max     = 2
      policy {
        cooldown = "1m"
        tuning {
          mode = "apply"
          knob "cores" {
            values = [1, 2, 4]
          }
          knob "threads" {
            env     = "OMP_NUM_THREADS"
            follows = "cores"
          }
          deep "a" "b" {
            x = { y = 1.5 }
          }
          flag  = true
          maps  = [{ a = 1 }, { b = 2 }]
          empty = {}
          none  = null
        }
      }
    }
    network {
      mode = "host"
      port "http" {
        static = 8080
      }
      port "metrics" {}
    }
    service {
      name     = "exporter"
      provider = "nomad"
      port     = "metrics"
      tags     = ["a", "${NOMAD_JOB_NAME}"]
      check {
        type     = "http"
        path     = "/health"
        interval = "10s"
        timeout  = "2s"
      }
    }`,
			`config:         args = ["--lr", "${var.lr}", "${NOMAD_TASK_DIR}/x", "${env["HOME"]}", "${attr.cpu.arch}", "${meta.key}", format("%s!", "${NOMAD_META_key}"), node.unique.name]
        nested {
          a = 1
          inner "label" {
            b = "${NOMAD_ALLOC_ID}"
          }
        }
        object = { k = "v" }`,
			`task: kill_signal = "SIGTERM"
      kill_timeout = "10s"
      leader       = true
      user         = "nobody"
      env {
        A = "1"
        B = var.lr
        C = true
        D = "${NOMAD_ALLOC_INDEX}"
      }
      meta {
        m = "t"
      }
      logs {
        max_files     = 2
        max_file_size = 5
      }
      dispatch_payload {
        file = "in.json"
      }
      identity {
        env  = true
        file = true
      }
      identity {
        name = "second"
        aud  = ["x"]
        ttl  = "1h"
      }
      template {
        data        = <<EOT
{{ with nomadVar "nomad/jobs/train" }}{{ range .Tuples }}{{ .K }}={{ .V }}
{{ end }}{{ end }}
EOT
        destination = "local/tuned.env"
        env         = true
        change_mode = "restart"
        splay       = "0s"
      }
      scaling "cpu" {
        enabled = false
        min     = 1
        max     = 2
        policy {}
      }
      artifact {
        source      = "http://127.0.0.1/x"
        destination = "local/x"
        options {
          archive = "false"
        }
      }
      lifecycle {
        hook = "prestart"
      }`,
			`resources: cores = 2
        memory_max = 256
        device "nvidia/gpu" {
          count = 1
        }`,
		),
		"a periodic job": with(`job: periodic {
    cron             = "*/15 * * * *"
    prohibit_overlap = true
    time_zone        = "UTC"
  }`),
		"a periodic job of several times": with("job: periodic {\n crons = [\"@daily\", \"@weekly\"]\n}"),
		"a system job with an id":         strings.Replace(with("job: id = \"other\"\nname = \"shown\""), `"batch"`, `"system"`, 1),
		"a dynamic block": with(`group: dynamic "constraint" {
      for_each = ["a", "b"]
      content {
        attribute = "${meta.rack}"
        operator  = "!="
        value     = constraint.value
      }
    }`),
		"functions": with(`job: meta {
    a = base64encode("x")
    b = sha256("x")
    c = join(",", [for x in range(3) : x * 2])
    d = try(var.none, "fallback")
    e = replace("a-b", "-", "_")
    f = "${upper("x")}-${min(3, 2)}-${length([1, 2])}"
    g = can(1) ? "yes" : "no"
    h = urlencode("a b")
    i = md5("x")
    j = trimspace(" x ")
    k = format("%03d", 7)
    l = jsonencode({ a = [1, true, null] })
  }`),
	}
}

// refused are job files with what both parsers say of them.
func refused() map[string][2]string {
	return map[string][2]string{
		"a tuning block of the job":         {with("job: tuning {}"), `input.hcl:4,1-7: Unsupported block type; Blocks of type "tuning" are not expected here.`},
		"a tuning block of the group":       {with("group:     tuning {\n mode = \"apply\"\n}"), `input.hcl:6,5-11: Unsupported block type; Blocks of type "tuning" are not expected here.`},
		"a tuning block of the task":        {with("task: tuning {}"), `input.hcl:13,1-7: Unsupported block type; Blocks of type "tuning" are not expected here.`},
		"a tuning block of resources":       {with("resources: tuning {}"), `input.hcl:16,1-7: Unsupported block type; Blocks of type "tuning" are not expected here.`},
		"a tuning block at the top":         {with("top: tuning {}"), `input.hcl:1,1-7: Unsupported block type; Blocks of type "tuning" are not expected here.`},
		"an unknown attribute":              {with("group: tuning = 1"), `input.hcl:6,1-7: Unsupported argument; An argument named "tuning" is not expected here.`},
		"a dotted key in a block":           {with("job: meta {\n \"a.b\" = 1\n}"), `input.hcl:5,2-3: Invalid argument name; Argument names must not be quoted.`},
		"two kinds of cores":                {with("resources: cores = \"many\""), `input.hcl:16,10-14: Unsuitable value type; Unsuitable value: a number is required`},
		"a duration that is none":           {with("task: kill_timeout = \"soon\""), `input.hcl:13,17-21: Unsuitable value type; Unsuitable duration value: time: invalid duration "soon"`},
		"a job twice":                       {with("top: job \"x\" {}"), `input.hcl:2,1-12: Duplicate job block; Only one block of type "job" is allowed. Previous definition was at input.hcl:1,1-8.`},
		"no job":                            {"locals {}\n", `<nil>: Missing job block; A job block is required`},
		"a job without a name":              {"job {}\n", `input.hcl:1,5-6: Missing name for job; All job blocks must have 1 labels (name).`},
		"a variable that is not set":        {with("top: variable \"x\" {}"), `<nil>: Unset variable "x"; A used variable must be set or have a default value; see https://developer.hashicorp.com/nomad/docs/reference/hcl2/variables  for details.`},
		"a variable that is not declared":   {with("job: meta {\n x = var.none\n}"), `input.hcl:5,9-14: Unsupported attribute; This object does not have an attribute named "none".` + "\ninput.hcl:5,6-14: Unsuitable value type; Unsuitable value: value must be known"},
		"two restart blocks":                {with("group: restart {}\nrestart {}"), `input.hcl:7,1-8: Duplicate restart block; Only one restart block is allowed. Another was defined at input.hcl:6,1-8.`},
		"scaling without max":               {with("group: scaling {\n}"), `input.hcl:6,9-9: Missing required argument; The argument "max" is required, but no definition was found.`},
		"a lifecycle without hook":          {with("task: lifecycle {}"), `input.hcl:13,11-11: Missing required argument; The argument "hook" is required, but no definition was found.`},
		"a function that reads files":       {with("job: meta {\n x = file(\"/etc/passwd\")\n}"), `input.hcl:5,6-11: Error in function call; Call to function "file" failed: filesystem function disabled.` + "\ninput.hcl:5,6-11: Unsuitable value type; Unsuitable value: value must be known"},
		"a function that does not exist":    {with("job: meta {\n x = nothing(1)\n}"), `input.hcl:5,6-13: Call to unknown function; There is no function named "nothing".` + "\ninput.hcl:5,6-14: Unsuitable value type; Unsuitable value: value must be known"},
		"env twice":                         {with("task: env = { A = \"1\" }\nenv {\n B = \"2\"\n}"), `input.hcl:14,1-4: Duplicate env block; env may not be defined more than once. Another definition is defined at input.hcl:13,1-18.`},
		"a name of a scaling policy":        {with("task: scaling \"disk\" {}"), `input.hcl:13,9-15: Invalid scaling policy name; scaling policy name must be "cpu" or "mem"`},
		"a default that is not of its type": {with("top: variable \"x\" {\n type = number\n default = \"a\"\n}"), `input.hcl:3,12-15: Invalid default value for variable; This default value is not compatible with the variable's type constraint: a number is required.`},
		"a group without a name":            {with("end: group {}"), `input.hcl:20,7-8: Missing name for group; All group blocks must have 1 labels (name).`},
		"a list where a text is":            {with("task: user = [1]"), `input.hcl:13,8-9: Unsuitable value type; Unsuitable value: string required, but have tuple`},
		"broken syntax":                     {"job \"x\" {\n", `input.hcl:1,9-10: Unclosed configuration block; There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file.`},
		"restart at the job":                {with("job: restart {}"), `input.hcl:4,1-8: Unsupported block type; Blocks of type "restart" are not expected here.`},
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhatIsRefusedIsRefusedInNomadsWords(t *testing.T) {
	t.Parallel()
	for name, c := range refused() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jobspec.Parse("input.hcl", []byte(c[0]), nil)
			if err == nil {
				t.Fatalf("accepted: %s", text(t, got))
			}
			if diff := cmp.Diff(c[1], err.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, c[0])
			}
		})
	}
}

// TestTheRealAgentReadsFilesAlike runs every case, and the job files that are shipped,
// through the parser of a real agent.
func TestTheRealAgentReadsFilesAlike(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	c := a.Client(t)
	for name, src := range accepted() {
		t.Run(name, func(t *testing.T) {
			want, err := c.Jobs().ParseHCL(src, false)
			if err != nil {
				t.Fatalf("the agent: %v\n%s", err, src)
			}
			got, err := jobspec.Parse("input.hcl", []byte(src), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
				t.Errorf("(-agent +here)\n%s", diff)
			}
		})
	}
	for name, r := range refused() {
		t.Run(name, func(t *testing.T) {
			_, err := c.Jobs().ParseHCL(r[0], false)
			if err == nil {
				t.Fatal("the agent accepts it")
			}
			said := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "Unexpected response code: 400 (Failed to parse job: "), ")")
			if diff := cmp.Diff(said, r[1]); diff != "" {
				t.Errorf("(-agent +here)\n%s", diff)
			}
		})
	}
}

func TestShippedJobFilesAreRead(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../../jobspecs/nomad/*.hcl")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, name := range found {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = jobspec.Parse("input.hcl", src, nil)
		// A stanza is for pitchpipe run, which takes it out before.
		if err != nil && (!strings.Contains(err.Error(), `Blocks of type "tuning" are not expected here.`) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVariablesAreSetByFlagsAndFiles(t *testing.T) {
	t.Parallel()
	src := with(`top: variable "n" {
  type = number
}
variable "list" {
  type    = list(string)
  default = []
}
variable "any" {
  default = "d"
}`, "job: meta {\n n = var.n + 1\n list = join(\",\", var.list)\n any = var.any\n}")
	for _, c := range []struct {
		name string
		in   jobspec.Input
		want map[string]string
		err  string
	}{
		{"by flags", jobspec.Input{Vars: map[string]string{"n": "2", "list": `["a", "b"]`, "any": "x"}}, map[string]string{"n": "3", "list": "a,b", "any": "x"}, ""},
		{"by a file", jobspec.Input{VarFile: "n = 4\nlist = [\"c\"]\n"}, map[string]string{"n": "5", "list": "c", "any": "d"}, ""},
		{"flags win over a file", jobspec.Input{VarFile: "n = 4\n", Vars: map[string]string{"n": "7"}}, map[string]string{"n": "8", "list": "", "any": "d"}, ""},
		{"a flag for none", jobspec.Input{Vars: map[string]string{"n": "1", "x": "1"}}, nil, `<nil>: Undefined -var variable; A "x" variable was passed in the command line but was not found in known variables. To declare variable "x", place this block in your job file`},
		{"a flag of another type", jobspec.Input{Vars: map[string]string{"n": "many"}}, nil, "Invalid argument value for -var variable; The received arg value for n is not compatible with the variable's type constraint: a number is required."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.in.Filename, c.in.Source = "job.hcl", []byte(src)
			got, err := jobspec.ParseInput(c.in)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Meta); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPolicyIsNestedMapsWithEachBlockInAList(t *testing.T) {
	t.Parallel()
	got, err := jobspec.Parse("job.hcl", []byte(accepted()["all of a batch job"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cooldown": "1m", "tuning": []any{map[string]any{
		"mode": "apply", "flag": true, "none": nil,
		"knob": []any{
			map[string]any{"cores": []any{map[string]any{"values": []any{1, 2, 4}}}},
			map[string]any{"threads": []any{map[string]any{"env": "OMP_NUM_THREADS", "follows": "cores"}}},
		},
		"deep":  []any{map[string]any{"a": []any{map[string]any{"b": []any{map[string]any{"x": []any{map[string]any{"y": 1.5}}}}}}}},
		"maps":  []any{map[string]any{"a": 1}, map[string]any{"b": 2}},
		"empty": []any{map[string]any{}},
	}}}
	if diff := cmp.Diff(want, got.TaskGroups[0].Scaling.Policy); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfTheNodeStayText(t *testing.T) {
	t.Parallel()
	got, err := jobspec.Parse("job.hcl", []byte(accepted()["all of a batch job"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	args := got.TaskGroups[0].Tasks[0].Config["args"]
	want := []any{"--lr", 0.1, "${NOMAD_TASK_DIR}/x", `${env["HOME"]}`, "${attr.cpu.arch}", "${meta.key}", "${NOMAD_META_key}!", "${node.unique.name}"}
	if diff := cmp.Diff(any(want), args); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range accepted() {
		f.Add(src)
	}
	for _, c := range refused() {
		f.Add(c[0])
	}
	f.Fuzz(func(t *testing.T, src string) {
		got, err := jobspec.Parse("job.hcl", []byte(src), nil)
		if (got == nil) == (err == nil) {
			t.Fatalf("%v and %v", got, err)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a word")
			}
			return
		}
		if got.ID == nil || got.Name == nil {
			t.Fatal("a job without a name")
		}
		// What goes over the wire says the same again.
		var again api.Job
		if err := json.Unmarshal([]byte(text(t, got)), &again); err != nil {
			t.Fatal(err)
		}
		if text(t, &again) != text(t, got) {
			t.Fatal("reads back otherwise")
		}
	})
}

func ExampleParse() {
	got, err := jobspec.Parse("job.hcl", []byte("job \"x\" {\n  type = upper(\"batch\")\n  group \"g\" {}\n}\n"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*got.ID, *got.Type, slices.Concat([]string{*got.TaskGroups[0].Name}))
	// Output: x BATCH [g]
}
