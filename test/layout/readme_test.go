package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/stanza"
	"pitchpipe/driver/jobfile/detect"
)

// pages are what a newcomer reads first.
func pages() []string { return []string{"README.md", "CONTRIBUTING.md", "jobspecs/SEARCH.md"} }

// stanzas are the blocks of adjacent #TUNE lines on a page, with the line where
// each begins.
func stanzas(text string) map[int]string {
	out := map[int]string{}
	at := 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#TUNE") {
			at = 0
			continue
		}
		if at == 0 {
			at = i + 1
		}
		out[at] += line + "\n"
	}
	return out
}

// understood returns what is wrong with a stanza in a job file.
func understood(lines string) error {
	job, err := detect.Parse("job.sbatch", []byte("#!/bin/sh\n#SBATCH --job-name=job\n#SBATCH --cpus-per-task=1\n"+lines+"exec ./program\n"), nil)
	if err != nil {
		return err
	}
	_, err = stanza.Policy(job)
	return err
}

func TestTheStanzasOfThePagesAreUnderstood(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages() {
		text, _ := read(t, page)
		for line, lines := range stanzas(text) {
			found++
			if err := understood(lines); err != nil {
				t.Errorf("%s:%d: the stanza has errors: %v", page, line, err)
			}
		}
	}
	if found == 0 {
		t.Error("no page shows a stanza")
	}
	if understood("#TUNE mode=always\n") == nil {
		t.Error("a stanza with an error was accepted: this test sees nothing")
	}
}

// commandLine is one use of the program on the page.
type commandLine struct {
	line int
	text string
}

// commandLines are the uses of the program: in indented code, with its remark,
// and between backticks. What a page says does not exist yet is left out.
func commandLines(text string) (out []commandLine) {
	inline := regexp.MustCompile("`(?:bin/)?(pitchpipe(?: [^`]*)?)`")
	code := regexp.MustCompile(`^ {4,}(?:\$ )?(?:sudo )?(?:bin/)?(pitchpipe(?: .*)?)$`)
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "do not exist yet") || strings.Contains(line, "does not exist yet") {
			continue
		}
		if m := code.FindStringSubmatch(line); m != nil {
			out = append(out, commandLine{i + 1, m[1]})
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			out = append(out, commandLine{i + 1, m[1]})
		}
	}
	return out
}

// unknown tells what of a command line the program does not have, or nothing.
func unknown(t *testing.T, text string) string {
	t.Helper()
	words, first := strings.Fields(text), regexp.MustCompile(`^[a-z]+$`)
	group := regexp.MustCompile(`(?m)^  [a-z]+ +[A-Z]`) // help lists its commands, and it takes no argument
	most := 1
	for most < min(3, len(words)) && first.MatchString(words[most]) {
		most++
	}
	var name string
	var help, said strings.Builder
	for n := most; ; n-- { // the last word may be an argument
		if n == 1 && most > 1 {
			return "the command " + name
		}
		name = strings.Join(words[:n], " ")
		help.Reset()
		args := append(slices.Clone(words[1:n]), "--help")
		status := command.Run(t.Context(), command.World{Args: args, Stdin: strings.NewReader(""), Stdout: &help, Stderr: &said, Version: "test"})
		if status == command.ExitOK && strings.Contains(help.String(), "\nUsage: "+name+" ") && (n == most || !group.MatchString(help.String())) {
			break
		}
	}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z.-]*[a-z]`).FindAllString(text, -1) {
		everywhere := slices.Contains([]string{"--help", "--json", "--config", "--socket"}, flag)
		if !everywhere && !regexp.MustCompile(`(?m)^ .*`+regexp.QuoteMeta(flag)+`( |$)`).MatchString(help.String()) {
			return "the flag " + flag + " of " + name
		}
	}
	return ""
}

func TestTheCommandLinesOfThePagesExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages() {
		text, _ := read(t, page)
		for _, c := range commandLines(text) {
			found++
			if missing := unknown(t, c.text); missing != "" {
				t.Errorf("%s:%d: %q: there is no such thing as %s", page, c.line, c.text, missing)
			}
		}
	}
	if found < 4 {
		t.Errorf("found %d command lines; the test looks past them", found)
	}
	for line, want := range map[string]string{
		"pitchpipe tune job.sbatch":            "the command pitchpipe tune",
		"pitchpipe run --now job.sbatch":       "the flag --now of pitchpipe run",
		"pitchpipe search begin job.sbatch":    "the command pitchpipe search",
		"pitchpipe search run --now x.sbatch":  "the flag --now of pitchpipe search run",
		"pitchpipe run --wai job.sbatch":       "the flag --wai of pitchpipe run",
		"pitchpipe --verbose":                  "the flag --verbose of pitchpipe",
		"pitchpipe run job --socket S":         "",
		"pitchpipe controller & # --log.level": "",
	} {
		if got := unknown(t, line); got != want {
			t.Errorf("%q lacks %q, want %q: this test does not see what it should", line, got, want)
		}
	}
}

// TestThePagesLinkToWhatIsThere holds for links within the repository.
func TestThePagesLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	known := files(t)
	found := 0
	for _, page := range known {
		if path.Ext(page) != ".md" || strings.Contains(page, "/testdata/") {
			continue
		}
		text, _ := read(t, page)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			target = path.Clean(path.Join(path.Dir(page), target))
			if !slices.ContainsFunc(known, func(name string) bool { return under(name, target) }) {
				t.Errorf("%s links to %s, which is not in the repository", page, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page links to another file")
	}
	if program := filepath.Join(root(t), "exporter", "cmd", "pitchpipe-exporter"); !isDir(program) {
		t.Errorf("the README starts pitchpipe-exporter, and %s is not there", program)
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func TestTheReadmeBeginsWithWhatToTry(t *testing.T) {
	t.Parallel()
	text, _ := read(t, "README.md")
	lines := strings.Split(text, "\n")
	for _, want := range []string{"make demo", "make test"} {
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "    "+want) })
		if at < 0 || at >= 40 {
			t.Errorf("README.md shows %q as a command on line %d, want it within the first 40", want, at+1)
		}
	}
}
