package jobspec

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"
)

// Input is a job file with what its variables are set to.
type Input struct {
	Filename string // for the places in errors
	Source   []byte
	Vars     map[string]string // as given by -var
	VarFile  string            // the text of files given by -var-file
}

// Parse reads a job file. The job isn't canonicalised: what the file does not say is
// nil or empty.
func Parse(filename string, src []byte, vars map[string]string) (*api.Job, error) {
	return ParseInput(Input{Filename: filename, Source: src, Vars: vars})
}

// ParseInput reads a job file whose variables come from more than one place.
func ParseInput(in Input) (*api.Job, error) {
	file, diags := hclsyntax.ParseConfig(in.Source, in.Filename, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	content, diags := file.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "variables"}, {Type: "variable", LabelNames: []string{"name"}}, {Type: "locals"}, {Type: "job", LabelNames: []string{"name"}},
	}})
	if diags.HasErrors() {
		return nil, lines(diags)
	}
	vars, diags := inputs(content, in)
	if diags.HasErrors() {
		return nil, lines(diags)
	}
	p := &parser{src: in.Source, ctx: &hcl.EvalContext{
		Functions: functions(),
		Variables: map[string]cty.Value{"var": cty.ObjectVal(vars), "local": cty.EmptyObjectVal},
	}}
	if diags := p.locals(content); diags.HasErrors() {
		return nil, lines(diags)
	}
	job, diags := p.job(content)
	if diags.HasErrors() {
		return nil, lines(diags)
	}
	complete(job)
	return job, nil
}

// parser computes the expressions of one file.
type parser struct {
	src []byte
	ctx *hcl.EvalContext
}

func (p *parser) job(content *hcl.BodyContent) (*api.Job, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	var found *hcl.Block
	job := &api.Job{}
	for _, b := range content.Blocks.OfType("job") {
		if found != nil {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "Duplicate job block",
				Detail:   `Only one block of type "job" is allowed. Previous definition was at ` + found.DefRange.String() + ".",
				Subject:  &b.DefRange,
			})
			continue
		}
		found = b
		body := dynblock.Expand(&looseBody{Body: b.Body.(*hclsyntax.Body), p: p}, p.ctx)
		diags = append(diags, p.decode(body, job)...)
		if job.ID == nil {
			job.ID = &b.Labels[0]
		}
		if job.Name == nil {
			job.Name = &b.Labels[0]
		}
	}
	if found == nil {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Missing job block", Detail: "A job block is required"})
	}
	return job, diags
}

// lines joins the errors one a line, as the agent does.
func lines(diags hcl.Diagnostics) error {
	var out []string
	for _, d := range diags {
		out = append(out, d.Error())
	}
	return errors.New(strings.Join(out, "\n"))
}
