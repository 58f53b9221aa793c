package nomadhcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
)

// variables gives every variable its value: the one given, else the default.
func (p *parser) variables(blocks []*hclsyntax.Block) {
	p.scope = &hcl.EvalContext{Functions: functions()}
	for name, f := range p.scope.Functions {
		p.scope.Functions[name] = limited(name, f)
	}
	values, first := map[string]cty.Value{}, map[string]jobfile.Pos{}
	for _, b := range blocks {
		at := p.pos(b.TypeRange)
		if len(b.Labels) != 1 {
			p.fail(at, "a variable without one name", `want variable "name" { ... }`)
			continue
		}
		name := b.Labels[0]
		if old, twice := first[name]; twice {
			p.fail(at, fmt.Sprintf("a second variable %q", name), fmt.Sprintf("the first is at %s", old))
			continue
		}
		first[name] = at
		values[name] = cty.DynamicVal
		if v, ok := p.variable(name, at, b.Body); ok {
			values[name] = v
		}
	}
	known := slices.Sorted(maps.Keys(first))
	for _, name := range slices.Sorted(maps.Keys(p.vars)) {
		if _, ok := first[name]; ok {
			continue
		}
		want := "the file has no variables"
		if len(known) > 0 {
			want = "its variables are " + strings.Join(known, ", ")
		}
		p.fail(p.top(), fmt.Sprintf("a value for the unknown variable %q", name), want+jobfile.Suggestion(name, known))
	}
	p.scope.Variables = map[string]cty.Value{"var": cty.ObjectVal(values)}
}

func (p *parser) variable(name string, at jobfile.Pos, body *hclsyntax.Body) (cty.Value, bool) {
	want := cty.DynamicPseudoType
	if a, typed := body.Attributes["type"]; typed {
		t, diags := typeexpr.TypeConstraint(a.Expr)
		if p.diagnose(diags); diags.HasErrors() {
			return cty.NilVal, false
		}
		want = t
	}
	fallback := body.Attributes["default"]
	if given, isGiven := p.vars[name]; isGiven {
		v, err := convert.Convert(p.given(given, want), want)
		if err != nil {
			p.fail(at, fmt.Sprintf("the variable %q is given as %q", name, given), "want a "+want.FriendlyName())
		}
		return v, err == nil
	}
	if fallback == nil {
		p.fail(at, fmt.Sprintf("the variable %q has no value and no default", name), fmt.Sprintf("give one with --var %s=VALUE", name))
		return cty.NilVal, false
	}
	v, ok := p.must(fallback.Expr)
	if !ok {
		return cty.NilVal, false
	}
	converted, err := convert.Convert(v, want)
	if err != nil {
		p.fail(p.pos(fallback.Expr.Range()), fmt.Sprintf("the default of the variable %q is of another type", name), "want a "+want.FriendlyName())
	}
	return converted, err == nil
}

// given is the value of a variable as --var has it: the text, or for a list, a map or
// an object the expression that it holds.
func (p *parser) given(text string, want cty.Type) cty.Value {
	if want != cty.DynamicPseudoType && !want.IsPrimitiveType() && depth([]byte(text), p.filename) <= maxDepth {
		if e, diags := hclsyntax.ParseExpression([]byte(text), p.filename, hcl.InitialPos); !diags.HasErrors() {
			if v, diags := p.value(e); !diags.HasErrors() {
				return v
			}
		}
	}
	return cty.StringVal(text)
}

// must computes an expression that the file has to determine, where no agent reads it too.
func (p *parser) must(e hclsyntax.Expression) (cty.Value, bool) {
	if p.lenient {
		return p.try(e)
	}
	return p.eval(e)
}

// listed are the variables of a variables block, which have a value each and nothing
// else.
func (p *parser) listed(body *hclsyntax.Body) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, b := range blocksOf(body, "variables") {
		for _, a := range attributes(b.Body) {
			value := *a
			value.Name = "default"
			out = append(out, &hclsyntax.Block{
				Type: "variable", TypeRange: a.NameRange, Labels: []string{a.Name},
				Body: &hclsyntax.Body{Attributes: hclsyntax.Attributes{"default": &value}},
			})
		}
	}
	return out
}

// locals computes the named expressions, each after those that it refers to.
func (p *parser) locals(blocks []*hclsyntax.Block) {
	left, values := map[string]*hclsyntax.Attribute{}, map[string]cty.Value{}
	var order []string
	for _, b := range blocks {
		for _, inner := range b.Body.Blocks {
			p.fail(p.pos(inner.TypeRange), fmt.Sprintf("the block %q in locals", inner.Type), "want name = value")
		}
		for _, a := range attributes(b.Body) {
			if old, twice := left[a.Name]; twice {
				p.fail(p.pos(a.NameRange), fmt.Sprintf("a second local %q", a.Name), fmt.Sprintf("the first is at %s", p.pos(old.NameRange)))
				continue
			}
			left[a.Name] = a
			order = append(order, a.Name)
		}
	}
	if len(order) > maxLocals {
		p.fail(p.top(), fmt.Sprintf("more than %d locals", maxLocals), "want fewer")
		return
	}
	waits := func(name string) bool {
		return slices.ContainsFunc(left[name].Expr.Variables(), func(t hcl.Traversal) bool {
			if t.RootName() != "local" || len(t) < 2 {
				return false
			}
			step, ok := t[1].(hcl.TraverseAttr)
			return ok && left[step.Name] != nil
		})
	}
	for len(order) > 0 {
		i := slices.IndexFunc(order, func(name string) bool { return !waits(name) })
		if i < 0 {
			p.fail(p.pos(left[order[0]].NameRange), fmt.Sprintf("the local %q refers to itself", order[0]), "want locals without a cycle")
			break
		}
		name := order[i]
		p.scope.Variables["local"] = cty.ObjectVal(values)
		v, ok := p.must(left[name].Expr)
		if !ok {
			v = cty.DynamicVal
		}
		values[name] = v
		delete(left, name)
		order = slices.Delete(order, i, i+1)
	}
	p.scope.Variables["local"] = cty.ObjectVal(values)
}
