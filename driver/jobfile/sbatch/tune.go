package sbatch

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
)

// tune reads one #TUNE line from byte i on. A line with a fault is left out as a
// whole, so that one fault is one error.
func (p *parser) tune(number int, line string, i int) {
	s := &scanner{line: line, i: i, number: number, filename: p.filename}
	block := jobfile.Block{Pos: p.pos(number, 1)}
	for first := true; s.next(); first = false {
		start := s.i
		name := s.name()
		switch {
		case s.at('='):
			value, valuePos := s.value(name)
			block.Attrs = append(block.Attrs, jobfile.Attr{
				Name: name, Pos: p.pos(number, start+1), Value: value, ValuePos: valuePos,
			})
		case !s.blank():
			s.fault(s.i, fmt.Sprintf("the character %q in the name of a key", s.line[s.i]), "want key=value")
		case first:
			block.Type, block.Pos = name, p.pos(number, start+1)
		case block.Type != "" && block.Label == "" && len(block.Attrs) == 0:
			block.Label, block.LabelPos = name, p.pos(number, start+1)
		default:
			s.fault(start, fmt.Sprintf("the word %q where a key is expected", name),
				"want key=value without blanks around the equals sign; quote values that hold blanks")
		}
		if s.err != nil {
			p.errs = append(p.errs, *s.err)
			return
		}
	}
	p.merge(&block)
}

// merge adds what a line says to the stanza. Keys that were there before are kept
// twice: to judge them is not our work.
func (p *parser) merge(b *jobfile.Block) {
	if p.job.Stanza == nil {
		p.job.Stanza = &jobfile.Block{Pos: b.Pos}
	}
	top := p.job.Stanza
	if b.Type == "" {
		top.Attrs = append(top.Attrs, b.Attrs...)
		return
	}
	for _, old := range top.Blocks {
		if old.Type == b.Type && old.Label == b.Label {
			old.Attrs = append(old.Attrs, b.Attrs...)
			return
		}
	}
	top.Blocks = append(top.Blocks, b)
}

type scanner struct {
	filename string
	number   int
	line     string
	i        int
	err      *jobfile.Error
}

// next skips blanks and reports whether anything follows.
func (s *scanner) next() bool {
	for s.i < len(s.line) && isBlank(s.line[s.i]) {
		s.i++
	}
	return s.i < len(s.line)
}

func (s *scanner) at(c byte) bool { return s.i < len(s.line) && s.line[s.i] == c }

// blank reports whether a word ends here.
func (s *scanner) blank() bool { return s.i == len(s.line) || isBlank(s.line[s.i]) }

// name reads up to an equals sign, a quote or a blank.
func (s *scanner) name() string {
	start := s.i
	for !s.blank() && !strings.ContainsRune(`='"`, rune(s.line[s.i])) {
		s.i++
	}
	return s.line[start:s.i]
}

func (s *scanner) fault(i int, found, want string) {
	if s.err == nil {
		s.err = &jobfile.Error{Pos: s.pos(i), Found: found, Want: want}
	}
}

func (s *scanner) pos(i int) jobfile.Pos {
	return jobfile.Pos{Filename: s.filename, Line: s.number, Column: i + 1}
}

// value reads the value after the equals sign at i: one element, or several with
// commas between them.
func (s *scanner) value(name string) (jobfile.Value, jobfile.Pos) {
	if name == "" {
		s.fault(s.i, "an equals sign without a key", "want key=value without blanks around the equals sign")
	}
	s.i++
	at := s.pos(s.i)
	var items []jobfile.Item
	for {
		item := jobfile.Item{Pos: s.pos(s.i), Value: s.element()}
		items = append(items, item)
		if s.err != nil || !s.at(',') {
			break
		}
		s.i++
	}
	if s.err == nil && !s.blank() {
		s.fault(s.i, fmt.Sprintf("the character %q behind a closing quote", s.line[s.i]), "want quotes around the whole value")
	}
	if len(items) == 1 {
		v := items[0].Value
		if s.err == nil && v.Kind == jobfile.Bare && v.Text == "" {
			s.fault(s.i, fmt.Sprintf("no value behind %s=", name), "want a value without a blank before it")
		}
		return v, at
	}
	for _, item := range items {
		if item.Value.Kind == jobfile.Bare && item.Value.Text == "" {
			s.fault(item.Pos.Column-1, "an empty element in a list", "want values with one comma between them and no blanks")
		}
	}
	return jobfile.Value{Kind: jobfile.List, List: items}, at
}

func (s *scanner) element() jobfile.Value {
	if s.at('\'') || s.at('"') {
		return jobfile.Value{Kind: jobfile.String, Text: cty.NormalizeString(s.quoted())}
	}
	start := s.i
	for !s.blank() && s.line[s.i] != ',' {
		if strings.IndexByte(`'"`, s.line[s.i]) >= 0 {
			s.fault(s.i, "a quote inside a bare value", "want quotes around the whole value")
			break
		}
		s.i++
	}
	text := cty.NormalizeString(s.line[start:s.i])
	v := jobfile.Value{Kind: jobfile.Bare, Text: text}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		v.Number = f
	}
	return v
}

func (s *scanner) quoted() string {
	quote, start := s.line[s.i], s.i
	var b strings.Builder
	for s.i++; s.i < len(s.line); s.i++ {
		c := s.line[s.i]
		switch {
		case c == quote:
			s.i++
			return b.String()
		case c == '\\' && quote == '"':
			if s.i+1 == len(s.line) || s.line[s.i+1] != '"' && s.line[s.i+1] != '\\' {
				s.fault(s.i, "a backslash in double quotes", `want \" or \\, or single quotes, in which everything is literal`)
				return ""
			}
			s.i++
			b.WriteByte(s.line[s.i])
		default:
			b.WriteByte(c)
		}
	}
	s.fault(start, fmt.Sprintf("the quote %c is not closed", quote), "want the closing quote on the same line")
	return ""
}

// WithComment returns a script with the #TUNE lines of the job's comment after its first line,
// so that a stanza can come by
//
//	sbatch --comment='#TUNE mode=apply #TUNE knob cores values=1,2' train.sbatch
//
// where a script cannot be changed. Each #TUNE that begins a word begins a line. A script is
// returned as it is if it has its own #TUNE line, or if the comment has none.
func WithComment(script []byte, comment string) []byte {
	lines := fromComment(comment)
	if len(lines) == 0 || bytes.HasPrefix(script, []byte("#TUNE")) || bytes.Contains(script, []byte("\n#TUNE")) {
		return script
	}
	first, rest, _ := bytes.Cut(script, []byte("\n"))
	return slices.Concat(first, []byte("\n"+strings.Join(lines, "\n")+"\n"), rest)
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
