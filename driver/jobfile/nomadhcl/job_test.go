package nomadhcl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
)

func forNomad(t *testing.T, src string, vars map[string]string) *jobfile.Job {
	t.Helper()
	job, err := nomadhcl.ParseForNomad("job.hcl", []byte(src), vars)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return job
}

func TestWhatOnlyNomadUnderstandsIsLeftToIt(t *testing.T) {
	t.Parallel()
	got := forNomad(t, `
variables {
  image = "x"
}
variable "sizes" {
  type      = list(number)
  default   = [1, 2]
  sensitive = true
  validation {
    condition     = true
    error_message = "no"
  }
}
variable "home" { default = env("HOME") }
locals {
  secret = file("x")
  named  = lookup({ a = "found" }, "a", "no")
}
job "train" {
  type      = "batch"
  namespace = local.secret
  vault {}
  periodic { crons = ["@daily"] }
  group "g" {
    count = 3
    network { mode = "bridge" }
    volume "data" { type = "host" }
    service { name = "x" }
    task "wait" {
      driver = "docker"
      lifecycle { hook = "prestart" }
    }
    task "t" {
      driver = "docker"
      user   = "nobody"
      template { data = "x" }
      artifact { source = "x" }
      config {
        image = var.image
        args  = ["--data", var.home, local.named, "${NOMAD_ALLOC_ID}"]
      }
      env {
        A = local.secret
        B = local.named
      }
      resources {
        cpu    = 500
        memory = local.secret
        device "gpu" {}
      }
    }
    tuning {
      knob "cores" { values = var.sizes }
      knob "x" {
        env    = "X"
        values = range(1, 3)
      }
    }
  }
}
`, map[string]string{"sizes": "[1, 4]"})
	if diff := cmp.Diff([]string{"x", "--data", "${var.home}", "found", "${NOMAD_ALLOC_ID}"}, got.Argv); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Name != "train" || got.Partition != "" || got.Env["B"] != "found" || len(got.Env) != 1 || got.Cores != 1 {
		t.Errorf("read %+v", got)
	}
	var numbers []float64
	for _, b := range got.Stanza.Blocks {
		for _, a := range b.Attrs {
			for _, i := range a.Value.List {
				numbers = append(numbers, i.Value.Number)
			}
		}
	}
	if diff := cmp.Diff([]float64{1, 4, 1, 2}, numbers); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestWhatIsReadForNomadIsWhatIsReadForTheLocalScheduler(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		with(), with("group: " + knobs), with("job: " + knobs), with("group: scaling {\npolicy {\n" + knobs + "\n}\n}"),
		with("job: meta = {\n tuning = jsonencode({ mode = \"apply\" })\n}"), with("task: meta { tuning = \"{}\" }"),
		with("top: locals { t = { mode = \"apply\" } }", "job: meta { tuning = jsonencode(local.t) }"),
		with("config: args = [\"--x\", \"${NOMAD_X}\"]\nwork_dir = \"/tmp\"", "task: resources {\n cores = 2\n memory = 5\n memory_max = 7\n}\nenv { A = 1 }"),
	} {
		if diff := cmp.Diff(parse(t, src, nil), forNomad(t, src, nil)); diff != "" {
			t.Errorf("(-local +Nomad):\n%s\n%s", diff, src)
		}
	}
}

func TestSeveralGroupsAndTasks(t *testing.T) {
	t.Parallel()
	got := forNomad(t, with("job: group \"h\" {\n task \"u\" {}\n}", "group: "+knobs), nil)
	if got.Stanza == nil || len(got.Argv) == 0 || got.Argv[0] != "/bin/train" {
		t.Errorf("read %+v, want the group with the stanza", got)
	}
	if got := forNomad(t, with("group: "+knobs+"\ntask \"u\" {\n leader = true\n config { image = \"y\" }\n}"), nil); got.Argv[0] != "y" {
		t.Errorf("read %+v, want the leader", got)
	}
	if got := forNomad(t, with("job: group \"h\" {}", "group: task \"u\" {}"), nil); got.Stanza != nil {
		t.Errorf("read %+v, want no stanza", got)
	}
}

