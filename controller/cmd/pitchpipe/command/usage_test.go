package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
)

func TestWrongCommandLinesExitWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	absent, present := filepath.Join(t.TempDir(), "absent"), jobFile(t, "present", 1, 0.01)
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a command that does not exist", []string{"dance"}, `unknown command "dance"`},
		{"a command that is misspelt", []string{"stauts"}, "status"},
		{"a flag that does not exist", []string{"status", "--colour"}, "--colour"},
		{"a flag of the root that does not exist", []string{"--colour"}, "--colour"},
		{"a flag without its value", []string{"run", "x", "--dir"}, "--dir"},
		{"a value of the wrong kind", []string{"status", "--watch=perhaps"}, "perhaps"},
		{"too few arguments", []string{"explain"}, "1 arg"},
		{"too many arguments", []string{"explain", "1", "2"}, "1 arg"},
		{"no file to validate", []string{"validate"}, "1 arg"},
		{"arguments where none belong", []string{"knowledge", "x"}, `"x"`},
		{"a key that does not exist", []string{"config", "colour"}, `"colour"`},
		{"a configuration key with a wrong value", []string{"status", "--resync=never"}, "resync"},
		{"a configuration file that is not there", []string{"status", "--config", absent}, "absent"},
		{"a socket with a path that is too long", []string{"status", "--socket=/" + strings.Repeat("x", 107)}, "absolute"},
		{"a variable without a value", []string{"run", absent, "--var", "x"}, "name=value"},
		{"an environment without a name", []string{"run", absent, "--env", "=x"}, "name=value"},
		{"a job file that is not there", []string{"run", absent}, "absent"},
		{"a folder of a job that is not there", []string{"run", present, "--dir", absent}, "--dir " + absent + ": want a folder that exists"},
		{"a folder of a search that is a file", []string{"search", "run", present, "--dir", present}, "--dir " + present + ": want a folder that exists"},
		{"a scope that is incomplete", []string{"pause", "user"}, "user NAME"},
		{"a cluster with a name", []string{"resume", "cluster", "x"}, "cluster"},
		{"a sum over what nothing is summed over", []string{"report", "--by", "planet"}, "want one of job, user"},
		{"a period that is none", []string{"report", "--since", "soon"}, "want a time"},
		{"a period that is too long", []string{"report", "--since", "99999d"}, "at most 146 years"},
		{"a period without its unit", []string{"report", "--since", "30"}, "such as 12h or 30d"},
		{"a state that no job has", []string{"status", "--state", "running,idle"}, `"idle": want some of pending, running`},
		{"a search command that does not exist", []string{"search", "statsu"}, `"statsu"`},
		{"a report in two forms", []string{"report", "--csv", "--json"}, "exclude"},
		{"a search of a file that is not there", []string{"search", "run", absent}, "absent"},
		{"a plot without its kind", []string{"search", "plot", "-o", "x.svg"}, "want pitchpipe search plot KIND [SEARCH] -o FILE"},
		{"a plot of nothing that is drawn", []string{"search", "plot", "pie", "-o", "x.svg"}, "want one of best-time"},
		{"a plot in no format", []string{"search", "plot", "rungs", "-o", "x.pdf"}, "ends in .svg or .png"},
		{"an export in no format", []string{"search", "export", "--format", "xml"}, "want csv or json"},
		{"searches too many", []string{"search", "best", "1", "2"}, "1 arg"},
		{"a log in no format", []string{"simulate", absent, "--format", "xml"}, "want one of [swf sacct venus csv]"},
		{"a log that is not there", []string{"simulate", absent, "--format", "swf"}, "absent"},
		{"a policy that does not exist", []string{"simulate", absent, "--format", "swf", "--policy", "luck"}, "want some of fifo"},
		{"an accounting that is not there", []string{"whatif", "--from-sacct", absent}, "absent"},
		{"memory in no unit", []string{"whatif", "--from-sacct", absent, "--memory-per-node", "much"}, "--memory-per-node"},
		{"memory without a unit", []string{"whatif", "--from-sacct", absent, "--memory-per-node", "128"}, `"128" is 128 bytes: want`},
		{"nodes of unknown size", []string{"whatif", "--from-sacct", absent, "--nodes", "4"}, "want --cores-per-node too"},
		{"fewer than no nodes", []string{"whatif", "--from-sacct", absent, "--nodes", "-4", "--cores-per-node", "8"}, "--nodes -4: want 1 or more"},
		{"a request id that is empty", []string{"run", absent, "--request="}, "want an id"},
		{"a request id of a search that is empty", []string{"search", "run", absent, "--request="}, "want an id"},
		{"a pattern that is no regular expression", []string{"listen", "--pattern", "(", "--file", absent}, "pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, c.args...)
			if r.code != command.ExitInvalid || r.out != "" {
				t.Errorf("exit %d, output %q; want %d and none", r.code, r.out, command.ExitInvalid)
			}
			if strings.Count(r.errors, "\n") != 1 || !strings.HasPrefix(r.errors, "pitchpipe: invalid ") || !strings.Contains(r.errors, c.says) {
				t.Errorf("errors %q; want one line with %q", r.errors, c.says)
			}
		})
	}
}

func TestAConfigurationWithErrorsExitsWithTwoAndNamesEach(t *testing.T) {
	t.Parallel()
	path := write(t, "pitchpipe.yaml", "resync: never\nsockett: /run/x\n")
	r := pitchpipe(t, "status", "--config", path)
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "pitchpipe.yaml:1:") || !strings.Contains(r.errors, "pitchpipe.yaml:2:") {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
	for line := range strings.Lines(r.errors) {
		if !strings.HasPrefix(line, "pitchpipe: ") {
			t.Errorf("line %q does not say whose it is", line)
		}
	}
	// What needs no controller needs no configuration either.
	good := jobFile(t, "job", 2, 0.1, "#TUNE mode=observe")
	ok(t, "validate", good, "--config", path)
	ok(t, "completion", "bash", "--config", path)
}

