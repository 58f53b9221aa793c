package jobspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// looseBody is a body that, asked for its attributes alone, has its blocks as
// attributes too. That is how a body is read of which no schema is known: a driver's
// config and the policy of a scaling block. A block is a list of maps, with a map
// around it for each label, and an object written after = is a list of one map.
type looseBody struct {
	hcl.Body
	p *parser

	hidden []string // names of attributes and blocks that were taken already
}

// plain is the body as it was parsed, nil where something was taken from it.
func (b *looseBody) plain() *hclsyntax.Body {
	body, ok := b.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	return body
}

func (b *looseBody) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := b.Body.Content(schema)
	return b.loosen(content), diags
}

func (b *looseBody) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, rest, diags := b.Body.PartialContent(schema)
	out := &looseBody{Body: rest, p: b.p, hidden: slices.Clone(b.hidden)}
	for _, a := range schema.Attributes {
		out.hidden = append(out.hidden, a.Name)
	}
	for _, t := range schema.Blocks {
		out.hidden = append(out.hidden, t.Type)
	}
	return b.loosen(content), out, diags
}

func (b *looseBody) loosen(content *hcl.BodyContent) *hcl.BodyContent {
	for i, inner := range content.Blocks {
		block := *inner
		block.Body = &looseBody{Body: inner.Body, p: b.p}
		content.Blocks[i] = &block
	}
	return content
}

func (b *looseBody) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	body := b.plain()
	if body == nil {
		return b.Body.JustAttributes()
	}
	out := hcl.Attributes{}
	for name, a := range body.Attributes {
		if !slices.Contains(b.hidden, name) {
			attr := a.AsHCLAttribute()
			attr.Expr = listed(a.Expr)
			out[name] = attr
		}
	}
	for name, blocks := range byType(body.Blocks) {
		if !slices.Contains(b.hidden, name) {
			e := &blocksExpr{p: b.p, blocks: blocks}
			out[name] = &hcl.Attribute{Name: name, NameRange: blocks[0].TypeRange, Range: e.Range(), Expr: e}
		}
	}
	return out, nil
}

func byType(blocks hclsyntax.Blocks) map[string]hclsyntax.Blocks {
	out := map[string]hclsyntax.Blocks{}
	for _, b := range blocks {
		out[b.Type] = append(out[b.Type], b)
	}
	return out
}

// listed puts an object into a list of one.
func listed(e hclsyntax.Expression) hcl.Expression {
	if o, ok := e.(*hclsyntax.ObjectConsExpr); ok {
		return &hclsyntax.TupleConsExpr{Exprs: []hclsyntax.Expression{o}, SrcRange: o.Range(), OpenRange: o.StartRange()}
	}
	return e
}

// blocksExpr is the value of blocks of one name.
type blocksExpr struct {
	p      *parser
	blocks hclsyntax.Blocks
}

func (e *blocksExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	var list []cty.Value
	for _, b := range e.blocks {
		fields := map[string]cty.Value{}
		for name, inner := range e.parts(b) {
			v, more := e.p.value(inner, ctx)
			fields[name] = v
			diags = append(diags, more...)
		}
		v := cty.ObjectVal(fields)
		for _, label := range slices.Backward(b.Labels) {
			v = cty.ObjectVal(map[string]cty.Value{label: cty.TupleVal([]cty.Value{v})})
		}
		list = append(list, v)
	}
	return cty.TupleVal(list), diags
}

// parts are the expressions of a block, by the name of the field.
func (e *blocksExpr) parts(b *hclsyntax.Block) map[string]hcl.Expression {
	out := map[string]hcl.Expression{}
	for name, a := range b.Body.Attributes {
		out[name] = listed(a.Expr)
	}
	for name, blocks := range byType(b.Body.Blocks) {
		out[name] = &blocksExpr{p: e.p, blocks: blocks}
	}
	return out
}

func (e *blocksExpr) Variables() []hcl.Traversal {
	var out []hcl.Traversal
	for _, b := range e.blocks {
		parts := e.parts(b)
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			out = append(out, parts[name].Variables()...)
		}
	}
	return out
}

func (e *blocksExpr) Range() hcl.Range {
	return hcl.RangeBetween(e.blocks[0].OpenBraceRange, e.blocks[len(e.blocks)-1].CloseBraceRange)
}

func (e *blocksExpr) StartRange() hcl.Range { return e.blocks[0].OpenBraceRange }
