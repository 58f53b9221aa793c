package nomadhcl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
)

const knobs = "tuning {\n mode = \"apply\" # how far\n knob \"cores\" { values = [1, 2] }\n}"

func carry(t *testing.T, src string) nomadhcl.Carried {
	t.Helper()
	c, err := nomadhcl.Carry("job.hcl", []byte(src))
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return c
}

func TestATuningBlockIsCarriedIntoTheScalingPolicy(t *testing.T) {
	t.Parallel()
	scaling := func(count string) string {
		return "    scaling {\n      enabled = false\n      min     = " + count + "\n      max     = " + count + "\n      policy {\n        " + knobs + "\n      }\n    }"
	}
	for _, tt := range []struct{ name, src, want string }{
		{"of a group", with("group: " + knobs), with("group: " + strings.TrimPrefix(scaling("1"), "    "))},
		{"of the job", with("job: " + knobs), strings.Replace(with("job: "), "group \"g\" {\n", "group \"g\" {\n"+scaling("1")+"\n", 1)},
		{
			"of a group whose count is a variable", with("group: count = var.n\n" + knobs),
			with("group: count = var.n\n" + strings.TrimPrefix(scaling("var.n"), "    ")),
		},
		{
			"of a group with a scaling block", with("group: " + knobs + "\n    scaling {\n      max = 3\n    }"),
			with("group: \n    scaling {\n      max = 3\n      policy {\n        " + knobs + "\n      }\n    }"),
		},
		{
			"of a group with a policy", with("group: " + knobs + "\n    scaling {\n      max = 3\n      policy {\n        cooldown = \"1m\"\n      }\n    }"),
			with("group: \n    scaling {\n      max = 3\n      policy {\n        cooldown = \"1m\"\n        " + knobs + "\n      }\n    }"),
		},
		{
			"of a group with a policy on one line", with("group: " + knobs + "\n    scaling {\n      max = 3\n      policy { cooldown = \"1m\" }\n    }"),
			with("group: \n    scaling {\n      max = 3\n      policy {\n         cooldown = \"1m\" \n        " + knobs + "\n      }\n    }"),
		},
		{
			"of the job, with an empty policy", with("job: "+knobs, "group:     scaling {\n      max = 3\n      policy {}\n    }"),
			with("job: ", "group:     scaling {\n      max = 3\n      policy {\n        "+knobs+"\n      }\n    }"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := carry(t, tt.src)
			if diff := cmp.Diff(tt.want, string(got.Source)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Group != "g" || got.At.Line == 0 {
				t.Errorf("carried to the group %q from %s", got.Group, got.At)
			}
		})
	}
}

func TestAFileWithoutATuningBlockIsCarriedAsItIs(t *testing.T) {
	t.Parallel()
	for _, src := range []string{with(), with("group: scaling {\n max = 1\n policy {\n" + knobs + "\n}\n}"), with("job: meta { tuning = \"{}\" }"), "", "jobs \"x\" {}\n"} {
		if got := carry(t, src); string(got.Source) != src || got.Group != "" {
			t.Errorf("carried to %q:\n%s", got.Group, got.Source)
		}
	}
}

func TestWhatCannotBeCarriedIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, src, want string }{
		{"a job of two groups", with("job: "+knobs+"\ngroup \"h\" {}", ""), "4:1: a tuning block of a job of 2 groups; want it in the group"},
		{"a job without groups", "job \"a\" {\n" + knobs + "\n}\n", "2:1: a tuning block of a job of 0 groups"},
		{"generated groups", with("job: " + knobs + "\ndynamic \"group\" {}"), "4:1: a tuning block of a job whose groups are generated"},
		{"two blocks", with("job: "+knobs, "group: "+knobs), "9:1: a second tuning stanza; want one; the first is at job.hcl:4:1"},
		{"a block and a policy", with("group: " + knobs + "\nscaling {\npolicy {\ntuning {}\n}\n}"), "12:1: a second tuning stanza; want one; the first is at job.hcl:6:1"},
		{"two scaling blocks", with("group: " + knobs + "\nscaling {}\nscaling {}"), "11:1: a second scaling block in the group; want one; the first is at job.hcl:10:1"},
		{"two policies", with("group: " + knobs + "\nscaling {\npolicy {}\npolicy {}\n}"), "12:1: a second policy"},
		{"a generated scaling block", with("group: " + knobs + "\ndynamic \"scaling\" {}"), "10:1: a scaling block that is generated"},
		{"a generated policy", with("group: " + knobs + "\nscaling {\ndynamic \"policy\" {}\n}"), "11:1: a scaling policy that is generated"},
		{"a policy that is no block", with("group: " + knobs + "\nscaling {\npolicy = {}\n}"), "11:1: a scaling policy that is not a block"},
		{"broken syntax", "job {", "1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := nomadhcl.Carry("job.hcl", []byte(tt.src))
			if _, ok := errors.AsType[jobfile.Errors](err); !ok || !strings.HasPrefix(err.Error(), "job.hcl:"+tt.want) {
				t.Errorf("error\n%v\nwant one that begins with\njob.hcl:%s", err, tt.want)
			}
		})
	}
}

