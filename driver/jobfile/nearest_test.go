package jobfile_test

import (
	"testing"

	"pitchpipe/driver/jobfile"
)

func TestWord(t *testing.T) {
	t.Parallel()
	keys := []string{"mode", "objective", "max_slowdown", "cpus-per-task", "mem", "time"}
	tests := []struct{ name, word, want string }{
		{"one letter too many", "modee", "mode"},
		{"two letters swapped", "mdoe", "mode"},
		{"another case", "MODE", "mode"},
		{"a third of the letters may be wrong", "objektivf", "objective"},
		{"the start of a longer word", "cpus", "cpus-per-task"},
		{"letters left out", "objctv", "objective"},
		{"nothing is near", "banana", ""},
		{"a short word has one guess", "xyz", ""},
		{"the empty word", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := jobfile.Nearest(tt.word, keys); got != tt.want {
				t.Errorf("Word(%q) = %q, want %q", tt.word, got, tt.want)
			}
		})
	}
}
