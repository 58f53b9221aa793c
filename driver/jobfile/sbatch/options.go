package sbatch

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/jobfile"
)

// maxMemory is the largest amount that is taken for a real one.
const maxMemory = math.MaxInt64 / 2

// options reads the options of one #SBATCH line from byte i on.
func (p *parser) options(number int, line string, i int) {
	rest := p.words(number, line, i)
	known := options()
	for len(rest) > 0 {
		w := rest[0]
		rest = rest[1:]
		switch {
		case strings.HasPrefix(w.text, "--") && len(w.text) > 2:
			rest = p.long(number, w, rest, known)
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1:
			rest = p.short(number, w, rest, known)
		case w.text == "hetjob" || w.text == "packjob":
			if p.slurm {
				p.job.Observed = w.text
				return // the options of another component
			}
			p.fail(number, w.column, "several components", "jobs of several components are not run by the local scheduler; submit them to Slurm")
			return
		default:
			p.fail(number, w.column, fmt.Sprintf("the word %q where an option is expected", w.text),
				"want --option=value or -o value; quote values that hold blanks")
		}
	}
}

// long reads --option, --option=value and --option value.
func (p *parser) long(number int, w word, rest []word, known []option) []word {
	name, value, joined := strings.Cut(w.text, "=")
	at := place{line: number, name: name, column: w.column, value: w.column + len(name) + 1}
	i := slices.IndexFunc(known, func(o option) bool { return "--"+o.long == name })
	if i < 0 {
		p.unknown(at, known)
		if !joined && len(rest) > 0 && !strings.HasPrefix(rest[0].text, "-") {
			return rest[1:] // most likely its value: one error is enough
		}
		return rest
	}
	return p.apply(known[i], at, value, joined, rest)
}

// short reads -o value, -ovalue, and several letters without values.
func (p *parser) short(number int, w word, rest []word, known []option) []word {
	for j := 1; j < len(w.text); j++ {
		at := place{line: number, name: "-" + w.text[j:j+1], column: w.column, value: w.column + j + 1}
		i := slices.IndexFunc(known, func(o option) bool { return o.short == w.text[j] })
		if i < 0 {
			at.name = w.text
			p.unknown(at, known)
			return rest
		}
		if known[i].takes == argument {
			return p.apply(known[i], at, w.text[j+1:], j+1 < len(w.text), rest)
		}
		p.apply(known[i], at, "", false, nil)
	}
	return rest
}

func (p *parser) apply(o option, at place, value string, joined bool, rest []word) []word {
	switch {
	case o.takes == nothing && joined:
		p.fail(at.line, at.value, fmt.Sprintf("%s has the value %q", at.name, value), "want no value")
		return rest
	case o.takes == argument && !joined && len(rest) == 0:
		p.fail(at.line, at.column, at.name+" has no value", "want "+at.name+" and a value")
		return rest
	case o.takes == argument && !joined:
		value, at.value = rest[0].text, rest[0].column
		rest = rest[1:]
	}
	switch {
	case o.why != "" && !(p.slurm && o.slurms):
		p.fail(at.line, at.column, at.name, o.why)
	case o.use != nil && !o.use(p, at, value):
		p.fail(at.line, at.value, fmt.Sprintf("%s is %q", at.name, value), o.want)
	}
	return rest
}

func (p *parser) unknown(at place, known []option) {
	names := make([]string, len(known))
	for i, o := range known {
		names[i] = "--" + o.long
	}
	found, near := fmt.Sprintf("unknown option %q", at.name), jobfile.Suggestion(at.name, names)
	if p.slurm { // which refuses it itself, unless it is one of a plugin, of another version, or shortened
		p.job.Warnings = append(p.job.Warnings, jobfile.Error{Pos: p.pos(at.line, at.column), Found: found, Want: "left to Slurm" + near})
		return
	}
	p.fail(at.line, at.column, found, "want an option of sbatch"+near)
}

// idle warns of an option that changes what a job does under Slurm, and nothing here.
func (p *parser) idle(at place, _ string) bool {
	if !p.slurm {
		p.job.Warnings = append(p.job.Warnings, jobfile.Error{Pos: p.pos(at.line, at.column), Found: at.name, Want: "the local scheduler, unlike Slurm, ignores it"})
	}
	return true
}

