package slurmlua_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheWorkIsBounded gives the plugin scripts that are made to keep it busy. While
// it works slurmctld does nothing else; it is left after some 0.1 s of CPU time, and
// what patterns take, which no limit ends, must stay small beside that: 0.17 s in all were
// measured on a busy machine, and a slower one has three times as much.
func TestTheWorkIsBounded(t *testing.T) {
	t.Parallel()
	const most = 0.5 // seconds of CPU time
	var follows strings.Builder
	for i := range 250 {
		fmt.Fprintf(&follows, "#TUNE knob %s%d live=true follows=%s\n", strings.Repeat("k", 50), i, strings.Repeat("q", 60))
	}
	tests := map[string]string{
		"many commands":           "./x\n" + strings.Repeat("echo hello\n", 350000),
		"many unknown keys":       strings.Repeat("#TUNE "+strings.Repeat("kxyzkxyzkxyz=1 ", 500)+"\n", 8),
		"many knobs that follow":  follows.String(),
		"many values":             "#TUNE knob cores values=" + strings.Repeat("1,", 4000) + "1\n",
		"many digits":             "#TUNE knob memory min=" + strings.Repeat("1", 8000) + "x\n",
		"many points":             "#TUNE knob memory min=" + strings.Repeat("1.", 4000) + "\n",
		"many spans":              "#TUNE budget time=" + strings.Repeat("1h", 4000) + "\n",
		"many blanks":             "#TUNE knob memory min='" + strings.Repeat(" ", 8000) + "x'\n",
		"many wide blanks":        "#TUNE knob memory min='" + strings.Repeat("\u2003", 2700) + "x'\n",
		"many quotes":             "#TUNE\n: " + strings.Repeat(`"`, 60000) + "x\n",
		"many braces":             "#TUNE\nA=" + strings.Repeat("${", 30000) + "x\n",
		"many assignments":        "#TUNE\n" + strings.Repeat("A=1 ", 15000) + "\n",
		"many assignments undone": "#TUNE\n" + strings.Repeat("A=1 ", 15000) + "x\n",
		"many late lines":         "#TUNE\n./x\n" + strings.Repeat(" #TUNE\n", 150000),
		"many late words":         "#TUNE\n./x\n" + strings.Repeat("x#TUNE\n", 150000),
		"late blanks":             "#TUNE\n./x\nx" + strings.Repeat(" ", 900000) + "#TUNE\n",
		"late line ends":          "#TUNE\n./x\n" + strings.Repeat("\n", 1000000) + "#TUNE\n",
	}
	for _, lua := range interpreters(t) {
		file := install(t, "reject", nil)
		for name, script := range tests {
			t.Run(filepath.Base(lua)+"/"+name, func(t *testing.T) {
				t.Parallel()
				got := submitted(t, lua, file, "#!/bin/sh\n"+script+"./train\n", "timed")
				seconds, err := strconv.ParseFloat(strings.Join(got["seconds"], ""), 64)
				if err != nil || seconds > most {
					t.Errorf("%v s of CPU time (%v), want at most %v", got["seconds"], err, most)
				}
			})
		}
	}
}
