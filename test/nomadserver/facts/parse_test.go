package facts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestParsing(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"a job file is parsed, its variables are resolved and leave no trace", parseFile},
		{"an unknown block is refused with its place", parseUnknownBlock},
		{"an unknown attribute is refused with its place", parseUnknownAttribute},
		{"the body of a scaling policy is free, and blocks come as lists of maps", parsePolicy},
	})
}

const file = `variable "n" {
  default = "2"
}
job "example" {
  type = "batch"
  group "g" {
    count = var.n
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
      resources {
        cores  = 1
        memory = 64
      }
    }
  }
}
`

func parseFile(t *testing.T, c cluster) {
	j, err := c.Jobs().ParseHCLOpts(&api.JobsParseRequest{JobHCL: file, Variables: `n = "3"`, Canonicalize: true})
	if err != nil {
		t.Fatal(err)
	}
	r := task(j).Resources
	if *j.ID != "example" || *j.TaskGroups[0].Count != 3 || *r.Cores != 1 || *r.MemoryMB != 64 || *j.Priority != 50 {
		t.Errorf("%s, count %d, %+v", *j.ID, *j.TaskGroups[0].Count, r)
	}
}

func parseUnknownBlock(t *testing.T, c cluster) {
	_, err := c.Jobs().ParseHCL("job \"example\" {\n  tuning {\n    mode = \"apply\"\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n    }\n  }\n}\n", true)
	refused(t, err, 400, `input.hcl:2,3-9: Unsupported block type; Blocks of type "tuning" are not expected here.`)
}

func parseUnknownAttribute(t *testing.T, c cluster) {
	_, err := c.Jobs().ParseHCL("job \"example\" {\n  group \"g\" {\n    tuning = 1\n    task \"t\" {\n      driver = \"raw_exec\"\n    }\n  }\n}\n", true)
	refused(t, err, 400, `input.hcl:3,5-11: Unsupported argument; An argument named "tuning" is not expected here.`)
}

func parsePolicy(t *testing.T, c cluster) {
	j, err := c.Jobs().ParseHCL(`job "example" {
  type = "batch"
  group "g" {
    scaling {
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
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
`, true)
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
