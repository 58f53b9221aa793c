package verify

import (
	"fmt"
	"path/filepath"
	"strings"

	"pitchpipe/controller/evaluate"
)

// Text prints one line for each null, and what they sum up to.
func Text(r Report) string {
	heads := []string{"COMPARED", "WITHOUT EFFECT", "DATA", "MEASURE", "LOOKS", "FALSE", "COVERED"}
	for _, e := range Effects()[1:] {
		heads = append(heads, fmt.Sprintf("%g %%", 100*e))
	}
	var cells [][]string
	var notes []string
	for _, row := range r.Rows {
		if row.Effect > 0 {
			last := len(cells) - 1
			cells[last] = append(cells[last], power(row))
			continue
		}
		data := row.Source
		if row.Data != "" {
			data = filepath.Join(filepath.Base(filepath.Dir(row.Data)), filepath.Base(row.Data))
		}
		name := row.Null
		if row.Limit != "" {
			name += " *"
			notes = append(notes, fmt.Sprintf("* %s: %s.", row.Null, row.Limit))
		}
		cells = append(cells, []string{
			string(row.Comparison), name, data, string(row.Objective), fmt.Sprintf("%.0f", row.Looks),
			fmt.Sprintf("%.3f", row.FalseVerdicts), fmt.Sprintf("%.3f", row.Coverage),
		})
	}
	return evaluate.Columns(heads, cells) + "\n" + r.Summary.text() + unique(notes)
}

// power is the share that found the effect, and after how many looks.
func power(r Row) string {
	out := evaluate.Number(r.Power, 2)
	if r.ToVerdict != nil {
		out += fmt.Sprintf(" @%.0f", *r.ToVerdict)
	}
	return out
}

func unique(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if !strings.Contains(b.String(), l+"\n") {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func (s Summary) text() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%d replays of each line. FALSE is the share with a false verdict at any look, COVERED that whose interval held", s.Replays)
	say("the truth at every look. Under an effect: the share that finds it, and the median of epochs or pairs until then.")
	if s.Rows > 0 {
		say("False verdicts: at most %.3f (%s); %g is allowed.", s.FalseMax, s.FalseOf, s.Level)
	}
	if len(s.Over) > 0 {
		say("Above that by more than chance: %s.", strings.Join(s.Over, "; "))
	}
	if s.LimitedRows > 0 {
		say("Where a limit is broken (*): at most %.3f (%s).", s.LimitedFalse, s.LimitedOf)
	}
	for _, l := range s.LeftOut {
		say("Left out: %s.", l)
	}
	return b.String()
}
