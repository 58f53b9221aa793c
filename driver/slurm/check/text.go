package check

import (
	"fmt"
	"slices"
	"strings"
)

// Text is the report for people: grouped by the file to change, each line with the
// verdict first. What is fine takes one line, what is not also says why, what to
// change, and what makes the change count.
func Text(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Slurm %s, cluster %s, checked by %s for mode %s.\n", clean(r.Version), clean(r.Cluster), clean(r.Caller), r.Mode)
	where := ""
	for _, f := range r.Findings {
		if f.Where != where {
			where = f.Where
			fmt.Fprintf(&b, "\n%s\n", clean(where))
		}
		fmt.Fprintf(&b, "  %-7s  %s%s\n", word(f.Verdict), clean(f.Looked), need(f, r.Mode))
		if f.Verdict == OK {
			continue
		}
		for _, line := range wrap(clean(f.Why), 86) {
			fmt.Fprintf(&b, "           %s\n", line)
		}
		for i, line := range f.Change {
			head := "        "
			switch {
			case i > 0:
			case f.Verdict == Unknown:
				head = "to see: "
			default:
				head = "change: "
			}
			fmt.Fprintf(&b, "           %s%s\n", head, clean(line))
		}
		if f.Then != "" {
			fmt.Fprintf(&b, "           then:   %s\n", clean(f.Then))
		}
	}
	b.WriteString("\n" + r.Summary() + "\n")
	return b.String()
}

// Summary is one sentence or two: whether the mode has what it needs, what else is
// worth a change, and how much was not seen.
func (r Report) Summary() string {
	var lacking, worth, unseen int
	for _, f := range r.Findings {
		switch {
		case f.Fails(r.Mode):
			lacking++
		case f.Verdict == Unknown && slices.Contains(f.Needed, r.Mode):
			unseen++
		case f.Verdict == Missing || f.Verdict == Wrong:
			worth++
		}
	}
	text := fmt.Sprintf("Nothing that mode %s needs is missing.", r.Mode)
	if lacking > 0 {
		text = fmt.Sprintf("Mode %s lacks %s, marked NEEDED.", r.Mode, count(lacking, "thing"))
	}
	if unseen > 0 {
		text += fmt.Sprintf(" %s that it needs could not be seen from here by %s.", upper(count(unseen, "thing")), r.Caller)
	}
	if worth > 0 {
		text += fmt.Sprintf(" %s would make it better and can wait.", upper(count(worth, "other change")))
	}
	return text
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func word(v Verdict) string {
	if v == Unknown {
		return "unseen"
	}
	return string(v)
}

// need says behind a line whether the mode of the report, or the other one, hangs on it.
func need(f Finding, m Mode) string {
	switch {
	case f.Verdict == OK || f.Verdict == Unknown:
		return ""
	case f.Fails(m):
		return "  NEEDED"
	case len(f.Needed) > 0:
		return fmt.Sprintf("  (needed in mode %s)", f.Needed[0])
	}
	return "  (advice)"
}

// wrap breaks a sentence into lines of at most so many characters, but for words that
// are longer.
func wrap(s string, width int) []string {
	var out []string
	line := ""
	for w := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = w
		case len(line)+1+len(w) > width:
			out = append(out, line)
			line = w
		default:
			line += " " + w
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// clean keeps what the cluster says from steering the terminal, and from the next
// line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
