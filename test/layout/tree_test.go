package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "pitchpipe"

// source is one Go file.
type source struct {
	path string // from the root, with slashes
	dir  string
	test bool
	ast  *ast.File
	fset *token.FileSet
	text []byte
}

func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imports lists what the file imports.
func (s source) imports() []string {
	var out []string
	for _, i := range s.ast.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, name)
		}
	}
	return out
}

// root is the folder that holds go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := top()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test")
		}
		dir = up
	}
}

// listed and parsed are what every test looks at, made once for all of them: no test
// writes to what they hold.
var (
	listed = sync.OnceValues(list)
	parsed = sync.OnceValues(parse)
)

// files lists what belongs to the repository, from the root and with slashes:
// everything but what git ignores, or without git everything outside the folders
// that are built.
func files(t *testing.T) []string {
	t.Helper()
	names, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func list() ([]string, error) {
	dir, err := top()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	if out, err := cmd.Output(); err == nil {
		var names []string
		for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	}
	var names []string
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == ".build" || name == ".git"):
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// sources are all Go files, testdata left out.
func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Error(err)
	}
	if len(out) < 10 {
		t.Fatalf("found %d Go files; the test looks at the wrong place", len(out))
	}
	return out
}

func parse() ([]source, error) {
	dir, err := top()
	if err != nil {
		return nil, err
	}
	names, err := listed()
	if err != nil {
		return nil, err
	}
	var out []source
	var faults []error
	for _, name := range names {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
			continue
		}
		out = append(out, source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), f, fset, text})
	}
	return out, errors.Join(faults...)
}

// read returns a file of the root, and false where there is none.
func read(t *testing.T, name string) (string, bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	if os.IsNotExist(err) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), true
}

// binary reports whether a file is not text.
func binary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 }
