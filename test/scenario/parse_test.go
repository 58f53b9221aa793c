package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAScriptIsReadLineByLine(t *testing.T) {
	t.Parallel()
	script, err := parseScript("# a comment\n\nsubmit a.sbatch as a off by bob env X=1 # and another\nat 30s pause user bob\nafter 5s stop a\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(script) != 3 || script[0].line != 3 || script[1].at != 30*time.Second || script[2].after != 5*time.Second || script[0].at >= 0 {
		t.Errorf("read %+v", script)
	}
	s, err := parseSubmission(script[0].words)
	if err != nil || s.file != "a.sbatch" || s.job != "a" || s.user != "bob" || !s.off || s.directly || s.env["X"] != "1" {
		t.Errorf("read %+v, error %v", s, err)
	}
}

func TestAScriptWithAFaultIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, want string }{
		{"an unknown command", "dance a", `no command "dance"`},
		{"a time that is none", "at noon stop a", `"noon" is no time`},
		{"a time without a command", "at 30s", "wants a time and a command"},
		{"too few words", "stop", `wants 1 to 1 words`},
		{"a submission without a name", "submit a.sbatch under a", "want submit FILE as JOB"},
		{"a submission with a word too many", "submit a.sbatch as a soon", `does not know "soon"`},
		{"an environment without a value", "submit a.sbatch as a env X", "is no NAME=VALUE"},
		{"waiting for nothing", "wait a till held", "want wait JOB until PHASE"},
		{"a restart of something else", "restart cluster", `cannot restart "cluster"`},
		{"a crash without a phase", "crash controller in probing", "want crash controller at PHASE"},
		{"a crash at a step that is none", "crash controller at probing somewhere", `no step "somewhere"`},
		{"a fault of no operation", "fault reboot transient for 5s", `no operation "reboot"`},
		{"a fault of no kind", "fault get strange for 5s", `no kind of fault "strange"`},
		{"a fault without an end", "fault get transient until 5s", "want fault OP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseScript("stop a\n" + tc.line + "\n")
			if !errors.Is(err, errScript) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("%q: got error %v, want one on line 2 with %q", tc.line, err, tc.want)
			}
		})
	}
}
