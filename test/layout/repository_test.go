package layout

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasOneComment(t *testing.T) {
	t.Parallel()
	type pkg struct {
		comments []string
		files    []string
		main     bool
		doc      bool
	}
	pkgs := map[string]*pkg{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		p := pkgs[s.dir]
		if p == nil {
			p = &pkg{}
			pkgs[s.dir] = p
		}
		p.files = append(p.files, s.path)
		p.main = p.main || s.ast.Name.Name == "main"
		if s.ast.Doc != nil {
			p.comments = append(p.comments, s.path)
			p.doc = p.doc || path.Base(s.path) == "doc.go"
			start := "Package " + s.ast.Name.Name + " "
			if s.ast.Name.Name == "main" {
				start = "" // a program begins with its own name
			}
			if !strings.HasPrefix(s.ast.Doc.Text(), start) {
				t.Errorf("%s: the package comment begins %.40q, want %q", s.path, s.ast.Doc.Text(), start)
			}
		}
	}
	for dir, p := range pkgs {
		switch {
		case len(p.comments) != 1:
			t.Errorf("%s has %d package comments %v, want one that says what comes in, what goes out, and what it never does", dir, len(p.comments), p.comments)
		case !p.main && !p.doc:
			t.Errorf("%s has its package comment in %s, want it in doc.go", dir, p.comments[0])
		}
	}
}

func TestNoFileIsTooLongToRead(t *testing.T) {
	t.Parallel()
	const most = 400
	for _, s := range sources(t) {
		if lines := bytes.Count(s.text, []byte("\n")); !s.test && lines > most {
			t.Errorf("%s has %d lines, want at most %d: split it by responsibility", s.path, lines, most)
		}
	}
}

func TestTheTopLevelIsTheOneOfTheDesign(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"controller", "driver", "exporter", "jobspecs", "scripts", "test", "go.mod", "go.sum", "Makefile", "README.md",
		"LICENSE", "NOTICE", "CHANGELOG.md", "CONTRIBUTING.md", ".ci", ".editorconfig", ".gitattributes", ".gitignore", ".golangci.yml",
	}
	nowhere := []string{"utils", "util", "common", "helpers", "helper", "misc", "types", "internal", "pkg", "docs"}
	for _, name := range files(t) {
		parts := strings.Split(name, "/")
		if !slices.Contains(allowed, parts[0]) {
			t.Errorf("%s: the top level holds only %v", name, allowed)
		}
		if strings.Contains("/"+name, "/testdata/") || strings.Contains("/"+name, "/fixtures/") {
			continue
		}
		for _, part := range parts[:len(parts)-1] {
			if slices.Contains(nowhere, part) {
				t.Errorf("%s: no folder is called %s; say what is in it", name, part)
			}
		}
	}
}

func TestPlainFilesAreThere(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"LICENSE":         "Apache License\n                           Version 2.0, January 2004",
		"CHANGELOG.md":    "## [Unreleased]",
		"CONTRIBUTING.md": "Adding a knob",
		".ci/run":         "make test",
	} {
		text, ok := read(t, name)
		if !ok || !strings.Contains(text, content) {
			t.Errorf("%s: want a file with %q", name, content)
		}
	}
}

