package stanza

import (
	"strings"

	"pitchpipe/controller/tuning"
)

// PrintLines writes the policy as #TUNE lines of a batch script, with every default written
// out. Read again in the same script, it is the same policy; arg is written too, though a batch
// script refuses it.
func PrintLines(p tuning.Policy) string {
	var b strings.Builder
	for _, s := range sections(p) {
		b.WriteString(strings.TrimRight("#TUNE "+strings.TrimLeft(s.block+" "+s.label, " "), " "))
		for _, e := range s.entries {
			if e.key != "" {
				b.WriteString(" " + e.key + "=" + line(e.value))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
