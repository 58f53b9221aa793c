package nomadhcl_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/driver/jobfile/nomadhcl"
)

const knobs = "tuning {\n mode = \"apply\" # how far\n knob \"cores\" { values = [1, 2] }\n}"

// squeeze leaves white space out.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestTuningBlocksAreBlankForTheAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, src, without, group string }{
		{"of a group", with("group: " + knobs), with("group: "), "g"},
		{"of the job", with("job: " + knobs), with("job: "), ""},
		{"beside a scaling block", with("group: " + knobs + "\n scaling { max = 3 }"), with("group:  scaling { max = 3 }"), "g"},
		{"none", with(), with(), ""},
		{"one in a policy", with("group: scaling {\n policy {\n" + knobs + "\n}\n}"), with("group: scaling {\n policy {\n" + knobs + "\n}\n}"), ""},
		{"one in meta", with("job: meta { tuning = \"{}\" }"), with("job: meta { tuning = \"{}\" }"), ""},
		{"a text that looks like one", with("config: args = [<<EOT\ntuning {\n}\nEOT\n]"), with("config: args = [<<EOT\ntuning {\n}\nEOT\n]"), ""},
		{"broken syntax", "job { tuning {}", "job { tuning {}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, group := nomadhcl.ForAgent("job.hcl", []byte(tt.src))
			if squeeze(string(got)) != squeeze(tt.without) || group != tt.group {
				t.Errorf("of the group %q:\n%s", group, got)
			}
		})
	}
}

// TestEveryOtherByteKeepsItsPlace: what the agent complains of is where it says.
func TestEveryOtherByteKeepsItsPlace(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{
		"", "\n", "  # a remark\n", "/* tuning { } */\n", "// ü\r\n", "meta {\n  a = \"${NOMAD_X} tuning { }\"\n}\n",
		"spread {\n}\n", "scaling {\n  max = 1\n  policy { x = 1 }\n}\n", "x = <<EOT\ntuning {\n}\nEOT\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		piece := func(what string) string { return pieces.Draw(t, what) }
		block := "tuning {\n  mode = \"äpply\"\n" + piece("in the block") + "\n}"
		head, tail := piece("head")+"job \"x\" {\n"+piece("job")+"group \"g\" {\n"+piece("group"), " # of it\n"+piece("more")+"task \"t\" {}\n}\n"+piece("tail")+"}\n"
		if strings.Count(head+tail, "x = <<EOT") > 0 && strings.Count(head+tail, "x =") > 2 {
			return // a key twice is broken syntax
		}
		got, _ := nomadhcl.ForAgent("job.hcl", []byte(head+block+tail))
		if string(got) == head+block+tail { // broken by chance
			return
		}
		cut, kept := strings.CutPrefix(string(got), head)
		blank, end := strings.CutSuffix(cut, tail)
		if !kept || !end || strings.TrimSpace(blank) != "" || len(blank) != len(block) || strings.Count(blank, "\n") != strings.Count(block, "\n") {
			t.Fatalf("cut or moved:\n%s\n---\n%s", head+block+tail, got)
		}
	})
}

func TestWhatTheAgentComplainsOfIsNamedInTheUsersFile(t *testing.T) {
	t.Parallel()
	src := with("job: "+knobs, "group: /* ü */ restrt {}", "task: x = 1")
	faults := func(said string) string { return nomadhcl.Faults("job.hcl", []byte(src), said).Error() }
	for _, tt := range []struct{ text, said, want string }{
		{"restrt", `Unsupported block type; Blocks of type "restrt" are not expected here.`, `job.hcl:9:10: unsupported block type; Blocks of type "restrt" are not expected here`},
		{"x = 1", "Unsupported argument; no", "job.hcl:16:1: unsupported argument; no"},
	} {
		before, _, _ := strings.Cut(src, tt.text)
		line := strconv.Itoa(strings.Count(before, "\n") + 1)
		column := strconv.Itoa(len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1)
		said := "Unexpected response code: 400 (1 error:\n* input.hcl:" + line + "," + column + "-99: " + tt.said + "\n)"
		if got := faults(said); got != tt.want {
			t.Errorf("of %q:\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
	if got := faults("Unexpected response code: 400 (input.hcl:3,3-9: A; b (c)?)"); !strings.HasSuffix(got, ": a; b (c)?") {
		t.Errorf("in brackets: %s", got)
	}
	if got := faults("no\n leader"); got != "job.hcl:1:1: Nomad refuses the file: no leader" {
		t.Errorf("without a place: %s", got)
	}
	if got := faults("input.hcl:6,3-9,1: A; b\ninput.hcl:99,3-9: C"); strings.Count(got, "\n") != 1 {
		t.Errorf("two faults: %s", got)
	}
}

func FuzzForAgent(f *testing.F) {
	for _, seed := range []string{with("group: " + knobs), "job {", "tuning {}"} {
		f.Add(seed, "input.hcl:3,5-7: A; b")
	}
	f.Fuzz(func(t *testing.T, src, said string) {
		got, _ := nomadhcl.ForAgent("f", []byte(src))
		if len(got) != len(src) || len(nomadhcl.Faults("f", got, said)) == 0 {
			t.Fatalf("%d bytes of %d", len(got), len(src))
		}
	})
}
