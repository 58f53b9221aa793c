package command_test

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
)

// completions are the words that a shell is offered, without what explains them.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	r := pitchpipe(t, append([]string{"__complete"}, args...)...)
	if r.code != command.ExitOK {
		t.Fatalf("completing %v: exit %d, %s", args, r.code, r.errors)
	}
	words := []string{}
	for line := range strings.Lines(r.out) {
		if strings.HasPrefix(line, ":") { // the directive ends it
			break
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words = append(words, word)
	}
	return words
}

func TestJobIDsAreCompletedFromARunningController(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	at := []string{"--socket", c.Config.Socket}
	ended := strings.TrimSpace(ok(t, append([]string{"run", jobFile(t, "short", 1, 0.01)}, at...)...))
	c.Until(t, ended, daemontest.Ended)
	running := strings.TrimSpace(ok(t, append([]string{"run", jobFile(t, "long", 1000, 1)}, at...)...))
	c.Until(t, running, func(j api.Job) bool { return j.State == "running" })
	complete := func(args ...string) string { return strings.Join(completions(t, append(at, args...)...), " ") }
	for _, x := range []struct {
		name string
		args []string
		want string
	}{
		{"any job, the newest first", []string{"explain", ""}, running + " " + ended},
		{"what begins as typed", []string{"explain", ended}, ended},
		{"nothing begins so", []string{"explain", "zzz"}, ""},
		{"one job is enough", []string{"explain", ended, ""}, ""},
		{"several jobs, each once", []string{"status", ended, ""}, running},
		{"only what runs can be stopped", []string{"stop", ""}, running},
		{"only what runs can be switched off", []string{"off", ""}, running},
		{"the scopes of a pause", []string{"pause", ""}, "cluster partition user job"},
		{"a job to pause", []string{"pause", "job", ""}, running},
		{"no job where a user belongs", []string{"pause", "user", ""}, ""},
		{"what a report can be summed over", []string{"report", "--by", ""}, "job user account partition kind day month"},
		{"and what is read of sacct", []string{"report", "--from-sacct", "x", "--by", ""}, "user account kind"},
	} {
		if got := complete(x.args...); got != x.want {
			t.Errorf("%s: %v gives %q, want %q", x.name, x.args, got, x.want)
		}
	}
}

func TestWithoutAControllerNothingIsCompletedAndNothingSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deaf := filepath.Join(dir, "deaf") // accepts and never answers
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", deaf)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was asked of it
	broken := write(t, "broken.yaml", "sockett: /x\n")
	for _, args := range [][]string{
		{"--socket", filepath.Join(dir, "absent")},
		{"--socket", deaf},
		{"--socket", "relative"},
		{"--config", broken},
		{"--config", filepath.Join(dir, "absent.yaml")},
	} {
		for _, cmd := range [][]string{{"explain"}, {"status"}, {"logs"}, {"stop"}, {"off"}, {"search", "best"}, {"search", "plot", "rungs"}} {
			if got := completions(t, slices.Concat(args, cmd, []string{""})...); len(got) != 0 {
				t.Errorf("%v %v: %q", args, cmd, got)
			}
		}
	}
}
