package slurmlua_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	if err != nil || len(names) != 3 {
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

// submitted runs one submission and returns what the plugin did, line by line.
func submitted(t *testing.T, lua, file, script string, strange ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lua, append([]string{"testdata/submit.lua", file}, strange...)...)
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

const (
	goodScript = "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\n#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n" +
		"#TUNE knob b env=BATCH values=1,2 default=1\n#TUNE progress pattern='epoch (?P<epoch>\\d+)'\n./train\n"
	badScript = "#!/bin/sh\n#SBATCH -c 2\n#TUNE mod=apply\n#TUNE knob cores values=0 scale=x%s\n./train\n"
)

// TestSubmissions shows what happens to jobs. Each line that is wanted must be there, in its
// kind, as a part, and no others.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const ok, refused = "submit\t0", "submit\t-1"
	sabotage := func(file, before, after string) func(string, string) string {
		return func(name, text string) string {
			if name == file {
				return replace(t, text, before, after)
			}
			return text
		}
	}
	spoil := func(after string) func(string, string) string {
		return sabotage("pitchpipe.lua", "local function read(text)", "local function read(text) "+after)
	}
	good := []string{"field\tadmin_comment=pitchpipe:1:-", "environment\tPITCHPIPE_JOB=2::OMP_NUM_THREADS=#;BATCH=#", ok}
	tests := []struct {
		name, choice, script, strange string
		edit                          func(name, text string) string
		loads                         string // what is logged when it is loaded
		want                          []string
	}{
		{name: "a good stanza is recorded", choice: "reject", script: goodScript, want: good},
		{
			name: "a good stanza is recorded beside what others wrote", choice: "warn", script: goodScript, strange: "commented",
			want: []string{"field\tadmin_comment=site=7 x pitchpipe:1:-", good[1], ok},
		},
		{
			name: "a live knob is marked", choice: "reject", script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob lr live=true values=1,2 default=1\n",
			want: []string{good[0], "environment\tPITCHPIPE_JOB=2:live:", ok},
		},
		{
			name: "a job that is off sets nothing", choice: "reject", script: goodScript, strange: "off",
			want: []string{good[0], "environment\tPITCHPIPE_JOB=2::", ok},
		},
		{
			name: "what only the controller judges is accepted", choice: "reject", script: "#!/bin/sh\n#TUNE knob cores values=0,x default=1\n#TUNE progress pattern='('\n",
			want: []string{good[0], "environment\tPITCHPIPE_JOB=2::", ok},
		},
		{name: "a faulty stanza is refused", choice: "reject", script: badScript, want: []string{
			"user\tpitchpipe: the tuning stanza has faults, the job is not submitted:",
			`user	pitchpipe: line 3, column 7: unknown key "mod" in the tuning stanza; want mode, objective, weight or max_slowdown`,
			`user	pitchpipe: line 4, column 33: scale is "x%s"; want linear, log or pow2`, refused,
		}},
		{name: "a faulty stanza is warned of", choice: "warn", script: badScript, want: []string{"the tuning stanza has faults, the job is submitted and runs untuned:", "line 3", "line 4", ok}},
		{name: "a choice that is none warns", choice: "rejct", script: badScript, want: []string{"runs untuned", "line 3", "line 4", ok}},
		{
			name: "lines behind the first command alone are never a reason to refuse", choice: "reject", script: "#!/bin/sh\ncat >job.sh <<EOF\n#TUNE mode=apply\nEOF\n",
			want: []string{"submitted without these lines", "line 3, column 1: #TUNE behind the first command", ok},
		},
		{
			name: "comments that look like tuning lines are never a reason to refuse", choice: "reject", script: "#!/bin/sh\n# TUNE knob cores values=1\n#Tune mode=observe\n",
			want: []string{"submitted without these lines", "line 2, column 1: a comment that looks like a tuning line", "line 3", ok},
		},
		{
			name: "many faults are cut short", choice: "reject", script: "#!/bin/sh\n" + strings.Repeat("#TUNE mode=\n", 30),
			want: append(slices.Repeat([]string{"user\tpitchpipe: "}, 21), "and 10 more", refused),
		},
		{
			name: "control characters of a user reach no terminal", choice: "reject", script: "#!/bin/sh\n#TUNE a\x1b\u00e9=1\n",
			want: []string{"has faults", `unknown key "a???" in`, refused},
		},
		{name: "a job without a stanza is not touched", choice: "reject", script: "#!/bin/sh\n#SBATCH -c 2\n./train # TUNE\n", strange: "commented", want: []string{ok}},
		{name: "an empty script is not touched", choice: "reject", want: []string{ok}},
		{name: "a job without a script is not touched", choice: "reject", strange: "interactive", want: []string{ok}},
		{
			name: "a script that is too long is left alone", choice: "reject", script: "#!/bin/sh\n#TUNE mod=x\n" + strings.Repeat("#\n", 40000),
			want: []string{"info\tpitchpipe: the script is too long", ok},
		},
		{
			name: "a module that does not compile accepts", choice: "reject", script: goodScript, edit: sabotage("pitchpipe.lua", "local pitchpipe = {}", "local pitchpipe = {"),
			loads: "error\tpitchpipe: jobs are accepted untuned", want: []string{ok},
		},
		{name: "a module that fails while it runs accepts", choice: "reject", script: badScript, edit: spoil("text = nil + 1"), want: []string{"error\tpitchpipe: the job is accepted as it is", ok}},
		{
			name: "a module that is something else accepts", choice: "reject", script: goodScript, edit: sabotage("pitchpipe.lua", "return pitchpipe\n", "return 7\n"),
			want: []string{"accepted as it is", ok},
		},
		{
			name: "a table of keys that is cut short accepts", choice: "reject", script: goodScript, edit: sabotage("pitchpipe_keys.lua", "  blocks = ", "  blinks = "),
			want: []string{"accepted as it is", ok},
		},
		{name: "a loop without an end is left", choice: "reject", script: goodScript, edit: spoil("while true do end"), want: []string{"too much work for one job", ok}},
		{name: "a message that cannot be shown refuses no job", choice: "reject", script: badScript, strange: "mute", want: []string{"error\tpitchpipe: the job is accepted as it is", ok}},
		{name: "an error that cannot be logged refuses no job", choice: "reject", script: badScript, strange: "mute deaf", want: []string{ok}},
		{name: "a job without an environment is not touched", choice: "reject", script: goodScript, strange: "bare", want: []string{"no environment", ok}},
		{
			name: "a job whose environment cannot be set gets its comment back", choice: "reject", script: goodScript, strange: "readonly commented",
			want: []string{"pitchpipe:1:-", "field\tadmin_comment=site=7 pitchpipe:1:{} x", "read-only", ok},
		},
	}
	for _, lua := range interpreters(t) {
		for _, tt := range tests {
			t.Run(filepath.Base(lua)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				got := submitted(t, lua, install(t, tt.choice, tt.edit), tt.script, strings.Fields(tt.strange)...)
				if tt.loads != "" && strings.HasPrefix(got[0], tt.loads) {
					got = got[1:]
				}
				if got[0] != "modify\t0" || len(got) != 1+len(tt.want) {
					t.Fatalf("%q, want %q", got, tt.want)
				}
				for i, part := range tt.want {
					if exact := strings.HasPrefix(part, "environment") || strings.HasPrefix(part, "submit\t"); !strings.Contains(got[1+i], part) || exact && got[1+i] != part {
						t.Errorf("%q, want %q", got[1+i], part)
					}
				}
			})
		}
	}
}

