package nomadhcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nearest"
)

// variables gives every variable its value: the one given, else the default.
func (p *parser) variables(blocks []*hclsyntax.Block) {
	p.scope = &hcl.EvalContext{Functions: functions()}
	if p.lenient {
		maps.Copy(p.scope.Functions, moreFunctions())
	}
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
			if p.lenient {
				var diags hcl.Diagnostics
				t, diags = typeexpr.TypeConstraint(a.Expr)
				if known = !diags.HasErrors(); !known {
					p.diagnose(diags)
					ok, want = false, cty.DynamicPseudoType
					continue
				}
			}
			if !known {
				p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("the type of the variable %q", name), "want string, number or bool")
				ok = false
			}
			want = t
		case "default":
			fallback = a
		case "description":
		default:
			if p.lenient {
				continue
			}
			p.fail(p.pos(a.NameRange), fmt.Sprintf("unknown key %q in a variable", a.Name), "want type, default or description")
			ok = false
		}
	}
	for _, b := range body.Blocks {
		if p.lenient {
			break
		}
		p.fail(p.pos(b.TypeRange), fmt.Sprintf("the block %q in a variable", b.Type), "want none: conditions are not evaluated here")
		ok = false
	}
	if given, isGiven := p.vars[name]; isGiven && ok {
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
	if v, known := p.try(fallback.Expr); p.lenient && !known {
		return v, false
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

// given is the value of a variable as --var has it: the text, or for a list, a map or
// an object the expression that it holds.
func (p *parser) given(text string, want cty.Type) cty.Value {
	if !p.lenient || want == cty.DynamicPseudoType || want.IsPrimitiveType() {
		return cty.StringVal(text)
	}
	if depth([]byte(text), p.filename) > maxDepth {
		return cty.StringVal(text)
	}
	e, diags := hclsyntax.ParseExpression([]byte(text), p.filename, hcl.InitialPos)
	if diags.HasErrors() || !p.bounded(e) {
		return cty.StringVal(text)
	}
	if v, diags := e.Value(nil); !diags.HasErrors() {
		return v
	}
	return cty.StringVal(text)
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
	evaluate := l.p.eval
	if l.p.lenient {
		evaluate = l.p.try
	}
	v, ok := evaluate(a.Expr)
	if !ok {
		v = cty.DynamicVal
	}
	l.values[name] = v
}

// Declared are the names of the variables that a job file declares, in their order; none
// where it cannot be read.
func Declared(filename string, src []byte) []string {
	var out []string
	if body, ok := newParser(filename, src, nil).syntax(); ok {
		for _, b := range blocksOf(body, "variable") {
			if n := name(b); n != "" {
				out = append(out, n)
			}
		}
	}
	return out
}

// VariableFile is the values as a file of variables, which an agent takes beside a job
// file: a text in quotes, or where the file declares a list, a map or an object the
// expression as it was given, as --var of Nomad's own command has it.
func VariableFile(filename string, src []byte, vars map[string]string) string {
	p := newParser(filename, src, nil)
	complexes := map[string]bool{}
	if body, ok := p.syntax(); ok {
		for _, b := range blocksOf(body, "variable") {
			if a, typed := b.Body.Attributes["type"]; typed {
				t, diags := typeexpr.TypeConstraint(a.Expr)
				complexes[name(b)] = !diags.HasErrors() && t != cty.DynamicPseudoType && !t.IsPrimitiveType()
			}
		}
	}
	out := hclwrite.NewEmptyFile()
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if complexes[name] {
			out.Body().SetAttributeRaw(name, hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(vars[name])}})
			continue
		}
		out.Body().SetAttributeValue(name, cty.StringVal(vars[name]))
	}
	return string(out.Bytes())
}
