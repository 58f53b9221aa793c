package nomadhcl

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
)

// claim notes where a stanza is, and refuses a second one.
func (p *parser) claim(at jobfile.Pos) bool {
	if p.stanzaAt != nil {
		p.fail(at, "a second tuning stanza", fmt.Sprintf("want one; the first is at %s", *p.stanzaAt))
		return false
	}
	p.stanzaAt = &at
	return true
}

func (p *parser) tuningBlocks(body *hclsyntax.Body) {
	for _, b := range blocksOf(body, "tuning") {
		at := p.pos(b.TypeRange)
		if !p.claim(at) {
			continue
		}
		if len(b.Labels) > 0 {
			p.fail(p.pos(b.LabelRanges[0]), fmt.Sprintf("the name %q of the tuning stanza", b.Labels[0]), "want tuning { ... } without a name")
		}
		p.job.Stanza, p.tuning = &jobfile.Block{Pos: at}, b
		p.fill(p.job.Stanza, b.Body)
	}
}

func (p *parser) tree() jsontree.Reader {
	return jsontree.Reader{Pos: func(r hcl.Range, _ string) jobfile.Pos { return p.pos(r) }, Eval: p.eval}
}

// tuningAttr reads tuning = { ... }, tuning = jsonencode({ ... }) and
// tuning = "{ ... }".
func (p *parser) tuningAttr(at jobfile.Pos, e hcl.Expression) {
	if !p.claim(at) {
		return
	}
	// The places of an argument of jsonencode are better than those of the text that it makes.
	if call, diags := hcl.ExprCall(e); !diags.HasErrors() && call.Name == "jsonencode" && len(call.Arguments) == 1 {
		e = call.Arguments[0]
	}
	p.tuned = e
	var err error
	p.job.Stanza, err = p.tree().Stanza(e)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		p.errs = append(p.errs, faults...)
	}
}

func (p *parser) fill(out *jobfile.Block, body *hclsyntax.Body) {
	for _, a := range attributes(body) {
		p.tree().Attr(out, a.Name, p.pos(a.NameRange), a.Expr)
	}
	for _, b := range body.Blocks {
		child := &jobfile.Block{Type: b.Type, Pos: p.pos(b.TypeRange)}
		if len(b.Labels) > 0 {
			child.Label, child.LabelPos = b.Labels[0], p.pos(b.LabelRanges[0])
		}
		if len(b.Labels) > 1 {
			p.fail(p.pos(b.LabelRanges[1]), fmt.Sprintf("a second name %q of a %s block", b.Labels[1], b.Type), "want one name")
		}
		p.fill(child, b.Body)
		out.Blocks = append(out.Blocks, child)
	}
}

func (p *parser) stanzaOfMeta(body *hclsyntax.Body) {
	for _, m := range blocksOf(body, "meta") {
		if a, ok := m.Body.Attributes["tuning"]; ok {
			p.tuningAttr(p.pos(a.NameRange), a.Expr)
		}
	}
	a, ok := body.Attributes["meta"]
	if !ok {
		return
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	for _, pair := range pairs {
		if key, known := p.try(pair.Key); known && key.Type() == cty.String && !key.IsNull() && key.AsString() == "tuning" {
			p.tuningAttr(p.pos(pair.Key.Range()), pair.Value)
		}
	}
	if !diags.HasErrors() {
		return
	}
	if meta, known := p.as(a.Expr, cty.Map(cty.String)); known {
		if text, ok := meta.AsValueMap()["tuning"]; ok {
			p.tuningAttr(p.pos(a.Expr.Range()), hcl.StaticExpr(text, a.Expr.Range()))
		}
	}
}
