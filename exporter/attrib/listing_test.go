package attrib

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestADirectoryIsListedAsTheStandardLibraryDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for n := range 700 { // more than one reading
		name := fmt.Sprintf("%04d-%s", n, strings.Repeat("x", 40))
		want = append(want, name)
		path := filepath.Join(dir, name)
		if n%2 == 0 {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var l listing
	var got []string
	dirs := 0
	err := l.each(dir, func(name []byte, kind byte, inode uint64) {
		got = append(got, string(name))
		if kind == unix.DT_DIR {
			dirs++
		}
		if inode == 0 {
			t.Errorf("%s has no inode", name)
		}
	})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) || dirs != len(want)/2 {
		t.Errorf("%d names, %d directories, %v; want %d, %d", len(got), dirs, err, len(want), len(want)/2)
	}
	if err := l.each(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if err := l.each(filepath.Join(dir, want[1]), nil); err == nil {
		t.Error("a file was listed")
	}
}

func TestNumbersOfProcesses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1": 1, "4194304": 4194304, "0": 0, "": 0, "01": 0, "1a": 0, "-1": 0, "99999999999": 0, "self": 0} {
		if got, ok := number([]byte(text)); got != want || ok != (want > 0) {
			t.Errorf("number(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
}