func TestWhatTheAgentComplainsOfIsNamedInTheUsersFile(t *testing.T) {
	t.Parallel()
	c := carry(t, with("job: "+knobs, "group: /* ü */ restrt {}", "task: x = 1"))
	at := func(text string) (line, column int) {
		before, _, _ := strings.Cut(string(c.Source), text)
		return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	}
	for _, tt := range []struct{ text, said, want string }{
		{"restrt", `Unsupported block type; Blocks of type "restrt" are not expected here.`, `job.hcl:9:10: unsupported block type; Blocks of type "restrt" are not expected here`},
		{"x = 1", "Unsupported argument; no", "job.hcl:16:1: unsupported argument; no"},
		{"values", "Bad; no", "job.hcl:6:17: bad; no"},
		{"enabled", "Bad; no", "job.hcl:4:1: bad; no"},
	} {
		line, column := at(tt.text)
		said := "Unexpected response code: 400 (1 error:\n* input.hcl:" + itoa(line) + "," + itoa(column) + "-" + itoa(column+2) + ": " + tt.said + "\n)"
		if got := c.Faults(said).Error(); got != tt.want {
			t.Errorf("of %q:\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
	if got := c.Faults("Unexpected response code: 400 (input.hcl:3,3-9: A; b (c)?)").Error(); !strings.HasSuffix(got, ": a; b (c)?") {
		t.Errorf("in brackets: %s", got)
	}
	if got := c.Faults("no\n leader").Error(); got != "job.hcl:1:1: Nomad refuses the file: no leader" {
		t.Errorf("without a place: %s", got)
	}
	if got := c.Faults("input.hcl:6,3-9,1: A; b\ninput.hcl:99,3-9: C").Error(); strings.Count(got, "\n") != 1 {
		t.Errorf("two faults: %s", got)
	}
}

func itoa(n int) string {
	return strings.TrimSpace(strings.Join([]string{"", string(rune('0' + n/10)), string(rune('0' + n%10))}, ""))
}

// pieces may stand between the parts of a job file.
func pieces() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"", "\n", "  # a remark\n", "/* tuning { } */\n", "// ü\r\n", "meta {\n  a = \"${NOMAD_X} tuning { }\"\n}\n",
		"count = var.n\n", "spread {\n}\n", "scaling {\n  max = 3\n}\n", "scaling { max = 3 }\n", "scaling {}\n",
		"scaling {\n  max = 1\n  policy { x = 1 }\n}\n", "scaling {\n\tpolicy {\n\t\ta {\n\t\t}\n\t}\n}\n", "x = <<EOT\ntuning {\n}\nEOT\n",
	})
}

