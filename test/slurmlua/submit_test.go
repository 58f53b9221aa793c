package slurmlua_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// install copies the plugin into a folder, as an administrator does, and returns the
// job_submit.lua with the folder and the choice filled in. Edit, if given, changes
// the text of one file.
func install(t *testing.T, choice string, edit func(name, text string) string) string {
	t.Helper()
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join(plugin, "*.lua"))
	if err != nil || len(names) < 3 {
		t.Fatalf("%d files of the plugin (%v)", len(names), err)
	}
	for _, path := range names {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, text := filepath.Base(path), string(src)
		if name == "job_submit.lua" {
			text = replace(t, text, `"/etc/slurm/pitchpipe"`, `"`+dir+`"`)
			text = replace(t, text, `local pitchpipe_on_fault = "reject"`, `local pitchpipe_on_fault = "`+choice+`"`)
		}
		if edit != nil {
			text = edit(name, text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "job_submit.lua")
}

// replace replaces what must stand in the text once.
func replace(t *testing.T, text, before, after string) string {
	t.Helper()
	if strings.Count(text, before) != 1 {
		t.Fatalf("%q does not stand there once", before)
	}
	return strings.Replace(text, before, after, 1)
}

// submitted runs one submission and returns what the plugin did, by kind.
func submitted(t *testing.T, lua, file, script string, strange ...string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lua, append([]string{"testdata/submit.lua", file}, strange...)...)
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	did := map[string][]string{}
	for l := range strings.Lines(string(out)) {
		kind, text, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		did[kind] = append(did[kind], text)
	}
	return did
}

const (
	goodScript = "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\n#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n" +
		"#TUNE knob b env=BATCH values=1,2 default=1\n#TUNE progress pattern='epoch (?P<epoch>\\d+)'\n./train\n"
	badScript  = "#!/bin/sh\n#SBATCH -c 2\n#TUNE mod=apply\n#TUNE knob cores values=0,x%s\n./train\n"
	lateScript = "#!/bin/sh\ncat >job.sh <<EOF\n#TUNE mode=apply\nEOF\n"
	noScript   = "#!/bin/sh\n#SBATCH -c 2\n./train # TUNE\n"
)

