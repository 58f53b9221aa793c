package stanza

import (
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// literal is a value as it is written into a stanza: one element, or a list.
type literal struct {
	elements []element
	list     bool
}

// element is a text, or a number or boolean that needs no quotes.
type element struct {
	text string
	bare bool
}

func quoted(s string) literal { return literal{elements: []element{{text: s}}} }

func bare(s string) literal { return literal{elements: []element{{text: s, bare: true}}} }

func integer(n int) literal { return bare(strconv.Itoa(n)) }

func number(f float64) literal { return bare(strconv.FormatFloat(f, 'g', -1, 64)) }

func numbers(values ...int) literal {
	out := literal{list: true}
	for _, v := range values {
		out.elements = append(out.elements, element{text: strconv.Itoa(v), bare: true})
	}
	return out
}

// hcl writes the literal for a Nomad job file.
func (l literal) hcl() string {
	parts := make([]string, len(l.elements))
	for i, e := range l.elements {
		parts[i] = e.text
		if !e.bare {
			parts[i] = hclQuote(e.text)
		}
	}
	if l.list {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return strings.Join(parts, "")
}

// line writes the literal for a #TUNE line.
func (l literal) line() string {
	parts := make([]string, len(l.elements))
	for i, e := range l.elements {
		parts[i] = lineQuote(e.text)
	}
	return strings.Join(parts, ",")
}

// hclQuote writes a text as a quoted template without interpolation.
func hclQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case (c == '$' || c == '%') && i > 0 && s[i-1] == c:
			// "$${" reads as "${", so that a doubled sign needs another spelling.
			b.WriteString(`\u00` + strconv.FormatInt(int64(c), 16))
		case (c == '$' || c == '%') && i+1 < len(s) && s[i+1] == '{':
			b.WriteByte(c)
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// lineQuote writes a text bare where that is possible, else in single quotes,
// else in double quotes.
func lineQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./:+@%^~-", r)
	}
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// valueLiteral writes a value of a knob.
func valueLiteral(knob string, values ...tuning.Value) literal {
	var out literal
	for _, v := range values {
		e := element{text: v.String(), bare: v.IsNumber()}
		if knob == tuning.Memory && v.IsNumber() {
			e = element{text: tuning.Bytes(v.Float()).String()}
		}
		out.elements = append(out.elements, e)
	}
	return out
}