func (p *parser) cores(_ place, value string) bool {
	n, err := strconv.Atoi(value)
	p.job.Cores = n
	return err == nil && n >= 1 && n <= 1<<20
}

func (p *parser) memory(_ place, value string) (ok bool) {
	p.job.MemoryBytes, ok = memory(value)
	p.totalGiven = true
	return ok
}

func (p *parser) memoryPerCore(at place, value string) (ok bool) {
	p.perCore, ok = memory(value)
	p.perCoreAt = p.pos(at.line, at.column)
	return ok
}

// memory reads an amount as sbatch does: a whole number, in M without a unit.
func memory(s string) (int64, bool) {
	m := regexp.MustCompile(`^([0-9]+)(?:([KMGT])B?)?$`).FindStringSubmatch(strings.ToUpper(s)) // a lone B is not a unit of sbatch
	if m == nil {
		return 0, false
	}
	shift := 20
	if m[2] != "" {
		shift = 10 * (strings.Index("KMGT", m[2]) + 1)
	}
	n, err := strconv.ParseUint(m[1], 10, 62)
	if err != nil || n > maxMemory>>shift {
		return 0, false
	}
	return int64(n) << shift, true
}

func (p *parser) timeLimit(_ place, value string) (ok bool) {
	p.job.TimeLimit, ok = TimeLimit(value)
	return ok
}

// TimeLimit reads a time limit as sbatch does; 0 is none.
func TimeLimit(s string) (time.Duration, bool) {
	if s == "-1" || strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE") {
		return 0, true
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	fields := append([]string{days}, strings.Split(clock, ":")...)
	// A lone number is minutes, but hours after days; two are minutes and seconds,
	// but hours and minutes after days.
	units := []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}
	switch {
	case len(fields) > len(units):
		return 0, false
	case !hasDays && len(fields) < len(units):
		units = append(units[:1], units[2:]...)
	}
	var sum time.Duration
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 31)
		if err != nil || n > uint64((math.MaxInt64/8)/int64(units[i])) {
			return 0, false
		}
		sum += time.Duration(n) * units[i]
	}
	return sum, true
}

func text(of func(*jobfile.Job) *string) func(*parser, place, string) bool {
	return func(p *parser, _ place, value string) bool {
		*of(p.job) = value
		return true
	}
}

func (p *parser) clusters(at place, _ string) bool {
	p.job.Clusters = p.pos(at.line, at.column)
	return true
}

func (p *parser) requeue(at place, _ string) bool {
	p.job.NoRequeue = at.name == "--no-requeue"
	return true
}

// onlyOne accepts one node and one task: Slurm starts a script once, and what
// goes beyond is the work of srun on several nodes.
func (p *parser) onlyOne(at place, value string) bool {
	low, high, isRange := strings.Cut(value, "-")
	if value == "1" || isRange && low == "1" && high == "1" {
		return true
	}
	n, err := strconv.Atoi(low)
	return err == nil && n >= 1 && p.slurm && p.observed(at, value)
}

func (p *parser) observed(at place, value string) bool {
	p.job.Observed = at.name + "=" + value
	return true
}

// exclusive: with a word it shares its node with jobs of its user or its label.
func (p *parser) exclusive(_ place, value string) bool {
	p.job.Whole = value == ""
	return true
}

func (p *parser) export(_ place, value string) bool {
	p.job.Export = value
	return p.slurm || !strings.Contains(value, "=")
}

type word struct {
	text   string // quotes removed
	column int    // of its first byte, from 1
}

// words cuts a #SBATCH line from byte i on. Single quotes are literal, in double
// quotes and outside of quotes a backslash takes the next byte as it is, and a
// word that begins with # ends the line.
func (p *parser) words(number int, line string, i int) (out []word) {
	for {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) || line[i] == '#' {
			return out
		}
		text, end, open := oneWord(line, i)
		if open >= 0 {
			p.fail(number, open+1, fmt.Sprintf("the quote %c is not closed", line[open]), "want the closing quote on the same line")
			return nil
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