func TestFaultsForNomad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, src, want string }{
		{"broken syntax", "job {", "1:"},
		{"no job", "", "1:1: 0 jobs"},
		{"a variable without a value", with("top: variable \"x\" {}"), `1:1: the variable "x" has no value and no default; give one with --var x=VALUE`},
		{"a type that is none", with("top: variable \"x\" {\n type = lst(string)\n default = []\n}"), "2:9: invalid type specification"},
		{"a service with a stanza", strings.Replace(with("group: "+knobs), `"batch"`, `"service"`, 1), `6:1: a tuning stanza of a job of the type "service"`},
		{"an id that Nomad takes for a question", strings.Replace(with(), `job "train"`, `job "my/plan"`, 1), `2:5: the job "my/plan": its id ends in /plan, which`},
		{"a stanza of two groups", with("job: " + knobs + "\ngroup \"h\" {}"), "4:1: a tuning stanza of a job of 2 groups"},
		{"a stanza of two main tasks", with("group: " + knobs + "\ntask \"u\" {}"), "6:1: a tuning stanza of a group of 2 main tasks"},
		{"two stanzas", with("job: "+knobs, "group: "+knobs), "9:1: a second tuning stanza"},
		{"a stanza that only the agent can compute", with("group: tuning { mode = file(\"x\") }"), "6:17: call to unknown function"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := nomadhcl.ParseForNomad("job.hcl", []byte(tt.src), nil)
			if _, ok := errors.AsType[jobfile.Errors](err); !ok || !strings.HasPrefix(err.Error(), "job.hcl:"+tt.want) {
				t.Errorf("error\n%v\nwant one that begins with\njob.hcl:%s", err, tt.want)
			}
		})
	}
}

func FuzzParseForNomad(f *testing.F) {
	for _, seed := range []string{with("group: " + knobs), "variables { x = 1 }", "locals { a = local.a }", with("top: variable \"x\" { type = list(string) }")} {
		f.Add(seed, "[1]")
	}
	f.Fuzz(func(t *testing.T, src, value string) {
		for _, vars := range []map[string]string{nil, {"x": value}} {
			_, err := nomadhcl.ParseForNomad("f", []byte(src), vars)
			if _, ok := errors.AsType[jobfile.Errors](err); err != nil && !ok {
				t.Fatalf("error %T", err)
			}
		}
	})
}

func TestTheValuesOfVariablesAreGivenToTheAgentByTheirTypes(t *testing.T) {
	t.Parallel()
	src := with("top: variable \"sizes\" { type = list(number) }\nvariable \"name\" { type = string }\nvariable \"any\" {}\nvariable \"n\" { type = number }")
	got := nomadhcl.VariableFile("job.hcl", []byte(src), map[string]string{"sizes": "[1, 4]", "name": `a "b" ${c} %{d}`, "any": "[x]", "n": "3"})
	want := "any   = \"[x]\"\nn     = \"3\"\nname  = \"a \\\"b\\\" $${c} %%{d}\"\nsizes = [1, 4]\n"
	if squeeze(got) != squeeze(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWhatNomadRunsAndItsDriverLeavesAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ job, group, more, want string }{
		"one copy of one group":    {"", "count = 1", "", ""},
		"several copies":           {"", "count = 3", "", "count = 3"},
		"a count that Nomad knows": {"", `count = env("N")`, "", ""},
		"another group":            {"", "", "group \"b\" {\n task \"t\" {\n driver = \"exec\"\n }\n }", "2 groups"},
		"a periodic job":           {`periodic { crons = ["@daily"] }`, "", "", "a block periodic"},
		"a parameterized job":      {"parameterized {}", "", "", "a block parameterized"},
		"a driver of its own":      {"", "task \"l\" {\n leader = true\n driver = \"java\"\n }", "", "driver = java"},
		"cgroups of its own":       {"", "task \"l\" {\n leader = true\n config { cgroup_v2_override = \"a\" }\n }", "", "cgroup_v2_override"},
		"old cgroups of its own":   {"", "task \"l\" {\n leader = true\n config {\n cgroup_v1_override {}\n }\n }", "", "cgroup_v1_override"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := forNomad(t, "job \"j\" {\n type = \"batch\"\n"+c.job+"\n group \"a\" {\n"+c.group+
				"\n tuning { mode = \"apply\" }\n task \"t\" {\n driver = \"exec\"\n config { command = \"x\" }\n }\n }\n"+c.more+"\n}\n", nil)
			if job.Observed != c.want {
				t.Errorf("observed %q, want %q", job.Observed, c.want)
			}
		})
	}
}
