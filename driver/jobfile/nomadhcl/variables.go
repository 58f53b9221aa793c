package nomadhcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nearest"
)

// variables gives every variable its value: the one given, else the default.
func (p *parser) variables(blocks []*hclsyntax.Block) {
	p.scope = &hcl.EvalContext{Functions: functions()}
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
		if near := nearest.Word(name, known); near != "" {
			want += fmt.Sprintf("; did you mean %q?", near)
		}
		p.fail(jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}, fmt.Sprintf("a value for the unknown variable %q", name), want)
	}
	p.scope.Variables = map[string]cty.Value{"var": cty.ObjectVal(values)}
}

func (p *parser) variable(name string, at jobfile.Pos, body *hclsyntax.Body) (cty.Value, bool) {
	want := cty.DynamicPseudoType
	var fallback *hclsyntax.Attribute
	ok := true
	for _, a := range attributes(body) {
		switch a.Name {
		case "type":
			t, known := variableType(hcl.ExprAsKeyword(a.Expr))
			if !known {
				p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("the type of the variable %q", name), "want string, number or bool")
				ok = false
			}
			want = t
		case "default":
			fallback = a
		case "description":
		default:
			p.fail(p.pos(a.NameRange), fmt.Sprintf("unknown key %q in a variable", a.Name), "want type, default or description")
			ok = false
		}
	}
	for _, b := range body.Blocks {
		p.fail(p.pos(b.TypeRange), fmt.Sprintf("the block %q in a variable", b.Type), "want none: conditions are not evaluated here")
		ok = false
	}
	if given, isGiven := p.vars[name]; isGiven && ok {
		v, err := convert.Convert(cty.StringVal(given), want)
		if err != nil {
			p.fail(at, fmt.Sprintf("the variable %q is given as %q", name, given), "want a "+want.FriendlyName())
		}
		return v, err == nil
	}
	if fallback == nil {
		p.fail(at, fmt.Sprintf("the variable %q has no value and no default", name), fmt.Sprintf("give one with --var %s=VALUE", name))
		return cty.NilVal, false
	}
	v, evaluated := p.eval(fallback.Expr)
	if !evaluated || !ok {
		return cty.NilVal, false
	}
	converted, err := convert.Convert(v, want)
	if err != nil {
		p.fail(p.pos(fallback.Expr.Range()), fmt.Sprintf("the default of the variable %q is of another type", name), "want a "+want.FriendlyName())
	}
	return converted, err == nil
}

func variableType(keyword string) (cty.Type, bool) {
	switch keyword {
	case "string":
		return cty.String, true
	case "number":
		return cty.Number, true
	case "bool":
		return cty.Bool, true
	}
	return cty.DynamicPseudoType, keyword == "any"
}

// locals computes the named expressions, each after those that it refers to.
func (p *parser) locals(blocks []*hclsyntax.Block) {
	l := &locals{p: p, exprs: map[string]*hclsyntax.Attribute{}, values: map[string]cty.Value{}, busy: map[string]bool{}}
	var order []string
	for _, b := range blocks {
		for _, inner := range b.Body.Blocks {
			p.fail(p.pos(inner.TypeRange), fmt.Sprintf("the block %q in locals", inner.Type), "want name = value")
		}
		for _, a := range attributes(b.Body) {
			if old, twice := l.exprs[a.Name]; twice {
				p.fail(p.pos(a.NameRange), fmt.Sprintf("a second local %q", a.Name), fmt.Sprintf("the first is at %s", p.pos(old.NameRange)))
				continue
			}
			l.exprs[a.Name] = a
			order = append(order, a.Name)
		}
	}
	for _, name := range order {
		l.compute(name)
	}
	p.scope.Variables["local"] = cty.ObjectVal(l.values)
}

type locals struct {
	p      *parser
	exprs  map[string]*hclsyntax.Attribute
	values map[string]cty.Value
	busy   map[string]bool
}

func (l *locals) compute(name string) {
	a, exists := l.exprs[name]
	if _, done := l.values[name]; done || !exists {
		return
	}
	if l.busy[name] {
		l.p.fail(l.p.pos(a.NameRange), fmt.Sprintf("the local %q refers to itself", name), "want locals without a cycle")
		l.values[name] = cty.DynamicVal
		return
	}
	l.busy[name] = true
	for _, t := range a.Expr.Variables() {
		if t.RootName() != "local" || len(t) < 2 {
			continue
		}
		if step, ok := t[1].(hcl.TraverseAttr); ok {
			l.compute(step.Name)
		}
	}
	if _, done := l.values[name]; done {
		return // part of a cycle that is reported already
	}
	l.p.scope.Variables["local"] = cty.ObjectVal(l.values)
	v, ok := l.p.eval(a.Expr)
	if !ok {
		v = cty.DynamicVal
	}
	l.values[name] = v
}
