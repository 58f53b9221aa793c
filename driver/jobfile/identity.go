package jobfile

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"pitchpipe/driver"
)

// hashLength is the number of hexadecimal digits of an identity: 48 bits, enough
// for the few thousand commands of one owner and one job name.
const hashLength = 12

// ScriptIdentity is a short hash that is equal for two scripts that run the same thing on
// other inputs or under other settings. Comments, blank lines, values of assignments and
// flags, numbers, redirections, and arguments that look like files are left out; the #! line
// counts. It errs towards "another thing": then a job is profiled once more, while a wrong
// "same" would give it the settings of a stranger.
func ScriptIdentity(src []byte) string { return driver.Digest(script(string(src)))[:hashLength] }

// CommandIdentity is that of a command and its arguments.
func CommandIdentity(argv []string) string {
	tokens := make([]token, len(argv))
	for i, a := range argv {
		tokens[i] = token{text: a}
	}
	return driver.Digest(strings.Join(normalise(tokens), " "))[:hashLength]
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
		if strings.HasPrefix(line, "export ") && strings.HasSuffix(strings.TrimRight(line, "\n"), FixedMark) {
			continue
		}
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

// closing returns the index after the parenthesis that closes the one at i, or after the
// line.
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

// left stands for every word that is left out.
const left = "_"

// machine reads the words of one line from left to right.
type machine struct {
	out       []string
	next      reading // of the next word
	afterFlag bool    // the last word was a flag without its value
	code      string  // the interpreter whose code comes next: -c or -m
	skip      bool    // the next word is the target of a redirection
}

// reading takes a word by its place in a command.
type reading func(m *machine, word string)

func normalise(tokens []token) []string {
	m := machine{next: (*machine).command}
	for _, t := range tokens {
		if t.operator {
			m.operator(t.text)
			continue
		}
		if m.skip {
			m.skip = false
			continue
		}
		m.next(&m, t.text)
	}
	return m.out
}

func (m *machine) emit(s string) {
	m.out = append(m.out, s)
	m.afterFlag = false
}

func (m *machine) operator(op string) {
	if strings.ContainsAny(op, "<>") {
		m.skip = !strings.HasSuffix(op, "<<") // a here-document's end word stays
		return
	}
	m.emit(op)
	m.next, m.code = (*machine).command, ""
}

// declared reads a word after export and the like.
func (m *machine) declared(w string) {
	if name, value, assigned := assignment(w); assigned {
		m.assign(name, value)
		return
	}
	m.emit(w)
}

// command reads the program, or a word of the shell's own before it.
func (m *machine) command(w string) {
	m.declared(w)
	if _, _, assigned := assignment(w); assigned || slices.Contains(strings.Fields("if then else elif fi do done while until ! { }"), w) {
		return
	}
	m.next, m.code = behind(w), ""
}

// behind reads the words after a word: one of the shell's own, or a program.
func behind(w string) reading {
	base := path.Base(w)
	for _, row := range []struct {
		next       reading
		word, some string
	}{
		{(*machine).argument, w, "for case function"},
		{(*machine).declared, w, "export readonly local declare typeset"},
		{(*machine).wrapped, base, "srun mpirun mpiexec time nice ionice numactl taskset env exec nohup timeout stdbuf setsid command xargs likwid-pin perf"},
		{(*machine).interpreted, base, shells},
		{(*machine).interpreted, strings.TrimRight(base, "0123456789."), "python pypy perl ruby julia Rscript node java lua torchrun accelerate php"},
	} {
		if slices.Contains(strings.Fields(row.some), row.word) {
			return row.next
		}
	}
	return (*machine).argument
}

const shells = "sh bash dash zsh ksh"

func (m *machine) assign(name, value string) {
	if strings.Contains(value, "$(") || strings.Contains(value, "`") {
		m.emit(name + "=" + withoutDigits(value)) // a program runs here
		return
	}
	m.emit(name + "=")
}

// wrapped reads a word after srun, env, nice and the like: flags, values and
// assignments until the program.
func (m *machine) wrapped(w string) {
	_, _, assigned := assignment(w)
	switch {
	case isNumber(w):
		m.emit(left)
	case isFlag(w):
		m.flag(w)
	case assigned || isPath(w) || !m.afterFlag:
		m.command(w)
	default:
		m.emit(withoutDigits(w)) // the value of a flag, or the program: kept either way
	}
}

// interpreted reads a word after an interpreter: its script comes.
func (m *machine) interpreted(w string) {
	switch {
	case m.code != "":
		if m.code == "sh" {
			m.emit(script(w))
		} else {
			m.emit(withoutDigits(w))
		}
		m.next = (*machine).argument
	case isFlag(w):
		m.flag(w)
		if w == "-c" || w == "-m" {
			m.code = "other"
			if slices.Contains(strings.Fields(shells), path.Base(m.out[len(m.out)-2])) && w == "-c" {
				m.code = "sh"
			}
		}
	default:
		m.emit(w)
		m.next = (*machine).argument
	}
}

// argument reads a word after the program.
func (m *machine) argument(w string) {
	switch {
	case isNumber(w):
		m.emit(left)
	case isFlag(w):
		m.flag(w)
	case isScript(w):
		m.emit(w)
	case m.afterFlag || isPath(w) || strings.HasPrefix(w, "$"):
		m.emit(left)
	default:
		m.emit(withoutDigits(w))
	}
}

// flag keeps the name of a flag: "--k=v" is "--k", "-n4" is "-n".
func (m *machine) flag(w string) {
	name, _, valued := strings.Cut(w, "=")
	if !strings.HasPrefix(name, "--") {
		if i := strings.IndexAny(name, "0123456789"); i > 0 {
			name, valued = name[:i], true
		}
	}
	m.emit(name)
	m.afterFlag = !valued
}

func assignment(w string) (name, value string, ok bool) {
	m := regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`).FindStringSubmatch(w)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

func isFlag(w string) bool { return len(w) > 1 && w[0] == '-' }

// isNumber holds for everything that starts like a number: 32, 1e-4, -5, 4G,
// 10:00, 1,2,4.
func isNumber(w string) bool {
	return !strings.HasPrefix(w, "--") && regexp.MustCompile(`^[-+.]{0,2}[0-9][^/]*$`).MatchString(w)
}

func isPath(w string) bool { return strings.ContainsAny(w, "/.*~:?[") }

// isScript holds for files that are programs themselves.
func isScript(w string) bool {
	return slices.Contains([]string{
		".py", ".sh", ".bash", ".pl", ".rb", ".R", ".r", ".jl", ".js", ".mjs", ".lua", ".jar", ".m",
	}, path.Ext(w))
}

func withoutDigits(w string) string {
	return regexp.MustCompile(`[0-9]+`).ReplaceAllString(w, left)
}
