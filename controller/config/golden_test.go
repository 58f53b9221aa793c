package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// golden is one archive: inputs and what is expected of them.
type golden struct {
	name, path string
	archive    *txtar.Archive
}

// goldens reads the archives; there must be at least so many.
func goldens(t *testing.T, pattern string, least int) []golden {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < least {
		t.Fatalf("%d archives match %s, want at least %d", len(paths), pattern, least)
	}
	var out []golden
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, golden{strings.TrimSuffix(filepath.Base(path), ".txtar"), path, a})
	}
	return out
}

func (g golden) has(name string) bool {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

func (g golden) section(name string) string {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// want compares a section with what was got, or rewrites it.
func (g golden) want(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if !g.has(name) {
			g.archive.Files = append(g.archive.Files, txtar.File{Name: name})
		}
		for i := range g.archive.Files {
			if g.archive.Files[i].Name == name {
				g.archive.Files[i].Data = []byte(got)
			}
		}
		if err := os.WriteFile(g.path, txtar.Format(g.archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(g.section(name), got); diff != "" {
		t.Errorf("%s, %s (-want +got):\n%s", g.path, name, diff)
	}
}
