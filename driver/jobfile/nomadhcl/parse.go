package nomadhcl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"pitchpipe/driver/jobfile"
)

// The bounds of a job file: the parser of the language recurses, and a file of
// nothing but opening brackets must not bring the process down.
const (
	maxSize   = 256 << 10
	maxDepth  = 2000
	maxLocals = 1000 // each may have to wait for all others
)

// Parse reads a Nomad job file that the local scheduler runs; vars are the values of its
// variables, as given with --var. The error, if any, is of type jobfile.Errors and holds
// every fault in the order of the places.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return parse(filename, src, vars, false)
}

// ParseForNomad reads a Nomad job file that an agent will read too: the tuning stanza,
// and of the rest what the file alone determines. Everything that only Nomad
// understands is left to it. It refuses what no agent could mend: broken syntax, a stanza that
// cannot be read, and a stanza of a job that cannot be tuned (a service; several tasks without
// a main one). A task that asks for a share of the CPU has one core. The error, if any, is of
// type jobfile.Errors.
func ParseForNomad(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return parse(filename, src, vars, true)
}

func parse(filename string, src []byte, vars map[string]string, lenient bool) (*jobfile.Job, error) {
	p, _ := read(filename, src, vars, lenient)
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	p.job.Command = jobfile.CommandIdentity(p.job.Argv)
	return p.job, nil
}

// read reads a file; the parser has its faults.
func read(filename string, src []byte, vars map[string]string, lenient bool) (*parser, *hclsyntax.Body) {
	p := newParser(filename, src)
	p.vars, p.lenient = vars, lenient
	body, ok := p.syntax()
	if ok {
		p.file(body)
	}
	return p, body
}

func newParser(filename string, src []byte) *parser {
	return &parser{
		filename: filename, src: src, left: maxWork,
		job: &jobfile.Job{Format: jobfile.NomadHCL, Cores: 1, Env: map[string]string{}, Meta: map[string]string{}},
	}
}

type parser struct {
	filename string
	src      []byte
	vars     map[string]string
	lenient  bool  // what the file alone does not determine is left to Nomad
	left     int64 // of maxWork
	scope    *hcl.EvalContext
	job      *jobfile.Job
	errs     jobfile.Errors

	stanzaAt *jobfile.Pos // where the tuning stanza is, nil until one is found

	// What a Fix changes, nil where there is none: the main task, and the stanza as a block or
	// as an expression.
	task   *hclsyntax.Block
	tuning *hclsyntax.Block
	tuned  hcl.Expression
}

func (p *parser) fail(at jobfile.Pos, found, want string) {
	p.errs = append(p.errs, jobfile.Error{Pos: at, Found: found, Want: want})
}

// pos turns a place of the language, whose columns are characters, into ours.
func (p *parser) pos(r hcl.Range) jobfile.Pos {
	return jobfile.At(p.filename, p.src, r.Start.Byte)
}

func (p *parser) top() jobfile.Pos { return jobfile.Pos{Filename: p.filename, Line: 1, Column: 1} }

func (p *parser) text(r hcl.Range) string {
	if r.Start.Byte > r.End.Byte || r.End.Byte > len(p.src) {
		return ""
	}
	return string(p.src[r.Start.Byte:r.End.Byte])
}

func (p *parser) diagnose(diags hcl.Diagnostics) {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := p.top()
		if d.Subject != nil {
			at = p.pos(*d.Subject)
		}
		detail := strings.Join(strings.Fields(d.Detail), " ")
		p.fail(at, strings.ToLower(d.Summary[:1])+d.Summary[1:], strings.TrimSuffix(detail, "."))
	}
}

// syntax parses the file and keeps what only Nomad can interpolate.
func (p *parser) syntax() (*hclsyntax.Body, bool) {
	top := p.top()
	switch {
	case len(p.src) > maxSize:
		p.fail(top, "a job file of more than 256 KiB", "want a smaller one")
		return nil, false
	case !utf8.Valid(p.src):
		p.fail(top, "text that is not UTF-8", "want a text file")
		return nil, false
	case depth(p.src, p.filename) > maxDepth:
		p.fail(top, "brackets and operators beyond all reason", fmt.Sprintf("want at most %d", maxDepth))
		return nil, false
	}
	file, diags := hclsyntax.ParseConfig(p.src, p.filename, hcl.InitialPos)
	if diags.HasErrors() {
		p.diagnose(diags)
		return nil, false
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		p.fail(top, "no job", "want a job block")
		return nil, false
	}
	p.diagnose(hclsyntax.VisitAll(body, p.keepRuntime))
	return body, true
}

// depth bounds the depth of the syntax tree from above: brackets that are open at a time, and
// all operators, which may follow or contain each other.
func depth(src []byte, filename string) int {
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos) // its faults come again from the parser
	open, deepest, operators := 0, 0, 0
	for _, t := range tokens {
		switch {
		case strings.ContainsRune("([{", rune(t.Type)), t.Type == hclsyntax.TokenTemplateInterp:
			open++
			deepest = max(deepest, open)
		case strings.ContainsRune(")]}", rune(t.Type)), t.Type == hclsyntax.TokenTemplateSeqEnd:
			open = max(open-1, 0)
		case strings.ContainsRune("!-+*/%∧∨≔≠<≤>≥?", rune(t.Type)), t.Type == hclsyntax.TokenEqualOp, t.Type == hclsyntax.TokenTemplateControl:
			operators++
		}
	}
	return deepest + operators
}

func (p *parser) file(body *hclsyntax.Body) {
	if !p.lenient {
		p.check(outermost(), body, p.top())
	}
	p.variables(append(blocksOf(body, "variable"), p.listed(body)...))
	p.locals(blocksOf(body, "locals"))
	jobs := blocksOf(body, "job")
	if len(p.errs) > 0 {
		return // every use of them would be an extra error
	}
	if len(jobs) != 1 {
		p.fail(p.top(), fmt.Sprintf("%d jobs", len(jobs)), "want one job block")
		return
	}
	if !p.lenient {
		p.check(localJob(), jobs[0].Body, p.pos(jobs[0].TypeRange))
	}
	if len(p.errs) == 0 {
		p.nomadJob(jobs[0])
	}
}
