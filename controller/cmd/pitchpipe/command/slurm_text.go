package command

import (
	"fmt"
	"slices"
	"strings"

	"pitchpipe/controller/report"
	"pitchpipe/driver/slurm/check"
)

// checkText is the report for people: grouped by the file to change, each line with the verdict
// first. What is fine takes one line, what is not also says why, what to change, and what makes
// the change count. The last line says whether the mode has what it needs, what else is worth a
// change, and how much was not seen.
func checkText(r check.Report) string {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(report.Legible(fmt.Sprintf(format, args...)) + "\n") }
	say("Slurm %s, cluster %s, checked by %s for mode %s.", r.Version, r.Cluster, r.Caller, r.Mode)
	where := ""
	var lacking, worth, unseen int
	for _, f := range r.Findings {
		if f.Where != where {
			where = f.Where
			b.WriteString("\n")
			say("%s", where)
		}
		word, head, need := string(f.Verdict), "change: ", ""
		switch {
		case f.Verdict == check.OK:
		case f.Verdict == check.Unknown:
			word, head = "unseen", "to see: "
			if slices.Contains(f.Needed, r.Mode) {
				unseen++
			}
		case f.Fails(r.Mode):
			need = "  NEEDED"
			lacking++
		default:
			need = "  (advice)"
			if len(f.Needed) > 0 {
				need = fmt.Sprintf("  (needed in mode %s)", f.Needed[0])
			}
			worth++
		}
		say("  %-7s  %s%s", word, f.Looked, need)
		if f.Verdict == check.OK {
			continue
		}
		for _, line := range wrap(f.Why, 86) {
			say("           %s", line)
		}
		for _, line := range f.Change {
			say("           %s%s", head, line)
			head = "        "
		}
		if f.Then != "" {
			say("           then:   %s", f.Then)
		}
	}
	text := fmt.Sprintf("Nothing that mode %s needs is missing.", r.Mode)
	if lacking > 0 {
		text = fmt.Sprintf("Mode %s lacks %s, marked NEEDED.", r.Mode, report.Count(lacking, "thing"))
	}
	if unseen > 0 {
		text += fmt.Sprintf(" %s that it needs could not be seen from here by %s.", report.Count(unseen, "thing"), r.Caller)
	}
	if worth > 0 {
		text += fmt.Sprintf(" %s would make it better and can wait.", report.Count(worth, "other change"))
	}
	return b.String() + "\n" + text + "\n"
}

// wrap breaks a sentence into lines of at most so many characters, but for longer words.
func wrap(s string, width int) (lines []string) {
	for w := range strings.FieldsSeq(s) {
		if n := len(lines) - 1; n >= 0 && len(lines[n])+1+len(w) <= width {
			lines[n] += " " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}