// targets lists the targets of the Makefile that help shows.
func targets(t *testing.T) []string {
	t.Helper()
	text, ok := read(t, "Makefile")
	if !ok {
		t.Fatal("no Makefile")
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestTheMakefileHasItsTargets(t *testing.T) {
	t.Parallel()
	have := targets(t)
	for want := range strings.FieldsSeq("help build demo test check lint fmt generate bench e2e fuzz cover clean") {
		if !slices.Contains(have, want) {
			t.Errorf("make %s is missing or has no line of help", want)
		}
	}
}

// TestCommandsOfThePagesExist looks at every make command in the pages at the top,
// and at the two that a newcomer needs.
func TestCommandsOfThePagesExist(t *testing.T) {
	t.Parallel()
	have := targets(t)
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		text, ok := read(t, page)
		if !ok {
			continue
		}
		for _, m := range regexp.MustCompile("(?m)(?:^ *|`|&& )make ([a-z][a-z0-9-]*)").FindAllStringSubmatch(text, -1) {
			if !slices.Contains(have, m[1]) {
				t.Errorf("%s says make %s, which the Makefile does not have", page, m[1])
			}
		}
		if page == "README.md" {
			for _, want := range []string{"make demo", "make test"} {
				if !strings.Contains(text, want) {
					t.Errorf("README.md does not say %s", want)
				}
			}
		}
	}
}

func TestScriptsStopAtTheFirstError(t *testing.T) {
	t.Parallel()
	for _, name := range files(t) {
		if path.Dir(name) != "scripts" && path.Dir(name) != ".ci" {
			continue
		}
		text, _ := read(t, name)
		if !strings.HasPrefix(text, "#!") || !strings.Contains(strings.SplitN(text, "\n", 2)[0], "bash") {
			continue
		}
		if !strings.Contains(text, "\nset -euo pipefail\n") {
			t.Errorf("%s: want set -euo pipefail", name)
		}
		info, err := os.Stat(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o111 == 0 {
			t.Errorf("%s starts with #! and is not executable", name)
		}
	}
}

// TestFilesNameNoMachine keeps the paths of one particular machine out of the
// repository.
func TestFilesNameNoMachine(t *testing.T) {
	t.Parallel()
	// Put together here, so that this file does not hold them.
	work, others := "/"+"work/", []string{"/root/" + "go/", "/tmp/" + "pp-", "/tmp/" + "bash_jobs"}
	machine := regexp.MustCompile(`(^|[^A-Za-z0-9_./-])` + work + `(main|shared)|` + strings.Join(others, "|"))
	// Few files hold one of these, and an expression is slow to search them all.
	suspect := func(text []byte) bool {
		return slices.ContainsFunc(append(others, work), func(s string) bool { return bytes.Contains(text, []byte(s)) })
	}
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if binary(text) || !suspect(text) {
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := machine.FindString(line); found != "" {
				t.Errorf("%s:%d names a path of one machine: %s", name, i+1, found)
			}
		}
	}
}

// TestPrometheusRulesHold runs promtool on every file of rules and on the tests
// next to them.
func TestPrometheusRulesHold(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		promtool = filepath.Join(root(t), ".build", "tools", "promtool")
		if _, err := os.Stat(promtool); err != nil {
			if os.Getenv("PITCHPIPE_REQUIRE_TOOLS") != "" {
				t.Fatal("promtool is missing; scripts/setup-test fetches it")
			}
			t.Skip("promtool is missing; scripts/setup-test fetches it")
		}
	}
	rules := 0
	for _, name := range files(t) {
		var verb string
		switch {
		case strings.HasSuffix(name, ".rules.yml"):
			verb = "check"
			rules++
			if _, ok := read(t, strings.TrimSuffix(name, ".yml")+".test.yml"); !ok {
				t.Errorf("%s has no tests beside it", name)
			}
		case strings.HasSuffix(name, ".rules.test.yml"):
			verb = "test"
		default:
			continue
		}
		cmd := exec.CommandContext(t.Context(), promtool, verb, "rules", path.Base(name))
		cmd.Dir = filepath.Join(root(t), path.Dir(name))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s rules %s: %v\n%s", verb, name, err, out)
		}
	}
	if rules == 0 {
		t.Error("there are no files of rules")
	}
}

func TestEverySkipSaysWhy(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Name != "t" && x.Name != "b" && x.Name != "f" && x.Name != "tb" {
				return true
			}
			if sel.Sel.Name == "SkipNow" || (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && len(call.Args) == 0 {
				t.Errorf("%s skips without a reason", s.at(call))
			}
			return true
		})
	}
}
