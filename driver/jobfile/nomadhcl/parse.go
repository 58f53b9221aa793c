package nomadhcl

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/identity"
)

// The bounds of a job file: the parser of the language recurses, and a file of
// nothing but opening brackets must not bring the process down.
const (
	maxSize  = 256 << 10
	maxDepth = 2000
)

// Parse reads a Nomad job file; vars are the values of its variables, as given
// with --var. The error, if any, is of type jobfile.Errors and holds every fault
// in the order of the places.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return newParser(filename, src, vars).parse((*parser).file)
}

func (p *parser) parse(read func(*parser, *hclsyntax.Body)) (*jobfile.Job, error) {
	if body, ok := p.syntax(); ok {
		read(p, body)
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	p.job.Command = identity.Argv(p.job.Argv)
	return p.job, nil
}

func newParser(filename string, src []byte, vars map[string]string) *parser {
	return &parser{
		filename: filename,
		src:      src,
		vars:     vars,
		job: &jobfile.Job{
			Format: jobfile.NomadHCL,
			Cores:  1,
			Env:    map[string]string{},
			Meta:   map[string]string{},
		},
	}
}

// parser gathers what the file says.
type parser struct {
	filename string
	src      []byte
	vars     map[string]string
	lenient  bool // what the file alone does not determine is left to Nomad
	scope    *hcl.EvalContext
	job      *jobfile.Job
	errs     jobfile.Errors

	stanzaAt *jobfile.Pos // where the tuning stanza stands, nil before one was found
}

func (p *parser) fail(at jobfile.Pos, found, want string) {
	p.errs = append(p.errs, jobfile.Error{Pos: at, Found: found, Want: want})
}

// pos turns a place of the language, whose columns are characters, into ours.
func (p *parser) pos(r hcl.Range) jobfile.Pos {
	i := min(r.Start.Byte, len(p.src))
	return jobfile.Pos{
		Filename: p.filename,
		Line:     bytes.Count(p.src[:i], []byte("\n")) + 1,
		Column:   i - bytes.LastIndexByte(p.src[:i], '\n'),
	}
}

// text is the source of a range.
func (p *parser) text(r hcl.Range) string {
	if r.Start.Byte > r.End.Byte || r.End.Byte > len(p.src) {
		return ""
	}
	return string(p.src[r.Start.Byte:r.End.Byte])
}

// diagnose records the errors of the language's own parser.
func (p *parser) diagnose(diags hcl.Diagnostics) {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}
		if d.Subject != nil {
			at = p.pos(*d.Subject)
		}
		detail := strings.Join(strings.Fields(d.Detail), " ")
		p.fail(at, strings.ToLower(d.Summary[:1])+d.Summary[1:], strings.TrimSuffix(detail, "."))
	}
}

// syntax parses the file and keeps what only Nomad can interpolate.
func (p *parser) syntax() (*hclsyntax.Body, bool) {
	top := jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}
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

// depth bounds the depth of the syntax tree from above: brackets that are open at
// a time, and all operators, which may stand in a row or on top of each other.
func depth(src []byte, filename string) int {
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos) // its faults come again from the parser
	open, deepest, operators := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace, hclsyntax.TokenTemplateInterp:
			open++
			deepest = max(deepest, open)
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd:
			open = max(open-1, 0)
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
			hclsyntax.TokenPercent, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
			hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq,
			hclsyntax.TokenQuestion, hclsyntax.TokenTemplateControl:
			operators++
		default: // every other token stands beside others, not on top of them
		}
	}
	return deepest + operators
}

// file reads the outermost blocks.
func (p *parser) file(body *hclsyntax.Body) {
	for _, a := range attributes(body) {
		p.fail(p.pos(a.NameRange), fmt.Sprintf("the key %q outside of all blocks", a.Name), "want job, variable or locals blocks")
	}
	var jobs, variables, locals []*hclsyntax.Block
	for _, b := range body.Blocks {
		switch b.Type {
		case "job":
			jobs = append(jobs, b)
		case "variable":
			variables = append(variables, b)
		case "locals":
			locals = append(locals, b)
		default:
			p.fail(p.pos(b.TypeRange), fmt.Sprintf("unknown block %q", b.Type), "want job, variable or locals")
		}
	}
	p.variables(variables)
	p.locals(locals)
	if len(p.errs) > 0 {
		return // every use of them would be an error of its own
	}
	switch len(jobs) {
	case 0:
		p.fail(jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}, "no job", "want one job block")
	case 1:
		if p.runsHere(jobs[0]); len(p.errs) == 0 {
			p.nomadJob(jobs[0])
		}
	default:
		p.fail(p.pos(jobs[1].TypeRange), "a second job", fmt.Sprintf("want one; the first is at %s", p.pos(jobs[0].TypeRange)))
	}
}