// TestSubmissions tells what becomes of jobs. Each line that is wanted must be there,
// in its kind, as a part; kinds that are not named must not occur.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const (
		record = `admin_comment=pitchpipe:1:{"mode":"apply","progress":{"pattern":"epoch\u0020(?P<epoch>\\d+)"},"knob":` +
			`{"cores":{"values":["1","2"]},"threads":{"env":"OMP_NUM_THREADS","follows":"cores"},"b":{"env":"BATCH","values":["1","2"],"default":"1"}}}`
		mark = "PITCHPIPE_JOB=2::OMP_NUM_THREADS=#;BATCH=#"
	)
	sabotage := func(file, before, after string) func(string, string) string {
		return func(name, text string) string {
			if name == file {
				return replace(t, text, before, after)
			}
			return text
		}
	}
	tests := []struct {
		name, choice, script string
		edit                 func(name, text string) string
		strange              []string
		want                 map[string][]string
	}{
		{
			"a good stanza is recorded", "reject", goodScript, nil, nil,
			map[string][]string{"submit": {"0"}, "field": {record}, "environment": {mark}},
		},
		{
			"a good stanza is recorded beside what others wrote", "warn", goodScript, nil,
			[]string{"commented"},
			map[string][]string{"submit": {"0"}, "field": {"admin_comment=site=7 x pitchpipe:1:{"}, "environment": {mark}},
		},
		{
			"a live knob is marked", "reject", "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob lr live=true values=1,2 default=1\n", nil, nil,
			map[string][]string{"submit": {"0"}, "field": {`"knob":{"lr":{"live":"true","values":["1","2"],"default":"1"}}`}, "environment": {"PITCHPIPE_JOB=2:live:"}},
		},
		{
			"a long stanza is marked and not recorded", "reject", "#!/bin/sh\n#TUNE checkpoint exit=1 done='" + strings.Repeat("x", 5000) + "'\n", nil, nil,
			map[string][]string{"submit": {"0"}, "field": {"admin_comment=pitchpipe:1:-"}, "environment": {"PITCHPIPE_JOB=2::"}},
		},
		{
			"a faulty stanza is refused", "reject", badScript, nil, nil,
			map[string][]string{"submit": {"-1"}, "user": {
				"pitchpipe: 3 faults in the tuning stanza, the job is not submitted:",
				`pitchpipe: line 3, column 7: unknown key "mod" in the tuning stanza; want mode, objective, weight or max_slowdown; did you mean "mode"?`,
				`pitchpipe: line 4, column 25: a value of cores is "0"; want whole numbers of at least 1`,
				`pitchpipe: line 4, column 27: a value of cores is "x%s"; want whole numbers of at least 1`,
			}},
		},
		{
			"a faulty stanza is warned of", "warn", badScript, nil, nil,
			map[string][]string{"submit": {"0"}, "user": {"3 faults in the tuning stanza, the job is submitted and runs untuned", "line 3", "line 4", "line 4"}},
		},
		{
			"a choice that is none warns", "rejct", badScript, nil, nil,
			map[string][]string{"submit": {"0"}, "user": {"runs untuned", "line 3", "line 4", "line 4"}},
		},
		{
			"lines behind the first command alone are never a reason to refuse", "reject", lateScript, nil, nil,
			map[string][]string{"submit": {"0"}, "user": {"runs untuned", "line 3, column 1: #TUNE behind the first command"}},
		},
		{
			"many faults are cut short", "reject", "#!/bin/sh\n" + strings.Repeat("#TUNE mode=\n", 30), nil, nil,
			map[string][]string{"submit": {"-1"}, "user": append(slices.Repeat([]string{"pitchpipe: "}, 21), "and 10 more")},
		},
		{"a job without a stanza is not touched", "reject", noScript, nil, []string{"commented"}, map[string][]string{"submit": {"0"}}},
		{"an empty script is not touched", "reject", "", nil, nil, map[string][]string{"submit": {"0"}}},
		{"a job without a script is not touched", "reject", "", nil, []string{"interactive"}, map[string][]string{"submit": {"0"}}},
		{
			"a script that is too long is left alone", "reject", "#!/bin/sh\n#TUNE mod=x\n" + strings.Repeat("#\n", 40000), nil, nil,
			map[string][]string{"submit": {"0"}, "info": {"too long to be judged"}},
		},
		{
			"a module that does not compile accepts", "reject", goodScript, sabotage("pitchpipe_judge.lua", "local judge = {}", "local judge = {"), nil,
			map[string][]string{"submit": {"0"}, "error": {"jobs are accepted untuned"}},
		},
		{
			"a module that fails while it runs accepts", "reject", badScript, sabotage("pitchpipe_script.lua", "function script.read(text)", "function script.read(text) text = nil + 1"), nil,
			map[string][]string{"submit": {"0"}, "error": {"accepted as it is"}},
		},
		{
			"a module that is something else accepts", "reject", goodScript, sabotage("pitchpipe.lua", "return pitchpipe\n", "return 7\n"), nil,
			map[string][]string{"submit": {"0"}, "error": {"accepted as it is"}},
		},
		{
			"a table of keys that is cut short accepts", "reject", goodScript, sabotage("pitchpipe_keys.lua", "  blocks = ", "  blinks = "), nil,
			map[string][]string{"submit": {"0"}, "error": {"accepted as it is"}},
		},
		{
			"a loop without an end is left", "reject", goodScript, sabotage("pitchpipe_script.lua", "function script.read(text)", "function script.read(text) while true do end"), nil,
			map[string][]string{"submit": {"0"}, "error": {"too much work for one job"}},
		},
		{
			"a message that cannot be shown refuses nobody", "reject", badScript, nil,
			[]string{"mute"},
			map[string][]string{"submit": {"0"}, "error": {"log_user is out of order"}},
		},
		{
			"an error that cannot be logged refuses nobody", "reject", badScript, nil,
			[]string{"mute", "deaf"},
			map[string][]string{"submit": {"0"}},
		},
		{
			"a job without an environment is not touched", "reject", goodScript, nil,
			[]string{"bare"},
			map[string][]string{"submit": {"0"}, "error": {"no environment"}},
		},
		{
			"a job whose environment cannot be set gets its comment back", "reject", goodScript, nil,
			[]string{"readonly", "commented"},
			map[string][]string{"submit": {"0"}, "error": {"read-only"}, "field": {"pitchpipe:1:{\"mode\"", "admin_comment=site=7 pitchpipe:1:{} x"}},
		},
	}
	for _, lua := range interpreters(t) {
		for _, tt := range tests {
			t.Run(filepath.Base(lua)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				got := submitted(t, lua, install(t, tt.choice, tt.edit), tt.script, tt.strange...)
				want := maps.Clone(tt.want)
				want["modify"] = []string{"0"}
				for kind, lines := range got {
					if len(lines) != len(want[kind]) {
						t.Errorf("%s: %q, want %d", kind, lines, len(want[kind]))
						continue
					}
					for i, part := range want[kind] {
						if !strings.Contains(lines[i], part) || kind == "submit" && lines[i] != part {
							t.Errorf("%s: %q, want %q", kind, lines[i], part)
						}
					}
				}
				for kind := range want {
					if got[kind] == nil {
						t.Errorf("%s: nothing, want %q", kind, want[kind])
					}
				}
			})
		}
	}
}
