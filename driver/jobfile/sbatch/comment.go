package sbatch

import (
	"bytes"
	"regexp"
	"slices"
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

// fromComment splits a comment before each #TUNE that begins a word; what is before the first
// is not ours. A word that only looks like #TUNE begins a line too where that will be warned of.
func fromComment(comment string) (lines []string) {
	comment = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, comment)
	words := regexp.MustCompile(`(?i)(?:^| )(# *tune)\b`).FindAllStringSubmatchIndex(comment, -1)
	end := len(comment)
	for _, at := range slices.Backward(words) {
		line := strings.TrimRight(comment[at[2]:end], " ")
		if _, ok := directive(line, "#TUNE"); ok && at[3] < len(comment) || looksLike(line) {
			lines = append(lines, line)
			end = at[0]
		}
	}
	slices.Reverse(lines)
	return lines
}
