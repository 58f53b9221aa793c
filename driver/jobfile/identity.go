package jobfile

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashLength is the number of hexadecimal digits of an identity: 48 bits, enough
// for the few thousand commands of one owner and one job name.
const hashLength = 12

// ScriptIdentity is a short hash that is equal for two scripts that run the same thing on
// other inputs or under other settings. Comments, blank lines, values of assignments and
// flags, numbers, redirections, and arguments that look like files are left out; the #! line
// counts. It errs towards "another thing": then a job is profiled once more, while a wrong
// "same" would give it the settings of a stranger.
func ScriptIdentity(src []byte) string { return hash(script(string(src))) }

// CommandIdentity is that of a command and its arguments.
func CommandIdentity(argv []string) string {
	tokens := make([]token, len(argv))
	for i, a := range argv {
		tokens[i] = token{text: a}
	}
	return hash(strings.Join(normalise(tokens), " "))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// script is the text that is hashed, one command line a line.
func script(src string) string {
	var out []string
	if interpreter, ok := strings.CutPrefix(src, "#!"); ok {
		line, _, _ := strings.Cut(interpreter, "\n")
		out = append(out, "#!"+strings.TrimSpace(line))
	}
	joined := strings.ReplaceAll(src, "\\\n", " ")
	for line := range strings.Lines(joined) {
		if words := normalise(split(strings.TrimRight(line, "\r\n"))); len(words) > 0 {
			out = append(out, strings.Join(words, " "))
		}
	}
	return strings.Join(out, "\n")
}

// token is a word with its quotes removed, or a shell operator.
type token struct {
	text     string
	operator bool
}

// split cuts one line into words and operators as a shell would, as far as that
// goes without running it. A quote that is not closed on the line is an ordinary
// letter, so that here-documents do no harm. A comment ends the line.
func split(line string) []token {
	var out []token
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '#':
			return out
		case isOperator(c):
			end := i + 1
			for end < len(line) && isOperator(line[end]) && line[end] != '(' && line[end] != ')' {
				end++
			}
			out = append(out, token{text: line[i:end], operator: true})
			i = end
		default:
			text, end := word(line, i)
			// "2>" and "1>": the number belongs to the redirection.
			if end < len(line) && (line[end] == '>' || line[end] == '<') && isDigits(text) {
				i = end
				continue
			}
			out = append(out, token{text: text})
			i = end
		}
	}
	return out
}

func isOperator(c byte) bool { return strings.IndexByte("|&;()<>", c) >= 0 }

// word reads one word from i on and returns it without quotes, and its end.
func word(line string, i int) (string, int) {
	var b strings.Builder
	for i < len(line) {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || isOperator(c):
			return b.String(), i
		case c == '\\' && i+1 < len(line):
			b.WriteByte(line[i+1])
			i += 2
		case c == '\'' || c == '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				b.WriteByte(c)
				i++
				continue
			}
			b.WriteString(line[i+1 : i+1+end])
			i += end + 2
		case c == '$' && i+1 < len(line) && line[i+1] == '(':
			end := closing(line, i+1)
			b.WriteString(line[i:end])
			i = end
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), i
}

// closing returns the index behind the parenthesis that closes the one at i, or
// behind the line.
func closing(line string, i int) int {
	depth := 0
	for ; i < len(line); i++ {
		switch line[i] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(line)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
