package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashLength is the number of hexadecimal digits of an identity: 48 bits, enough
// for the few thousand commands of one owner and one job name.
const hashLength = 12

// Script returns the identity of a shell script. The #! line counts with its
// interpreter, every other comment line (#SBATCH and #TUNE lines too) does not.
func Script(src []byte) string { return hash(script(string(src))) }

// Argv returns the identity of a command and its arguments.
func Argv(argv []string) string {
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
