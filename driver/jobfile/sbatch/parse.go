package sbatch

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile"
)

// Parse reads a batch script. The error, if any, is of type jobfile.Errors and
// holds every fault in the order of the places. The filename serves messages and,
// without --job-name, names the job.
//
// What only Slurm can do is a fault: it is for the embedded scheduler.
func Parse(filename string, src []byte) (*jobfile.Job, error) { return read(filename, src, false) }

// ParseForSlurm reads a batch script that Slurm itself runs: arrays, dependencies,
// several nodes and tasks and the like are accepted, and left to Slurm.
func ParseForSlurm(filename string, src []byte) (*jobfile.Job, error) {
	return read(filename, src, true)
}

func read(filename string, src []byte, slurm bool) (*jobfile.Job, error) {
	p := &parser{
		filename: filename, slurm: slurm,
		job: &jobfile.Job{
			Format: jobfile.Sbatch,
			Name:   path.Base(filename),
			Cores:  1,
			Script: src,
		},
	}
	p.whole(src)
	lines := strings.Split(string(src), "\n")
	p.lines(lines)
	p.unhandled(lines)
	p.finish()
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	e := environment(filename, lines)
	p.job.Env, p.job.Fixed, p.job.Computed, p.job.Follow = e.env, e.fixed, e.computed, e.follow
	p.job.Command = jobfile.ScriptIdentity(src)
	return p.job, nil
}

type parser struct {
	filename string
	slurm    bool // Slurm runs the script
	job      *jobfile.Job
	errs     jobfile.Errors

	perCore    int64       // bytes of --mem-per-cpu, 0 = not given
	perCoreAt  jobfile.Pos // where it is
	totalGiven bool        // --mem was given
}

func (p *parser) fail(line, column int, found, want string) {
	p.errs = append(p.errs, jobfile.Error{Pos: p.pos(line, column), Found: found, Want: want})
}

func (p *parser) pos(line, column int) jobfile.Pos {
	return jobfile.Pos{Filename: p.filename, Line: line, Column: column}
}

// mark is a first line after a byte order mark, which no editor shows.
const mark = "\ufeff#!"

// whole checks what concerns the script as a whole, as sbatch does.
func (p *parser) whole(src []byte) {
	if bytes.HasPrefix(src, []byte(mark)) {
		p.fail(1, 1, "the script begins with a byte order mark", "want the file saved as UTF-8 without one")
	} else if !bytes.HasPrefix(src, []byte("#!")) {
		p.fail(1, 1, "the script does not start with #!",
			"want the path of its interpreter in the first line, such as #!/bin/sh")
	}
	if i := bytes.Index(src, []byte("\r\n")); i >= 0 {
		at := jobfile.At(p.filename, src, i)
		p.fail(at.Line, at.Column, "the line ends as under DOS", "want Unix line ends")
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		at := jobfile.At(p.filename, src, i)
		p.fail(at.Line, at.Column, "a NUL byte", "want a text file")
	}
}

// lines reads the directives. Slurm stops at the first line that is not blank or a
// comment.
func (p *parser) lines(lines []string) {
	begun := false
	for i, raw := range lines {
		line, number := strings.TrimSuffix(raw, "\r"), i+1
		text := strings.TrimLeft(line, " \t")
		rest, tune := directive(text, "#TUNE")
		switch {
		case tune && begun:
			p.fail(number, len(line)-len(text)+1, "#TUNE behind the first command",
				"want it before the first command, where #SBATCH lines may stand")
		case tune && len(text) != len(line):
			p.fail(number, len(line)-len(text)+1, "#TUNE behind blanks", "want it at the start of the line")
		case tune:
			p.tune(number, line, len(line)-len(rest))
		case begun || text == "":
		case looksLike(line):
			p.job.Warnings = append(p.job.Warnings, jobfile.Error{
				Pos: p.pos(number, 1), Found: "a comment that looks like a tuning line", Want: "want #TUNE and a blank, in capitals and without a blank behind #",
			})
		case text[0] != '#' && !(i == 0 && strings.HasPrefix(text, mark)):
			begun = true
		default:
			if rest, ok := directive(line, "#SBATCH"); ok {
				p.options(number, line, len(line)-len(rest))
			}
		}
	}
}

// unhandled warns of a shell that the signal of the checkpoint ends, and the job with it: it starts its program
// as a child, and traps nothing.
func (p *parser) unhandled(lines []string) {
	if p.job.Stanza == nil {
		return
	}
	runs := func(line string) bool { return strings.TrimSpace(line) != "" && line[0] != '#' }
	handles := regexp.MustCompile(`^([^#]*[\s;&|({])?(exec|trap|source|\.)\s`).MatchString
	shell := regexp.MustCompile(`^#!.*/(env +)?(ba|da|k|z)?sh\b`).MatchString(lines[0])
	if !shell || !slices.ContainsFunc(lines, runs) || slices.ContainsFunc(lines, handles) {
		return
	}
	for _, b := range p.job.Stanza.Blocks {
		if b.Type == "checkpoint" {
			p.job.Warnings = append(p.job.Warnings, jobfile.Error{
				Pos: b.Pos, Found: "its signal ends the shell of the script, and the job with it", Want: "want the program started with exec, or a trap for the signal",
			})
		}
	}
}

// looksLike reports whether a comment has the form of a #TUNE line, at most two words and
// then key=value, but begins otherwise, such as "# TUNE", "#Tune", "#TUNE:" or "#TUNEknob".
func looksLike(line string) bool {
	m := regexp.MustCompile(`^#[ \t]*(?:[Tt][Uu][Nn][Ee]:?[ \t]+|TUNE:?)([a-z](?:[^=]*[a-z_])?)=`).FindStringSubmatch(line)
	return m != nil && len(strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == '\t' })) <= 3
}

// directive returns what follows the word, if the line begins with it.
func directive(line, word string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(line, word)
	return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// finish derives what depends on several options.
func (p *parser) finish() {
	switch at := p.perCoreAt; {
	case p.perCore == 0:
	case p.totalGiven:
		p.fail(at.Line, at.Column, "both --mem and --mem-per-cpu", "want one of them")
	case p.job.Cores > 0 && p.perCore > maxMemory/int64(p.job.Cores):
		p.fail(at.Line, at.Column, "--mem-per-cpu times the cores is more memory than any machine has", "")
	default:
		p.job.MemoryBytes = p.perCore * int64(p.job.Cores)
	}
}
