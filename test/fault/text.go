package fault

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Progress is a line on standard error for a person who waits.
func Progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// Story is what happened apart from the verdicts. It is printed after them: a cut of a
// long output keeps its beginning.
type Story struct {
	mu    sync.Mutex
	lines []string
}

// NewStory is a story that is printed when the test has ended and everything is removed.
func NewStory(t *testing.T) *Story {
	s := &Story{}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log("what happened:\n" + strings.Join(s.lines, "\n"))
	})
	return s
}

// Logf adds to the story.
func (s *Story) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// Grep are the last lines of a file that hold a word.
func Grep(path, word string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error() + "\n"
	}
	defer func() { _ = f.Close() }()
	var found []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), word) {
			found = append(found, lines.Text()+"\n")
		}
	}
	return strings.Join(found[max(0, len(found)-40):], "")
}

// Shorten leaves out of a journal the epochs between the first and the last of a run of
// them.
func Shorten(journal string) string {
	lines := strings.SplitAfter(journal, "\n")
	is := func(i int) bool {
		return i >= 0 && i < len(lines) && (strings.Contains(lines[i], " epoch ") || strings.Contains(lines[i], " again "))
	}
	var b strings.Builder
	for i, l := range lines {
		if !is(i) || !is(i-1) || !is(i+1) {
			b.WriteString(l)
		}
	}
	return b.String()
}
