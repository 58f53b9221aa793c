package sbatch

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile"
)

// environment reads the assignments at the top of the script; doc.go says which.
func environment(filename string, lines []string) *reader {
	e := &reader{env: map[string]string{}, fixed: map[string]jobfile.Pos{}, computed: map[string]jobfile.Pos{}, follow: map[string]jobfile.Pos{}}
	for i, line := range lines {
		e.at = jobfile.Pos{Filename: filename, Line: i + 1}
		if !e.line(line) {
			break
		}
	}
	return e
}

type reader struct {
	env                     map[string]string
	fixed, computed, follow map[string]jobfile.Pos
	at                      jobfile.Pos
}

func (e *reader) line(line string) bool {
	text := strings.TrimLeft(line, " \t")
	if text == "" || text[0] == '#' {
		return true
	}
	first, rest, _ := strings.Cut(text, " ")
	switch {
	case first == ":":
		e.defaults(rest)
		return true
	case slices.Contains([]string{"set", "ulimit", "umask", "cd", "module", "true"}, first):
		return true
	case first == "export":
		text = strings.TrimLeft(rest, " \t")
	}
	return e.assignments(text, len(line)-len(text), first == "export")
}

// assignments reads NAME=value words; column is the offset of text in its line.
func (e *reader) assignments(text string, column int, exported bool) bool {
	env, fixed, computed, follow := maps.Clone(e.env), maps.Clone(e.fixed), maps.Clone(e.computed), maps.Clone(e.follow)
	for i := 0; ; {
		for i < len(text) && isBlank(text[i]) {
			i++
		}
		if i == len(text) || text[i] == '#' {
			return true
		}
		name := regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_]*").FindString(text[i:])
		if name == "" || i+len(name) == len(text) || text[i+len(name)] != '=' {
			if exported && name != "" && (i+len(name) == len(text) || isBlank(text[i+len(name)])) {
				i += len(name) // export NAME
				continue
			}
			e.env, e.fixed, e.computed, e.follow = env, fixed, computed, follow // the assignments were for one command only
			return false
		}
		at := e.at
		at.Column = column + i + 1
		i += len(name) + 1
		value, end, readable := shellValue(text, i)
		if end < len(text) && !isBlank(text[end]) {
			delete(e.env, name)
			return false // an operator: the rest is more than assignments
		}
		e.assign(name, value, readable, at)
		i = end
	}
}

func (e *reader) assign(name, value string, readable bool, at jobfile.Pos) {
	if e.env[name] != "" && strings.HasPrefix(value, "${"+name+":-") {
		return // it keeps what it has
	}
	from, fallback, isDefault := reference(value)
	_, fixed := e.fixed[from]
	delete(e.fixed, name)
	delete(e.computed, name)
	delete(e.follow, name)
	if !readable {
		delete(e.env, name)
		if follows(name, value) {
			e.follow[name] = at
		}
		if !strings.Contains(value, name) {
			e.computed[name] = at
		}
		return
	}
	if !isDefault {
		e.env[name] = value
		e.fixed[name] = at
		return
	}
	if known, ok := e.env[from]; ok {
		fallback = known
	} else {
		e.env[from] = fallback
	}
	e.env[name] = fallback
	if from != name || fixed {
		e.fixed[name] = at
	}
}

// follows reports whether a value is $SLURM_CPUS_PER_TASK, alone or where name has none. That may have a default too.
func follows(name, value string) bool {
	const cores = `\$(SLURM_CPUS_PER_TASK|\{SLURM_CPUS_PER_TASK(:?-\w*)?\})`
	return strings.Contains(value, "SLURM_CPUS_PER_TASK") && regexp.MustCompile(`^(`+cores+`|\$\{`+name+`:?-`+cores+`\})$`).MatchString(value)
}

// defaults reads the arguments of the command that does nothing: "${NAME:=value}"
// gives NAME a value where it has none.
func (e *reader) defaults(text string) {
	for field := range strings.FieldsSeq(text) {
		from, fallback, ok := reference(strings.Replace(strings.Trim(field, `"`), "=", "-", 1))
		if _, known := e.env[from]; ok && !known {
			e.env[from] = fallback
		}
	}
}

// reference reads ${NAME:-default} and ${NAME-default} with a literal default.
func reference(s string) (name, fallback string, ok bool) {
	m := regexp.MustCompile("(?s)^\\$\\{([A-Za-z_][A-Za-z0-9_]*):?-([^${}`\\\\'\"]*)\\}$").FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// shellValue reads one value from i on without expanding it. It is readable if it
// is one literal, or one reference with a default.
func shellValue(text string, i int) (value string, end int, readable bool) {
	if i < len(text) && (text[i] == '\'' || text[i] == '"') {
		n := strings.IndexByte(text[i+1:], text[i])
		if n < 0 {
			return "", len(text), false
		}
		value, end = text[i+1:i+1+n], i+n+2
		whole := end == len(text) || isBlank(text[end])
		_, _, isDefault := reference(value)
		if text[i] == '\'' {
			return value, wordEnd(text, end), whole && !isDefault // a literal that only looks like a default is not worth a rule
		}
		return value, wordEnd(text, end), whole && (isDefault || !strings.ContainsAny(value, "$`\\"))
	}
	end = wordEnd(text, i)
	value = text[i:end]
	if _, _, ok := reference(value); ok {
		return value, end, true
	}
	return value, end, !strings.ContainsAny(value, "$`\\'\"*?[~{")
}

// wordEnd finds the end of a word: a blank or an operator outside of quotes and
// braces.
func wordEnd(text string, i int) int {
	depth := 0
	var quote byte
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '\\':
			i++
		case c == '{' || c == '(':
			depth++
		case c == '}' || c == ')':
			depth--
		case depth <= 0 && (isBlank(c) || strings.IndexByte("|&;<>", c) >= 0):
			return i
		}
	}
	return min(i, len(text))
}
