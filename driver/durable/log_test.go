package durable_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pitchpipe/driver/durable"
)

// numbers are the lines of a log's file, which are numbers.
func numbers(t *testing.T, path string) (out []int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALogIsBoundedAndKeepsTheLastLinesInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := &durable.Log{Path: filepath.Join(dir, "log"), Max: 8, Keep: 2} // four lines of two bytes
	for n := range 10 {
		if err := log.Append(n, true); err != nil {
			t.Fatal(err)
		}
		// Another process goes on where this one was killed.
		log = &durable.Log{Path: log.Path, Max: log.Max, Keep: log.Keep}
	}
	want := 0
	for _, name := range []string{".2", ".1", ""} {
		for _, n := range numbers(t, log.Path+name) {
			if n != want {
				t.Errorf("%s has %d, want %d", name, n, want)
			}
			want++
		}
	}
	for n := range 100 {
		if err := log.Append(n%10, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("files %v, want 3", got)
	}
	for _, name := range []string{".2", ".1", ""} {
		if info, err := os.Stat(log.Path + name); err != nil || info.Size() > log.Max {
			t.Errorf("%s has %v bytes (%v), want at most %d", name, info.Size(), err, log.Max)
		}
	}
}

func TestARotationThatACrashInterruptedLosesNoLine(t *testing.T) {
	t.Parallel()
	log := &durable.Log{Path: filepath.Join(t.TempDir(), "log"), Max: 4, Keep: 3}
	for n := range 4 {
		if err := log.Append(n, true); err != nil {
			t.Fatal(err)
		}
	}
	// Only the older file has its new name yet.
	if err := os.Rename(log.Path+".1", log.Path+".2"); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(4, true); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, name := range []string{".2", ".1", ""} {
		got = append(got, numbers(t, log.Path+name)...)
	}
	if len(got) != 5 || got[0] != 0 || got[4] != 4 {
		t.Errorf("lines %v, want 0 to 4", got)
	}
}

func TestLinesOfManyAreWhole(t *testing.T) {
	t.Parallel()
	log := &durable.Log{Path: filepath.Join(t.TempDir(), "log"), Max: 40, Keep: 20}
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if err := log.Append(n, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(log.Path + "*")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, path := range files {
		total += len(numbers(t, path))
	}
	if total != 50 {
		t.Errorf("%d lines, want 50", total)
	}
}

func TestAnAuditThatCannotBeWrittenSaysSoWhenItIsOpened(t *testing.T) {
	t.Parallel()
	good, err := durable.OpenAudit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(good.Path); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := durable.OpenAudit(good.Path); err == nil {
		t.Error("an audit below a file was opened")
	}
}