// TestTheWorkIsBounded gives the plugin scripts that are made to keep it busy. While it works
// slurmctld does nothing else; it is left after some 0.1 s of CPU time, and what patterns
// take, which no limit ends, must stay small against that.
func TestTheWorkIsBounded(t *testing.T) {
	t.Parallel()
	const most = 0.5 // seconds of CPU time
	var follows strings.Builder
	for i := range 250 {
		fmt.Fprintf(&follows, "#TUNE knob %s%d live=true follows=%s\n", strings.Repeat("k", 50), i, strings.Repeat("q", 60))
	}
	for _, lua := range interpreters(t) {
		file := install(t, "reject", nil)
		for name, script := range map[string]string{
			"many commands":          "./x\n" + strings.Repeat("echo hello\n", 350000),
			"many unknown keys":      strings.Repeat("#TUNE "+strings.Repeat("kxyzkxyzkxyz=1 ", 500)+"\n", 8),
			"many knobs that follow": follows.String(),
			"many values":            "#TUNE mode=apply\n#TUNE knob x env=X values=" + strings.Repeat("1,", 30000) + "1\n",
			"many points":            "#TUNE mode=apply\n#TUNE knob x env=X values=" + strings.Repeat("1.", 30000) + "\n",
			"many escapes":           "#TUNE mode=\"" + strings.Repeat(`\\`, 30000) + "\n",
			"many quotes":            "#TUNE knob x values=" + strings.Repeat("'',", 20000) + "\n",
			"many blanks":            "#TUNE" + strings.Repeat(" ", 60000) + "x\n",
			"many words of a remark": "# tune" + strings.Repeat(" x", 30000) + "=\n",
			"many late lines":        "#TUNE\n./x\n" + strings.Repeat(" #TUNE\n", 150000),
			"many late words":        "#TUNE\n./x\n" + strings.Repeat("x#TUNE\n", 150000),
			"late blanks":            "#TUNE\n./x\nx" + strings.Repeat(" ", 900000) + "#TUNE\n",
			"late line ends":         "#TUNE\n./x\n" + strings.Repeat("\n", 1000000) + "#TUNE\n",
			"late lines of blanks":   "#TUNE\n./x\n" + strings.Repeat("\n"+strings.Repeat(" ", 1000), 1000),
		} {
			t.Run(filepath.Base(lua)+"/"+name, func(t *testing.T) {
				t.Parallel()
				got := submitted(t, lua, file, "#!/bin/sh\n"+script+"./train\n", "timed")
				text, timed := strings.CutPrefix(got[len(got)-1], "seconds\t")
				if seconds, err := strconv.ParseFloat(text, 64); !timed || err != nil || seconds > most {
					t.Errorf("%q s of CPU time (%v), want at most %v", got, err, most)
				}
			})
		}
	}
}
