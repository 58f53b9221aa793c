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
func words(line string, i int) ([]word, error) {
	var out []word
	for {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) || line[i] == '#' {
			return out, nil
		}
		text, end, err := oneWord(line, i)
		if err != nil {
			return out, err
		}
		out = append(out, word{text: text, column: i + 1})
		i = end
	}
}

func oneWord(line string, i int) (string, int, error) {
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
			return b.String(), i, nil
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", i, &openQuote{quote: quote, column: start + 1}
	}
	return b.String(), i, nil
}

// openQuote is a quote that is not closed on its line.
type openQuote struct {
	quote  byte
	column int
}

// Error says which quote it is.
func (e *openQuote) Error() string { return fmt.Sprintf("the quote %c is not closed", e.quote) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
