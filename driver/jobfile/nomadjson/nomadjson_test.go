package nomadjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/once"
)

// registered is a job as GET /v1/job returns it, in part; TUNING is the policy, TASK
// more of the task.
const registered = `{"ID":"train","Name":"train","Namespace":"science","Type":"batch","Meta":{"a":"1"},"JobModifyIndex":7,
"TaskGroups":[{"Name":"g","Count":1,"Meta":{"b":"2"},"Scaling":{"Min":1,"Max":1,"Enabled":false,"Policy":TUNING},
"Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":"/bin/train","args":["--epochs",5],"work_dir":"/tmp"},
"Env":{"THREADS":"1"},"Meta":null,"Resources":{"CPU":0,"Cores":4,"MemoryMB":512,"MemoryMaxMB":1024},"Lifecycle":null,"Leader":false}TASK]}]}`

const policy = `{"tuning":[{"mode":"apply","knob":[{"cores":[{"values":[1,2]}]},{"lr":[{"arg":"--lr","min":0.0001,"max":0.1}]}],"budget":[{"probes":4}]}]}`

func with(tuning, task string) string {
	return strings.Replace(strings.Replace(registered, "TUNING", tuning, 1), "TASK", task, 1)
}

func TestARegisteredJobIsTheJobFile(t *testing.T) {
	t.Parallel()
	want, err := nomadhcl.ParseForNomad("train.nomad.hcl", []byte(`
job "train" {
  namespace = "science"
  type      = "batch"
  meta { a = 1 }
  group "g" {
    meta { b = 2 }
    tuning {
      mode = "apply"
      knob "cores" { values = [1, 2] }
      knob "lr" {
        arg = "--lr"
        min = 1e-4
        max = 0.1
      }
      budget { probes = 4 }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command  = "/bin/train"
        args     = ["--epochs", "5"]
        work_dir = "/tmp"
      }
      env { THREADS = 1 }
      resources {
        cores      = 4
        memory     = 512
        memory_max = 1024
      }
    }
  }
}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]string{"as it is": with(policy, ""), "as inspect prints it": `{"Job":` + with(policy, "") + `}`} {
		got, err := nomadjson.Parse("train.json", []byte(src), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(jobfile.Pos{}), cmpopts.IgnoreFields(jobfile.Job{}, "Format"),
			cmpopts.IgnoreFields(jobfile.Value{}, "Text"), cmpopts.SortSlices(func(a, b jobfile.Attr) bool { return a.Name < b.Name }),
			cmpopts.SortSlices(func(a, b *jobfile.Block) bool { return a.Type+a.Label < b.Type+b.Label })); diff != "" {
			t.Errorf("%s (-file +registered):\n%s", name, diff)
		}
	}
}

func TestPlacesAreThePathsThatAUserFinds(t *testing.T) {
	t.Parallel()
	job, err := nomadjson.Parse("train.json", []byte(with(policy, "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range job.Stanza.Blocks {
		for _, a := range b.Attrs {
			got = append(got, a.ValuePos.Filename)
		}
	}
	const at = `train.json group "g" scaling.policy.tuning.`
	want := []string{at + "budget.probes", at + "knob.cores.values", at + "knob.lr.arg", at + "knob.lr.max", at + "knob.lr.min"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWrappedCommandIsReadAsTheOwnerWroteIt(t *testing.T) {
	t.Parallel()
	_, args := once.Wrap("r", "/bin/train", []string{"--epochs", "5"})
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	src := strings.Replace(with(policy, ""), `"command":"/bin/train","args":["--epochs",5]`, `"command":"/bin/sh","args":`+string(text), 1)
	job, err := nomadjson.Parse("f", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin/train", "--epochs", "5"}, job.Argv); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStanzaMayStandInMeta(t *testing.T) {
	t.Parallel()
	for place, src := range map[string]string{
		"meta.tuning":                    strings.Replace(with("null", ""), `"a":"1"`, `"tuning":"{\"mode\":\"apply\"}"`, 1),
		`group "g" meta.tuning`:          strings.Replace(with("null", ""), `"b":"2"`, `"tuning":"{\"mode\":\"apply\"}"`, 1),
		`group "g" task "t" meta.tuning`: strings.Replace(with("null", ""), `"Meta":null`, `"Meta":{"tuning":"{\"mode\":\"apply\"}"}`, 1),
	} {
		job, err := nomadjson.Parse("f", []byte(src), nil)
		if err != nil {
			t.Fatal(err)
		}
		if job.Stanza == nil || len(job.Stanza.Attrs) != 1 || job.Stanza.Attrs[0].Pos.Filename != "f "+place+".mode" {
			t.Errorf("%s: stanza %+v", place, job.Stanza)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	meta := `"a":"1","tuning":"{}"`
	for _, tt := range []struct {
		name, src string
		vars      map[string]string
		want      string
	}{
		{"broken JSON", "{", nil, "f:1:1: broken JSON"},
		{"no object", "3", nil, "f:1:1: broken JSON"},
		{"variables", with(policy, ""), map[string]string{"x": "1"}, `f:1:1: a value for the variable "x"`},
		{"a stanza that is no object", with(`{"tuning":3}`, ""), nil, `f:1:1: group "g" scaling.policy.tuning: the tuning stanza is not an object`},
		{"broken JSON in meta", strings.Replace(with("{}", ""), `"a":"1"`, `"tuning":"{"`, 1), nil, "f:1:1: meta.tuning: broken JSON: unexpected end of JSON input"},
		{"two stanzas", strings.Replace(with(policy, ""), `"a":"1"`, meta, 1), nil, `f:1:1: group "g" scaling.policy.tuning: a second tuning stanza; want one; the first is at meta.tuning`},
		{"a service", strings.Replace(with(policy, ""), `"batch"`, `"service"`, 1), nil, `f:1:1: group "g" scaling.policy.tuning: a tuning stanza of a job of the type "service"`},
		{"two main tasks", with(policy, `,{"Name":"u"}`), nil, `f:1:1: group "g" scaling.policy.tuning: a tuning stanza of a group of 2 main tasks`},
		{"a stanza for no group in particular", strings.Replace(strings.Replace(with("{}", ""), `"a":"1"`, meta, 1), `"TaskGroups":[`, `"TaskGroups":[{"Name":"h"},`, 1), nil, `f:1:1: meta.tuning: a tuning stanza of a job of 2 groups`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := nomadjson.Parse("f", []byte(tt.src), tt.vars)
			if _, ok := errors.AsType[jobfile.Errors](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n%v\nwant one that begins with\n%s", err, tt.want)
			}
		})
	}
}

func TestHelpersAndLeadersAreToldApart(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{
		"a helper": `,{"Name":"u","Config":{"command":"/bin/help"},"Lifecycle":{"Hook":"prestart"}}`,
	} {
		job, err := nomadjson.Parse("f", []byte(with(policy, more)), nil)
		if err != nil || job.Argv[0] != "/bin/train" {
			t.Errorf("%s: %v", name, err)
		}
	}
	job, err := nomadjson.Parse("f", []byte(with(policy, `,{"Name":"u","Leader":true,"Config":{"image":"x"}}`)), nil)
	if err != nil || job.Argv[0] != "x" {
		t.Errorf("a leader: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(with(policy, ""))
	f.Add(`{"TaskGroups":[{"Tasks":[{"Config":{"args":[null,{}]},"Resources":{"Cores":-9e18}}]}]}`)
	f.Add(`{"Job":null}`)
	f.Fuzz(func(t *testing.T, src string) {
		job, err := nomadjson.Parse("f", []byte(src), nil)
		if _, ok := errors.AsType[jobfile.Errors](err); err != nil && !ok {
			t.Fatalf("error %T", err)
		}
		if err == nil && (job.Cores < 1 || job.MemoryBytes < 0 || job.Command == "") {
			t.Fatalf("%+v", job)
		}
	})
}
