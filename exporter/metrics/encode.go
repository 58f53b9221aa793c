package metrics

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text writes the exposition format 0.0.4.
type text struct {
	b []byte
}

// escapes are those of a label's value.
const escapes = "\\\"\n"

// head begins a family.
func (t *text) head(m Metric) {
	t.b = append(t.b, "# HELP "...)
	t.b = append(t.b, m.Name...)
	t.b = append(t.b, ' ')
	help := m.Help
	if strings.ContainsAny(help, "\\\n") { // else there is nothing to make a replacer for
		help = strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(help)
	}
	t.b = append(t.b, help...)
	t.b = append(t.b, "\n# TYPE "...)
	t.b = append(t.b, m.Name...)
	t.b = append(t.b, ' ')
	t.b = append(t.b, m.Kind...)
	t.b = append(t.b, '\n')
}

// label appends one label to those that are begun.
func label(b []byte, name, value string) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(b, name...)
	b = append(b, '=', '"')
	if strings.ContainsAny(value, escapes) || !utf8.ValidString(value) {
		value = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(value, "�"))
	}
	b = append(b, value...)
	return append(b, '"')
}

// series writes one value; labels are as label made them.
func (t *text) series(name string, labels []byte, v float64) {
	t.b = append(t.b, name...)
	if len(labels) > 0 {
		t.b = append(t.b, '{')
		t.b = append(t.b, labels...)
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, ' ')
	switch {
	case math.IsInf(v, 1):
		t.b = append(t.b, "+Inf"...)
	case math.IsInf(v, -1):
		t.b = append(t.b, "-Inf"...)
	default:
		t.b = strconv.AppendFloat(t.b, v, 'g', -1, 64)
	}
	t.b = append(t.b, '\n')
}
