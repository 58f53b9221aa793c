package jobspec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// variable is one that the file declares. Its type is cty.NilType where neither a type
// nor a default says it.
type variable struct {
	typ   cty.Type
	value cty.Value // cty.NilVal where it is not set
	at    hcl.Range
}

// inputs are the values of the file's variables.
func inputs(content *hcl.BodyContent, in Input) (map[string]cty.Value, hcl.Diagnostics) {
	declared, diags := declarations(content)
	diags = append(diags, fromFile(declared, in.VarFile)...)
	diags = append(diags, fromFlags(declared, in.Vars)...)
	values := map[string]cty.Value{}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		v := declared[name]
		if v.value == cty.NilVal {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  fmt.Sprintf("Unset variable %q", name),
				Detail:   "A used variable must be set or have a default value; see https://developer.hashicorp.com/nomad/docs/reference/hcl2/variables  for details.",
				Context:  &v.at,
			})
			continue
		}
		values[name] = v.value
	}
	return values, diags
}

func declarations(content *hcl.BodyContent) (map[string]*variable, hcl.Diagnostics) {
	out := map[string]*variable{}
	var diags hcl.Diagnostics
	declare := func(name string, v *variable, subject, context *hcl.Range) {
		if _, twice := out[name]; twice {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Duplicate variable", Detail: "Duplicate " + name + " variable definition found.",
				Subject: subject, Context: context,
			})
			return
		}
		out[name] = v
	}
	for _, b := range content.Blocks {
		switch b.Type {
		case "variable":
			v, more := declaration(b)
			diags = append(diags, more...)
			declare(b.Labels[0], v, nil, &b.DefRange)
		case "variables":
			attrs, more := b.Body.JustAttributes()
			diags = append(diags, more...)
			for _, a := range inOrder(attrs) {
				value, more := a.Expr.Value(nil)
				diags = append(diags, more...)
				declare(a.Name, &variable{typ: value.Type(), value: value, at: a.Range}, &a.NameRange, nil)
			}
		}
	}
	return out, diags
}

func declaration(b *hcl.Block) (*variable, hcl.Diagnostics) {
	content, diags := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "description"}, {Name: "default"}, {Name: "type"}}})
	if !hclsyntax.ValidIdentifier(b.Labels[0]) {
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid variable name", Subject: &b.LabelRanges[0],
			Detail: "A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.",
		})
	}
	v := &variable{at: b.DefRange}
	if a, ok := content.Attributes["type"]; ok {
		typ, more := typeexpr.Type(a.Expr)
		diags = append(diags, more...)
		v.typ = typ
	}
	a, ok := content.Attributes["default"]
	if !ok {
		return v, diags
	}
	value, more := a.Expr.Value(nil)
	diags = append(diags, more...)
	if more.HasErrors() {
		return v, diags
	}
	if v.typ == cty.NilType {
		v.typ = value.Type()
	}
	v.value, more = fit(value, v.typ, a.Expr, "Invalid default value for variable", "This default value is not compatible with the variable's type constraint: %s.")
	return v, append(diags, more...)
}

// fit converts a value to the type of its variable.
func fit(value cty.Value, typ cty.Type, e hcl.Expression, summary, detail string) (cty.Value, hcl.Diagnostics) {
	if typ == cty.NilType {
		return value, nil
	}
	out, err := convert.Convert(value, typ)
	if err != nil {
		return cty.DynamicVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, err), Subject: e.Range().Ptr(),
		}}
	}
	return out, nil
}

// fromFile sets what a file of values says.
func fromFile(declared map[string]*variable, text string) hcl.Diagnostics {
	if text == "" {
		return nil
	}
	file, diags := hclsyntax.ParseConfig([]byte(text), "input.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	attrs, diags := file.Body.JustAttributes()
	for _, a := range inOrder(attrs) {
		v, ok := declared[a.Name]
		if !ok {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Undefined variable", Context: a.Range.Ptr(),
				Detail: fmt.Sprintf("A %q variable was set but was not found in known variables. To declare variable %q, place this block in your job files", a.Name, a.Name),
			})
			continue
		}
		value, more := a.Expr.Value(nil)
		diags = append(diags, more...)
		v.value, more = fit(value, v.typ, a.Expr, "Invalid value for variable", "The value for "+a.Name+" is not compatible with the variable's type constraint: %s.")
		diags = append(diags, more...)
	}
	return diags
}

// fromFlags sets what the command line says.
func fromFlags(declared map[string]*variable, vars map[string]string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		v, ok := declared[name]
		if !ok {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Undefined -var variable",
				Detail: fmt.Sprintf("A %q variable was passed in the command line but was not found in known variables. To declare variable %q, place this block in your job file", name, name),
			})
			continue
		}
		e := hcl.StaticExpr(cty.StringVal(vars[name]), hcl.Range{})
		// A text stands for itself; a list or a map is written in the language.
		if v.typ != cty.NilType && v.typ != cty.String && v.typ != cty.Number {
			var more hcl.Diagnostics
			e, more = hclsyntax.ParseExpression([]byte(vars[name]), fmt.Sprintf("<value for var.%s from arguments>", name), hcl.InitialPos)
			if diags = append(diags, more...); more.HasErrors() {
				continue
			}
		}
		value, more := e.Value(nil)
		diags = append(diags, more...)
		v.value, more = fit(value, v.typ, e, "Invalid argument value for -var variable", "The received arg value for "+name+" is not compatible with the variable's type constraint: %s.")
		diags = append(diags, more...)
	}
	return diags
}

// locals computes the locals, which may refer to each other in any order: as long as
// one more can be computed, the others are tried again.
func (p *parser) locals(content *hcl.BodyContent) hcl.Diagnostics {
	var diags hcl.Diagnostics
	todo := map[string]*hcl.Attribute{}
	for _, b := range content.Blocks.OfType("locals") {
		attrs, more := b.Body.JustAttributes()
		diags = append(diags, more...)
		for _, a := range inOrder(attrs) {
			if _, twice := todo[a.Name]; twice {
				return append(diags, &hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "Duplicate value in locals", Detail: "Duplicate " + a.Name + " definition found.", Subject: &a.NameRange, Context: &b.DefRange,
				})
			}
			todo[a.Name] = a
		}
	}
	done := map[string]cty.Value{}
	for len(todo) > 0 {
		before := len(todo)
		var failed hcl.Diagnostics
		for _, name := range slices.Sorted(maps.Keys(todo)) {
			value, more := p.value(todo[name].Expr, p.ctx)
			if more.HasErrors() {
				failed = append(failed, more...)
				continue
			}
			done[name] = value
			p.ctx.Variables["local"] = cty.ObjectVal(done)
			delete(todo, name)
		}
		if len(todo) == before {
			return append(diags, failed...)
		}
	}
	return diags
}

// inOrder are attributes in the order in which they are written.
func inOrder(attrs hcl.Attributes) []*hcl.Attribute {
	return slices.SortedFunc(maps.Values(attrs), func(a, b *hcl.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
}
