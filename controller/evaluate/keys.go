package evaluate

import (
	"cmp"
	_ "embed" // for the page
	"fmt"
	"slices"
	"strings"

	"pitchpipe/controller/report"
)

//go:embed KEYS.md
var page string

// Key is one key of the JSON of an evaluation, and its column in the printed table.
type Key struct {
	Name, About string
	Head        string // of its column; empty: it has none
	Digits      string // of its figures; % for a percentage; empty: three
	Optional    bool   // the JSON leaves it out where it is empty
	Printed     bool   // the JSON never has it
	List        bool   // a list of lines
	Inner       []Key  // of the line, or of each line of the list
}

// Keys reads from KEYS.md the keys of the rows and of the summary of an evaluation.
func Keys(command string) (rows, summary []Key) {
	_, section, _ := strings.Cut(page, "\n## "+command+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	parts := strings.SplitN(section, "\n| summary |", 2)
	return nested(keysOf(parts[0])), nested(keysOf(parts[len(parts)-1]))
}

// keysOf reads the lines of a table below its heading.
func keysOf(text string) []Key {
	var out []Key
	_, text, _ = strings.Cut(text, "|---|\n")
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|") // and what is before and after the table
		if len(cells) != 5 {
			continue
		}
		name := strings.TrimSpace(cells[1])
		head, digits, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(cells[2]), ")"), " (")
		out = append(out, Key{
			Name: strings.Trim(name, "`?"), About: strings.ReplaceAll(strings.TrimSpace(cells[3]), "\x00", "|"),
			Head: head, Digits: digits, Optional: strings.HasSuffix(name, "?"), Printed: name[0] != '`',
		})
	}
	return out
}

// nested moves keys such as regret.kinds[].best into those that they are of.
func nested(flat []Key) []Key {
	var out []Key
	for _, k := range flat {
		parent, name, inner := strings.Cut(k.Name, ".")
		if !inner {
			out = append(out, k)
			continue
		}
		of := &out[len(out)-1]
		k.Name, of.List = name, strings.HasSuffix(parent, "[]")
		of.Inner = append(of.Inner, k)
	}
	for i := range out {
		out[i].Inner = nested(out[i].Inner)
	}
	return out
}

// print writes one value, "-" where it is missing.
func (k Key) print(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case Figure:
		if k.Digits == "%" && v.Known() {
			return (100 * v).Print(0) + " %"
		}
		digits := 3
		_, _ = fmt.Sscan(k.Digits, &digits) // three where the page has none
		return v.Print(digits)
	case []string:
		return cmp.Or(report.Legible(strings.Join(v, " | ")), "-")
	case int, bool:
		if k.Optional && slices.Contains([]any{0, false}, value) {
			return "-"
		}
	}
	return cmp.Or(report.Legible(fmt.Sprint(value)), "-") // names in a log are those of its users
}
