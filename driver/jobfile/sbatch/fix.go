package sbatch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile"
)

// Fix rewrites a script with variables that have values: lines after its last directive
// export them. A variable of a knob that stays gets its value only where the environment has
// none, since a restart sets it. The error, if any, is of type jobfile.Errors.
func Fix(filename string, src []byte, f jobfile.Fix) ([]byte, error) {
	job, err := ParseForSlurm(filename, src)
	if err != nil {
		return nil, err
	}
	exports, err := exports(filename, src, job, f)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(src), "\n")
	last, mode := 0, f.Mode
	if job.Stanza != nil && job.Stanza.Text("mode") != "" {
		mode = ""
	}
	for i, line := range lines {
		if text := strings.TrimLeft(line, " \t\n"); text != "" && text[0] != '#' {
			break
		}
		rest, tune := directive(strings.TrimRight(line, "\n"), "#TUNE")
		if _, option := directive(line, "#SBATCH"); option || tune {
			last = i
		}
		if tune {
			lines[i] = without(line, rest, f)
			if lines[i] == "" && mode != "" {
				lines[i], mode = "#TUNE mode="+mode+"\n", ""
			}
		}
	}
	if f.Cores > 0 { // the last one counts
		exports = slices.Insert(exports, 0, fmt.Sprintf("#SBATCH --cpus-per-task=%d\n", f.Cores))
	}
	if end := &lines[last]; *end != "" && !strings.HasSuffix(*end, "\n") {
		*end = strings.TrimRight(*end, "\r") + "\n"
	}
	return []byte(strings.Join(slices.Insert(lines, last+1, exports...), "")), nil
}

// exports are the lines that set the variables, if the script lets them.
func exports(filename string, src []byte, job *jobfile.Job, f jobfile.Fix) (lines []string, err error) {
	var faults jobfile.Errors
	top := jobfile.Pos{Filename: filename, Line: 1, Column: 1}
	first, _, _ := strings.Cut(string(src), "\n")
	if len(f.Env) > 0 && !slices.ContainsFunc(strings.Fields(first[2:]), func(word string) bool {
		return slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh"}, path.Base(word))
	}) {
		faults = append(faults, jobfile.Error{Pos: top, Found: "a script that no shell runs", Want: "want #!/bin/sh, or bash, dash, ksh or zsh"})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		value := f.Env[name]
		stays := job.Stanza != nil && slices.ContainsFunc(job.Stanza.Blocks, func(b *jobfile.Block) bool {
			return b.Text("env") == name && !f.Leaves(b.Type, b.Label)
		})
		at, fixed := job.Fixed[name]
		switch {
		case fixed:
			faults = append(faults, jobfile.Error{Pos: at, Found: "the script sets " + name + " itself", Want: "want it written ${" + name + ":-...}"})
		case stays && !jobfile.IsPlain(value):
			faults = append(faults, jobfile.Error{Pos: top, Found: fmt.Sprintf("the value %q of a knob that stays", value), Want: "want only " + jobfile.ValueBytes})
		case stays:
			value = `"${` + name + `:-` + strings.ReplaceAll(value, `}`, `\}`) + `}"`
		default:
			value = `'` + strings.ReplaceAll(value, `'`, `'\''`) + `'`
		}
		lines = append(lines, "export "+name+"="+value+jobfile.FixedMark+"\n")
	}
	return lines, faults.Err()
}

// without is a #TUNE line, empty where its block is left out, else without the keys that are.
// Rest is what follows #TUNE.
func without(line, rest string, f jobfile.Fix) string {
	words := append(strings.Fields(rest), "", "")
	if f.Leaves(words[0], words[1]) {
		return ""
	}
	s := &scanner{line: strings.TrimRight(line, "\n"), i: len("#TUNE")}
	out, kept := "", 0
	for end := s.i; s.next(); end = s.i {
		name := s.name()
		if !s.at('=') {
			continue
		}
		if s.value(name); f.Drops(words[0], name) {
			out, kept = out+line[kept:end], s.i
		}
	}
	return out + line[kept:]
}
