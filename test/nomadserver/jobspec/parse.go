package jobspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// filename is that of every error, as on an agent.
const filename = "input.hcl"

// parser computes the expressions of one file.
type parser struct {
	src []byte
	ctx *hcl.EvalContext
}

// Parse reads a job file; variables is the text of a file that sets its variables.
func Parse(src, variables string) (*api.Job, error) {
	file, diags := hclsyntax.ParseConfig([]byte(src), filename, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	content, diags := file.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "variable", LabelNames: []string{"name"}}, {Type: "job", LabelNames: []string{"name"}},
	}})
	if diags.HasErrors() {
		return nil, lines(diags)
	}
	values, diags := inputs(content, variables)
	p := &parser{src: []byte(src), ctx: &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(values)},
		Functions: map[string]function.Function{
			"format": stdlib.FormatFunc, "join": stdlib.JoinFunc, "jsonencode": stdlib.JSONEncodeFunc, "lower": stdlib.LowerFunc,
			"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "upper": stdlib.UpperFunc,
		},
	}}
	blocks := content.Blocks.OfType("job")
	if len(blocks) == 0 {
		diags = append(diags, fault(nil, "Missing job block", "A job block is required"))
	}
	job := &api.Job{}
	for i, b := range blocks {
		if i > 0 {
			diags = append(diags, fault(&b.DefRange, "Duplicate job block", `Only one block of type "job" is allowed. Previous definition was at %s.`, blocks[0].DefRange))
			continue
		}
		if diags.HasErrors() {
			break
		}
		diags = append(diags, p.decode(b.Body.(*hclsyntax.Body), job)...)
		if job.ID == nil {
			job.ID = &b.Labels[0]
		}
		if job.Name == nil {
			job.Name = &b.Labels[0]
		}
	}
	if diags.HasErrors() {
		return nil, lines(diags)
	}
	complete(job)
	return job, nil
}

func fault(at *hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: at}
}

// lines joins the errors one a line, as the agent does.
func lines(diags hcl.Diagnostics) error {
	var out []string
	for _, d := range diags {
		out = append(out, d.Error())
	}
	return errors.New(strings.Join(out, "\n"))
}

// inputs are the values of the file's variables: their defaults, and what a file sets.
func inputs(content *hcl.BodyContent, variables string) (map[string]cty.Value, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig([]byte(variables), filename, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	given, diags := file.Body.JustAttributes()
	out := map[string]cty.Value{}
	for _, b := range content.Blocks.OfType("variable") {
		name := b.Labels[0]
		said, more := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "description"}, {Name: "default"}, {Name: "type"}}})
		diags = append(diags, more...)
		typ, summary := cty.DynamicPseudoType, "Invalid default value for variable"
		detail := "This default value is not compatible with the variable's type constraint: %s."
		if a := said.Attributes["type"]; a != nil {
			typ, more = typeexpr.Type(a.Expr)
			diags = append(diags, more...)
		}
		set := said.Attributes["default"]
		if set != nil && typ == cty.DynamicPseudoType {
			if v, more := set.Expr.Value(nil); !more.HasErrors() {
				typ = v.Type()
			}
		}
		if a := given[name]; a != nil {
			set, summary, detail = a, "Invalid value for variable", "The value for "+name+" is not compatible with the variable's type constraint: %s."
			delete(given, name)
		}
		if set == nil {
			diags = append(diags, fault(nil, fmt.Sprintf("Unset variable %q", name),
				"A used variable must be set or have a default value; see https://developer.hashicorp.com/nomad/docs/reference/hcl2/variables  for details."))
			continue
		}
		value, more := set.Expr.Value(nil)
		diags = append(diags, more...)
		value, err := convert.Convert(value, typ)
		if err != nil {
			diags = append(diags, fault(set.Expr.Range().Ptr(), summary, detail, err))
		}
		out[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		diags = append(diags, fault(nil, "Undefined variable",
			"A %q variable was set but was not found in known variables. To declare variable %q, place this block in your job files", name, name))
	}
	return out, diags
}

// scope is the context of an expression. Names in it that the file does not define, such as
// NOMAD_JOB_ID or attr.kernel.name, stay as their own text in ${}.
func (p *parser) scope(e hcl.Expression) *hcl.EvalContext {
	later := names{}
	for _, t := range e.Variables() {
		var path []string
		for _, step := range t {
			switch s := step.(type) {
			case hcl.TraverseRoot:
				path = append(path, s.Name)
			case hcl.TraverseAttr:
				path = append(path, s.Name)
			case hcl.TraverseIndex:
				if s.Key.Type() == cty.String {
					path = append(path, s.Key.AsString())
				}
			}
		}
		if path[0] != "var" {
			r := t.SourceRange()
			later.put(path, "${"+string(p.src[r.Start.Byte:r.End.Byte])+"}")
		}
	}
	out := p.ctx.NewChild()
	out.Variables = later.values()
	return out
}

// names are values by name, and names below them: attr, attr.kernel, attr.kernel.name.
type names map[string]any

func (n names) put(path []string, text string) {
	if len(path) == 1 {
		n[path[0]] = text
		return
	}
	below, ok := n[path[0]].(names)
	if !ok {
		below = names{}
		n[path[0]] = below
	}
	below.put(path[1:], text)
}

func (n names) values() map[string]cty.Value {
	out := map[string]cty.Value{}
	for name, v := range n {
		switch v := v.(type) {
		case string:
			out[name] = cty.StringVal(v)
		case names:
			out[name] = cty.ObjectVal(v.values())
		}
	}
	return out
}
