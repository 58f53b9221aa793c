package facts_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestParsing(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"a job file is parsed, its variables are resolved and leave no trace", parseFile, both},
		{"the body of a scaling policy is free, and blocks come as lists of maps", parsePolicy, both},
		{"a file with most of what a batch job can have is parsed to the job in testdata", parsesTo("batch", "list = [\"a\", \"b\"]"), both},
		{"a file of a periodic job is parsed to the job in testdata", parsesTo("periodic", ""), both},
		{"an unknown block is refused with its place", refuses("a tuning block"), both},
		{"an unknown attribute is refused with its place", refuses("an unknown attribute"), both},
		{"any other fault is refused with its place", refuses(""), both},
	})
}

// file is a job file; faults replaces the comments in it.
const file = `#top
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

func with(place string) string {
	where, text, _ := strings.Cut(place, ": ")
	return strings.Replace(file, "#"+where+"\n", text+"\n", 1)
}

// faults are job files with what an agent says about them.
func faults() map[string][2]string {
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
		"a job without a name":              {"job {}\n", `input.hcl:1,5-6: Missing name for job; All job blocks must have 1 labels (name).`},
		"a variable that is not set":        {with("top: variable \"x\" {}"), `<nil>: Unset variable "x"; A used variable must be set or have a default value; see https://developer.hashicorp.com/nomad/docs/reference/hcl2/variables  for details.`},
		"a variable that is not declared":   {with("job: meta {\n x = var.none\n}"), `input.hcl:5,9-14: Unsupported attribute; This object does not have an attribute named "none".` + "\ninput.hcl:5,6-14: Unsuitable value type; Unsuitable value: value must be known"},
		"two restart blocks":                {with("group: restart {}\nrestart {}"), `input.hcl:7,1-8: Duplicate restart block; Only one restart block is allowed. Another was defined at input.hcl:6,1-8.`},
		"scaling without max":               {with("group: scaling {\n}"), `input.hcl:6,9-9: Missing required argument; The argument "max" is required, but no definition was found.`},
		"a lifecycle without hook":          {with("task: lifecycle {}"), `input.hcl:13,11-11: Missing required argument; The argument "hook" is required, but no definition was found.`},
		"a function that does not exist":    {with("job: meta {\n x = nothing(1)\n}"), `input.hcl:5,6-13: Call to unknown function; There is no function named "nothing".` + "\ninput.hcl:5,6-14: Unsuitable value type; Unsuitable value: value must be known"},
		"a default that is not of its type": {with("top: variable \"x\" {\n type = number\n default = \"a\"\n}"), `input.hcl:3,12-15: Invalid default value for variable; This default value is not compatible with the variable's type constraint: a number is required.`},
		"a group without a name":            {with("end: group {}"), `input.hcl:20,7-8: Missing name for group; All group blocks must have 1 labels (name).`},
		"a list where a text is":            {with("task: user = [1]"), `input.hcl:13,8-9: Unsuitable value type; Unsuitable value: string required, but have tuple`},
		"broken syntax":                     {"job \"x\" {\n", `input.hcl:1,9-10: Unclosed configuration block; There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file.`},
		"restart at the job":                {with("job: restart {}"), `input.hcl:4,1-8: Unsupported block type; Blocks of type "restart" are not expected here.`},
	}
}

// refuses proves the faults whose names begin so; "" means those that no other fact has.
func refuses(prefix string) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) {
		for name, f := range faults() {
			of := prefix
			if prefix == "" && (strings.HasPrefix(name, "a tuning block") || strings.HasPrefix(name, "an unknown attribute")) {
				of = "-"
			}
			if !strings.HasPrefix(name, of) {
				continue
			}
			_, err := c.Jobs().ParseHCL(f[0], false)
			if err == nil {
				t.Errorf("%s: accepted", name)
				continue
			}
			said := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "Unexpected response code: 400 (Failed to parse job: "), ")")
			if diff := cmp.Diff(f[1], said); diff != "" {
				t.Errorf("%s (-want +got)\n%s\n%s", name, diff, f[0])
			}
		}
	}
}

func parseFile(t *testing.T, c cluster) {
	src := strings.Replace(with("group: count = var.n"), "#top", "variable \"n\" {\n  default = \"2\"\n}", 1)
	j, err := c.Jobs().ParseHCLOpts(&api.JobsParseRequest{JobHCL: src, Variables: `n = "3"`, Canonicalize: true})
	if err != nil {
		t.Fatal(err)
	}
	if *j.ID != "train" || *j.TaskGroups[0].Count != 3 || *task(j).Resources.MemoryMB != 64 || *j.Priority != 50 {
		t.Errorf("%s, count %d, %+v", *j.ID, *j.TaskGroups[0].Count, task(j).Resources)
	}
}

// parsesTo proves that a file of testdata is the job next to it.
func parsesTo(name, variables string) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) {
		src, err := os.ReadFile("testdata/" + name + ".hcl")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		j, err := c.Jobs().ParseHCLOpts(&api.JobsParseRequest{JobHCL: string(src), Variables: variables})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(j, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func parsePolicy(t *testing.T, c cluster) {
	j, err := c.Jobs().ParseHCL(with(`group:     scaling {
      enabled = false
      min     = 1
      max     = 1
      policy {
        tuning {
          mode = "apply"
          knob "cores" {
            values = [1, 2]
          }
        }
      }
    }`), true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"tuning": []any{map[string]any{
		"mode": "apply", "knob": []any{map[string]any{"cores": []any{map[string]any{"values": []any{1.0, 2.0}}}}},
	}}}
	if diff := cmp.Diff(want, j.TaskGroups[0].Scaling.Policy); diff != "" {
		t.Error(diff)
	}
}
