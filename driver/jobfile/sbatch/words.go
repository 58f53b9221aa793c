package sbatch

import (
	"fmt"
	"strings"
)

// word is one word of a #SBATCH line.
type word struct {
	text   string // quotes removed
	column int    // of its first byte, from 1
}

// words cuts a #SBATCH line from byte i on. Single quotes are literal, in double
// quotes and outside of quotes a backslash takes the next byte as it is, and a
// word that begins with # ends the line.
func (p *parser) words(number int, line string, i int) ([]word, bool) {
	var out []word
	for {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) || line[i] == '#' {
			return out, true
		}
		text, end, open := oneWord(line, i)
		if open >= 0 {
			p.fail(number, open+1, fmt.Sprintf("the quote %c is not closed", line[open]), "want the closing quote on the same line")
			return nil, false
		}
		out = append(out, word{text: text, column: i + 1})
		i = end
	}
}

// oneWord reads a word and finds its end; open is a quote that is not closed, -1: there is none.
func oneWord(line string, i int) (text string, end, open int) {
	var b strings.Builder
	var quote byte
	start := i
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, start = c, i
		case quote == 0 && isBlank(c):
			return b.String(), i, -1
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", i, start
	}
	return b.String(), i, -1
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
