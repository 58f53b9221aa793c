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

// claim notes where a stanza stands, and refuses a second one.
func (p *parser) claim(at jobfile.Pos) bool {
	if p.stanzaAt != nil {
		p.fail(at, "a second tuning stanza", fmt.Sprintf("want one; the first is at %s", *p.stanzaAt))
		return false
	}
	p.stanzaAt = &at
	return true
}

// tuningBlock reads tuning { ... }.
func (p *parser) tuningBlock(b *hclsyntax.Block) {
	at := p.pos(b.TypeRange)
	if !p.claim(at) {
		return
	}
	if len(b.Labels) > 0 {
		p.fail(p.pos(b.LabelRanges[0]), fmt.Sprintf("the name %q of the tuning stanza", b.Labels[0]), "want tuning { ... } without a name")
	}
	p.job.Stanza = &jobfile.Block{Pos: at}
	p.fill(p.job.Stanza, b.Body)
}

// tuningAttr reads tuning = { ... }, tuning = jsonencode({ ... }) and
// tuning = "{ ... }".
func (p *parser) tuningAttr(a *hclsyntax.Attribute) {
	p.tuningExpr(p.pos(a.NameRange), a.Expr)
}

func (p *parser) tuningExpr(at jobfile.Pos, e hclsyntax.Expression) {
	if !p.claim(at) {
		return
	}
	var err error
	if object, ok := encoded(e); ok {
		n, ok := p.node(object)
		if !ok {
			return
		}
		p.job.Stanza, err = jsontree.Build(n)
	} else {
		n, ok := p.node(e)
		switch {
		case !ok:
			return
		case n.Shape == jsontree.Scalar && n.Value.Kind == jobfile.String:
			p.job.Stanza, err = jsontree.ParseAt(n.Pos, []byte(n.Value.Text))
		default:
			p.job.Stanza, err = jsontree.Build(n)
		}
	}
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		p.errs = append(p.errs, faults...)
	}
}

// encoded returns the argument of a call of jsonencode, whose places are better
// than those of the text that it makes.
func encoded(e hclsyntax.Expression) (hclsyntax.Expression, bool) {
	call, ok := e.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "jsonencode" || len(call.Args) != 1 || call.ExpandFinal {
		return nil, false
	}
	return call.Args[0], true
}

// fill reads the keys and blocks of a stanza's block in the order written.
func (p *parser) fill(out *jobfile.Block, body *hclsyntax.Body) {
	for _, a := range attributes(body) {
		n, ok := p.node(a.Expr)
		if !ok {
			continue
		}
		member := jsontree.Member{Name: a.Name, Pos: p.pos(a.NameRange), Node: n}
		jsontree.Fill(out, jsontree.Node{Shape: jsontree.Object, Members: []jsontree.Member{member}})
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

// node turns an expression into a tree: from its syntax where it is written out,
// from its value where it is computed.
func (p *parser) node(e hclsyntax.Expression) (jsontree.Node, bool) {
	at := p.pos(e.Range())
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return p.node(e.Expression)
	case *hclsyntax.TupleConsExpr:
		n := jsontree.Node{Pos: at, Shape: jsontree.Array}
		all := true
		for _, element := range e.Exprs {
			child, ok := p.node(element)
			all = all && ok
			n.Elems = append(n.Elems, child)
		}
		return n, all
	case *hclsyntax.ObjectConsExpr:
		n := jsontree.Node{Pos: at, Shape: jsontree.Object}
		all := true
		for _, item := range e.Items {
			name, named := p.str(item.KeyExpr, "the name of a key")
			child, ok := p.node(item.ValueExpr)
			all = all && named && ok
			n.Members = append(n.Members, jsontree.Member{Name: name, Pos: p.pos(item.KeyExpr.Range()), Node: child})
		}
		return n, all
	}
	v, ok := p.eval(e)
	if !ok {
		return jsontree.Node{}, false
	}
	return computed(at, v), true
}

// computed turns a value into a tree whose places are all the same.
func computed(at jobfile.Pos, v cty.Value) jsontree.Node {
	n := jsontree.Node{Pos: at}
	switch {
	case v.IsNull() || !v.IsKnown():
		n.Value = jobfile.Value{Kind: jobfile.Other}
	case isSequence(v.Type()):
		n.Shape = jsontree.Array
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			n.Elems = append(n.Elems, computed(at, element))
		}
	case isMapping(v.Type()):
		n.Shape = jsontree.Object
		for it := v.ElementIterator(); it.Next(); {
			name, element := it.Element()
			n.Members = append(n.Members, jsontree.Member{Name: name.AsString(), Pos: at, Node: computed(at, element)})
		}
	default:
		n.Value = scalar(v)
	}
	return n
}

// metaText reads a stanza from a map that was computed.
func (p *parser) metaText(at jobfile.Pos, text string) {
	p.tuningExpr(at, &hclsyntax.LiteralValueExpr{Val: cty.StringVal(text), SrcRange: p.rangeAt(at)})
}

// rangeAt is the empty range at a place.
func (p *parser) rangeAt(at jobfile.Pos) hcl.Range {
	offset := 0
	for line := 1; line < at.Line; offset++ {
		if p.src[offset] == '\n' {
			line++
		}
	}
	start := hcl.Pos{Line: at.Line, Column: at.Column, Byte: offset + at.Column - 1}
	return hcl.Range{Filename: p.filename, Start: start, End: start}
}
