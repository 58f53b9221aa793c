package nomadhcl

import (
	"regexp"
	"strconv"
	"strings"

	"pitchpipe/driver/jobfile"
)

// complaint is one line of what an agent says of a file that it cannot parse, such as
// "input.hcl:6,3-9: Unsupported block type; Blocks of type ... are not expected here."
// A range over several lines is "6,3-8,4".
const complaint = `input\.hcl:(\d+),(\d+)-(?:\d+,)?\d+: (.*)`

// Faults turns what an agent said of Source into faults of the user's file, and all
// that it says of no place in it into one of its first line. The result is never
// empty.
func (c Carried) Faults(said string) jobfile.Errors {
	var out jobfile.Errors
	if strings.Count(said, ")") == strings.Count(said, "(") && strings.HasSuffix(said, ")") {
		said = strings.TrimSuffix(said, ")") // the answer stands in brackets behind its status
	}
	for _, m := range regexp.MustCompile(complaint).FindAllStringSubmatch(said, -1) {
		line, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		column, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		found, want, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(m[3]), "."), "; ")
		at := place(c.filename, c.user, c.origin(inBytes(c.Source, line, column)))
		out = append(out, jobfile.Error{Pos: at, Found: lower(found), Want: want})
	}
	if len(out) == 0 {
		at := jobfile.Pos{Filename: c.filename, Line: 1, Column: 1}
		out = jobfile.Errors{{Pos: at, Found: "Nomad refuses the file: " + strings.Join(strings.Fields(said), " ")}}
	}
	return out
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// inBytes is the byte at a line and a column in characters.
func inBytes(src []byte, line, column int) int {
	at := offset(src, line, 1)
	for range column - 1 {
		if at >= len(src) || src[at] == '\n' {
			break
		}
		at++
		for at < len(src) && src[at]&0xC0 == 0x80 { // the rest of a character
			at++
		}
	}
	return at
}
