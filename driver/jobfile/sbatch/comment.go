package sbatch

import (
	"bytes"
	"strings"
)

// WithComment returns a script with the #TUNE lines that stand in the job's comment,
// behind its first line, so that a stanza can come by
//
//	sbatch --comment='#TUNE mode=apply #TUNE knob cores values=1,2' train.sbatch
//
// where a script cannot be changed. Each #TUNE that begins a word begins a line. A
// script that has a #TUNE line of its own is returned as it is, and so is any where
// the comment has none.
func WithComment(script []byte, comment string) []byte {
	lines := fromComment(comment)
	if len(lines) == 0 || bytes.HasPrefix(script, []byte("#TUNE")) || bytes.Contains(script, []byte("\n#TUNE")) {
		return script
	}
	first, rest, _ := bytes.Cut(script, []byte("\n"))
	out := make([]byte, 0, len(script)+len(comment)+len(lines)+1)
	out = append(append(out, first...), '\n')
	for _, l := range lines {
		out = append(append(out, l...), '\n')
	}
	return append(out, rest...)
}

// fromComment splits a comment before each #TUNE that begins a word; what stands
// before the first is not ours.
func fromComment(comment string) []string {
	comment = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, comment)
	const word = "#TUNE "
	var out []string
	for i := nextWord(comment, word, 0); i >= 0; {
		next := nextWord(comment, word, i+len(word))
		end := len(comment)
		if next >= 0 {
			end = next
		}
		out = append(out, strings.TrimRight(comment[i:end], " "))
		i = next
	}
	return out
}

func nextWord(text, word string, from int) int {
	for from <= len(text) {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return -1
		}
		if i += from; i == 0 || text[i-1] == ' ' {
			return i
		}
		from = i + 1
	}
	return -1
}