// TestNothingElseIsCut: what is left of the carried file without the tuning block and
// without the added lines is the user's file without the tuning block.
func TestNothingElseIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := func(what string) string { return pieces().Draw(t, what) }
		head, inJob, inGroup, more, tail := piece("head"), piece("job"), piece("group"), piece("more"), piece("tail")
		block := "tuning {\n  mode = \"apply\"\n" + piece("in the block") + "\n}"
		atJob := rapid.Bool().Draw(t, "at the job")
		src := head + "job \"x\" {\n" + inJob
		if atJob {
			src += " " + block + "\n"
		}
		src += "group \"g\" {" + rapid.SampledFrom([]string{"\n", " # remark\n", "\n\n"}).Draw(t, "line") + inGroup
		if !atJob {
			src += "   " + block + " # of it\n"
		}
		src += more + "task \"t\" {}\n}\n" + tail + "}\n"
		c, err := nomadhcl.Carry("job.hcl", []byte(src))
		if err != nil {
			if strings.Count(src, "scaling") < 2 && strings.Count(src, "x = <<EOT") < 2 && strings.Count(src, "count") < 2 {
				t.Fatalf("%v\n%s", err, src)
			}
			return
		}
		if strings.Count(string(c.Source), block) != strings.Count(src, block) {
			t.Fatalf("the block is not whole:\n%s", c.Source)
		}
		words := func(s string) string {
			s = strings.Replace(s, block, "", 1)
			return strings.Join(strings.Fields(s), " ")
		}
		want, got := words(src), words(string(c.Source))
		for _, added := range []string{
			"scaling { enabled = false min = var.n max = var.n policy { } }", "scaling { enabled = false min = 1 max = 1 policy { } }", "policy { }",
		} {
			if got == want {
				break
			}
			got = strings.Replace(got, added+" ", "", 1)
		}
		if squeeze(got) != squeeze(want) {
			t.Fatalf("cut or added:\n%s\n---\n%s\n--- file\n%s\n--- carried\n%s", want, got, src, c.Source)
		}
		if _, err := nomadhcl.Carry("job.hcl", c.Source); err != nil {
			t.Fatalf("the carried file cannot be read: %v\n%s", err, c.Source)
		}
	})
}

// squeeze leaves white space out: a one-line block is broken into lines.
func squeeze(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestTheStanzaMeansTheSameWhereItIsCarriedTo(t *testing.T) {
	t.Parallel()
	places := cmpopts.IgnoreTypes(jobfile.Pos{})
	for _, src := range []string{
		with("group: " + knobs), with("job: " + knobs), with("job: "+knobs, "group: scaling { max = 3 }"),
		with("group: scaling {\npolicy {}\n}\n" + knobs),
	} {
		was, is := parse(t, src, nil), parse(t, string(carry(t, src).Source), nil)
		if diff := cmp.Diff(was, is, places); diff != "" {
			t.Errorf("(-user's +carried):\n%s", diff)
		}
	}
}

func FuzzCarry(f *testing.F) {
	for _, seed := range []string{with("group: " + knobs), with("job: "+knobs, "group: scaling { max = 3 }"), "job {", "tuning {}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		c, err := nomadhcl.Carry("f", []byte(src))
		if err != nil {
			if _, ok := errors.AsType[jobfile.Errors](err); !ok {
				t.Fatalf("error %T", err)
			}
			return
		}
		again, err := nomadhcl.Carry("f", c.Source)
		if err != nil {
			t.Fatalf("the carried file cannot be read: %v\n%s", err, c.Source)
		}
		if c.Group != "" && again.Group != "" && strings.Count(src, "job") < 2 {
			t.Fatalf("a block was left behind:\n%s", c.Source)
		}
		if faults := c.Faults("input.hcl:3,5-7: A; b"); len(faults) != 1 {
			t.Fatalf("faults %v", faults)
		}
	})
}
