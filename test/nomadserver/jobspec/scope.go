package jobspec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// value computes an expression. Names that the file does not determine, such as
// NOMAD_JOB_ID or attr.kernel.name, are their own text in ${}.
func (p *parser) value(e hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	return e.Value(p.scope(e, ctx))
}

// scope is the context with the unknown names of an expression in it.
func (p *parser) scope(e hcl.Expression, ctx *hcl.EvalContext) *hcl.EvalContext {
	later := &tree{}
	for _, t := range e.Variables() {
		if known(t.RootName(), ctx) {
			continue
		}
		node := later
		for _, step := range t {
			name, ok := "", true
			switch s := step.(type) {
			case hcl.TraverseRoot:
				name = s.Name
			case hcl.TraverseAttr:
				name = s.Name
			case hcl.TraverseIndex:
				if ok = s.Key.Type() == cty.String; ok {
					name = s.Key.AsString()
				}
			default:
				ok = false
			}
			if !ok {
				break
			}
			node = node.child(name)
		}
		r := t.SourceRange()
		node.text = "${" + string(p.src[min(r.Start.Byte, len(p.src)):min(r.End.Byte, len(p.src))]) + "}"
	}
	if len(later.below) == 0 {
		return ctx
	}
	out := ctx.NewChild()
	out.Variables = map[string]cty.Value{}
	for _, n := range later.below {
		out.Variables[n.name] = n.value()
	}
	return out
}

func known(root string, ctx *hcl.EvalContext) bool {
	for ; ctx != nil; ctx = ctx.Parent() {
		if _, ok := ctx.Variables[root]; ok {
			return true
		}
	}
	return false
}

// tree are names with the names below them: attr, attr.kernel, attr.kernel.name.
type tree struct {
	name, text string
	below      []*tree
}

func (t *tree) child(name string) *tree {
	if i := slices.IndexFunc(t.below, func(b *tree) bool { return b.name == name }); i >= 0 {
		return t.below[i]
	}
	t.below = append(t.below, &tree{name: name})
	return t.below[len(t.below)-1]
}

func (t *tree) value() cty.Value {
	if len(t.below) == 0 {
		return cty.StringVal(t.text)
	}
	out := map[string]cty.Value{}
	for _, b := range t.below {
		out[b.name] = b.value()
	}
	return cty.ObjectVal(out)
}