func TestASitePolicyWithErrorsStopsTheController(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site := write(t, "site.yaml", "default:\n  max_mood: apply\n")
	r := pitchpipe(t, "controller", "--site", site, "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s"), "--listen=")
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "max_mood") {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
	job := jobFile(t, "job", 2, 0.1, "#TUNE mode=observe")
	if r = pitchpipe(t, "validate", job, "--site", site); r.code != command.ExitInvalid || !strings.Contains(r.errors, "invalid site policy: "+site+":2:3: ") {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
	if r = pitchpipe(t, "validate", job, "--site", write(t, "good.yaml", "default: {max_mode: apply}")); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
}

func TestAPathThatTheControllerCannotUseIsToldWithItsSetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site := filepath.Join(dir, "etc", "pitchpipe", "site.yaml")
	path := write(t, "pitchpipe.yaml", "listen: \"\"\nsite: "+site+"\n")
	r := pitchpipe(t, "controller", "--config", path, "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s"))
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "pitchpipe.yaml:2:7: site: ") || !strings.Contains(r.errors, site) ||
		!strings.Contains(r.errors, "the folder "+filepath.Join(dir, "etc")+" does not exist") {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
	file := write(t, "plain", "")
	r = pitchpipe(t, "controller", "--listen=", "--site=", "--state", filepath.Join(file, "state"), "--socket", filepath.Join(dir, "s"))
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "--state: state: ") || !strings.Contains(r.errors, "not a directory") {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
}

func TestAControllerThatIsNotThereExitsWithThree(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "absent")
	file := jobFile(t, "job", 2, 0.1)
	for _, args := range [][]string{
		{"run", file},
		{"run", file, "--wait"},
		{"status"},
		{"status", "7"},
		{"status", "--watch"},
		{"explain", "7"},
		{"history"},
		{"knowledge"},
		{"knowledge", "--raw"},
		{"report"},
		{"pause"},
		{"pause", "--list"},
		{"resume"},
		{"off", "7"},
		{"stop", "7"},
		{"logs", "7"},
		{"search", "run", searchFile(t, 1)},
		{"search", "status"},
		{"search", "status", "x", "--watch"},
		{"search", "results"},
		{"search", "best"},
		{"search", "importance"},
		{"search", "export"},
		{"search", "plot", "rungs", "-o", filepath.Join(t.TempDir(), "x.svg")},
		{"search", "stop"},
		{"search", "resume"},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			r := pitchpipe(t, append(append(args, "--socket", socket), more...)...)
			if r.code != command.ExitUnavailable || r.out != "" || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, socket) {
				t.Errorf("%v: exit %d, output %q, errors %q", args, r.code, r.out, r.errors)
			}
		}
	}
}

func TestVersionHelpAndCompletion(t *testing.T) {
	t.Parallel()
	if got := ok(t, "--version"); got != "pitchpipe version 1.2.3-test\n" {
		t.Errorf("version %q", got)
	}
	if got := ok(t, "version"); got != "pitchpipe version 1.2.3-test\n" {
		t.Errorf("version %q", got)
	}
	help := ok(t, "--help")
	for _, want := range []string{"controller", "explain", "demo", "--config", "--json"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help does not have %q", want)
		}
	}
	if topic := ok(t, "help", "exit-status"); !strings.Contains(topic, "there is no such job") {
		t.Errorf("help exit-status: %q", topic)
	}
	if strings.Contains(ok(t, "status", "--help"), "--slurm.") || !strings.Contains(ok(t, "controller", "--help"), "--slurm.mode") ||
		strings.Contains(ok(t, "broker", "--help"), "--nomad.") || !strings.Contains(ok(t, "broker", "--help"), "--broker.dir") {
		t.Error("a command shows flags of another, or not its own")
	}
	if strings.Contains(help, "supervise") {
		t.Error("the help shows what only the scheduler starts")
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if script := ok(t, "completion", shell); !strings.Contains(script, "pitchpipe") || len(script) < 1000 {
			t.Errorf("completion for %s: %.100q", shell, script)
		}
	}
	if r := pitchpipe(t, "__complete", "sta"); r.code != command.ExitOK || !strings.Contains(r.out, "status") {
		t.Errorf("completing sta: exit %d, %q", r.code, r.out)
	}
}

func TestTheConfigurationInEffectNamesItsSources(t *testing.T) {
	t.Parallel()
	path := write(t, "pitchpipe.yaml", "resync: 5s\nlog:\n  level: warn\n")
	text := ok(t, "config", "resync", "log.level", "log.format", "driver", "--config", path, "--driver", "slurm")
	want := []string{"KEY VALUE SOURCE", "driver slurm --driver", "log.level warn " + path + ":3:10", "log.format text default", "resync 5s " + path + ":1:9"}
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("config printed %q, want %q", got, want)
	}
	var all []struct{ Key, Value, Source string }
	if decoded(t, &all, "config", "--config", path); len(all) < 50 {
		t.Errorf("config --json has %d keys", len(all))
	}
	if got := completions(t, "config", "log."); !slices.Contains(got, "log.level") {
		t.Errorf("completing a key: %q", got)
	}
}

func TestARelativePathOnTheCommandLineCountsFromHere(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if text := ok(t, "config", "site", "--site", "site.yaml"); !strings.Contains(text, filepath.Join(here, "site.yaml")) {
		t.Errorf("config printed %q", text)
	}
}
