package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/detect"
)

// searchPage is jobspecs/SEARCH.md with the text between fences, by language.
func searchPage(t *testing.T) (page string, code map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../jobspecs/SEARCH.md")
	if err != nil {
		t.Fatal(err)
	}
	code = map[string]string{}
	for _, m := range regexp.MustCompile("(?s)\n```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		code[m[1]] = m[2]
	}
	if len(code) != 3 {
		t.Fatalf("the page shows %d files, want a program and two job files", len(code))
	}
	return string(text), code
}

// shorter replaces each text by another, and fails where one is not there.
func shorter(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in\n%s", pairs[i], text)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// The commands of the page run unchanged, on fewer and shorter trials. Without PyTorch a few lines of shell train.
func TestTheSearchOfThePageRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks: make check runs it")
	}
	t.Parallel()
	progs := build(t)
	page, code := searchPage(t)
	program, file := shorter(t, code["python"], ", 16, 18\n", ", 4, 3\n"), shorter(t, code["sh"], "trials=18", "trials=3", "epochs=18", "epochs=3 min_epochs=1")
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import torch, sklearn.datasets").CombinedOutput(); err != nil {
		t.Logf("without PyTorch: %v: %.200s", err, out)
		file = shorter(t, file, "exec /usr/bin/python3 train.py", `d=${PITCHPIPE_TRIAL_DIR:-.}; mkdir -p $d
for e in 1 2 3; do sleep 0.5; echo $e >$d/model.pt; echo "epoch $e/3 loss 1 acc 0.$BATCH"; done`)
	} else {
		t.Run("the program is an ordinary one without the lines of the search", func(t *testing.T) {
			t.Parallel()
			plain := regexp.MustCompile(`(?m)^.* # \+\n`).ReplaceAllString(program, "")
			out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", plain).CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "accuracy 0.") || strings.Contains(plain, "PITCHPIPE") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for name, text := range map[string]string{"train.py": program, "train.sbatch": file, "site.yaml": site} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := block(t, page, "With an exporter and a controller on this machine, as in [README.md](../README.md):")
	commands = shorter(t, commands, "--trials 20", "--trials 4", "pitchpipe search best -o best.sbatch", "pitchpipe search best -o best.sbatch >&3")
	out := alone(t, progs, dir, `
		pitchpipe-exporter &
		pitchpipe controller --site site.yaml &
		for i in $(seq 600); do [ -S /run/pitchpipe/controller.sock ] && break; sleep 0.1; done
		`+commands+` >&3
		pitchpipe validate best.sbatch`)
	m := regexp.MustCompile(`(?m)^best    quality 0\.\d+ in trial \d+ .*\nfolder  (.*)\nnext    pitchpipe run best.sbatch$`).FindStringSubmatch(out)
	if m == nil || !strings.Contains(out, "is over: all 4 trials ended") {
		t.Fatalf("the best trial is not shown, or not all have ended:\n%s", out)
	}
	for _, name := range []string{filepath.Join(m[1], "model.pt"), filepath.Join(dir, "model.pt"), filepath.Join(dir, "rungs.svg")} {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThePreviewIsThatOfTheSearchPage(t *testing.T) {
	t.Parallel()
	page, code := searchPage(t)
	file := filepath.Join(t.TempDir(), "train.sbatch")
	if err := os.WriteFile(file, []byte(code["sh"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(build(t).dir, "pitchpipe"), "search", "preview", file, "--socket", file+".sock").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown := "`preview` says what the search will use; where an epoch was measured before, its time, joules and core-hours too:"
	for line := range strings.SplitSeq(block(t, page, shown), "\n") {
		if !strings.Contains(string(out), line) {
			t.Errorf("the page shows %q, and preview says\n%s", line, out)
		}
	}
}

func TestTheStanzasOfTheSearchPageAreUnderstood(t *testing.T) {
	t.Parallel()
	page, code := searchPage(t)
	policy := func(name, text string) (p tuning.Policy) {
		t.Helper()
		file, err := detect.Parse(name, []byte(text), nil)
		if err == nil {
			p, err = stanza.Policy(file)
		}
		if err != nil {
			t.Errorf("%s:\n%s\n%v", name, text, err)
		}
		return p
	}
	plain := policy("train.sbatch", code["sh"])
	nomad := policy("train.nomad.hcl", `job "train" {
	type = "batch"
	group "work" {
		tuning {
			search { epochs = 18 }
			progress { pattern = "(?P<epoch>.)(?P<loss>.)" }
			`+code["hcl"]+`
		}
		task "train" {
			driver = "raw_exec"
			config { command = "python3" }
		}
	}
}
`)
	a, _ := plain.Knob("lr")
	if b, ok := nomad.Knob("lr"); !ok || a.Env != b.Env || a.Min != b.Min || a.Max != b.Max || a.Scale != b.Scale {
		t.Errorf("the knob is %+v in one job file and %+v in the other", a, b)
	}
	rows := 0
	for row := range strings.SplitSeq(page, "\n") {
		lines := regexp.MustCompile("#TUNE [^`]*").FindAllString(row, -1)
		if !strings.HasPrefix(row, "| ") || len(lines) == 0 {
			continue
		}
		rows++
		p := policy("train.sbatch", shorter(t, code["sh"], "#TUNE mode=apply\n", "#TUNE mode=apply\n"+strings.Join(lines, "\n")+"\n"))
		if reflect.DeepEqual(p, plain) {
			t.Errorf("%q changes nothing", lines)
		}
	}
	if rows != 6 {
		t.Errorf("%d aims have lines of a stanza", rows)
	}
}
