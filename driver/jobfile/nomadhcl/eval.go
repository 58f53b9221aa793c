package nomadhcl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"pitchpipe/driver/jobfile"
)

func functions() map[string]function.Function {
	return map[string]function.Function{
		"jsonencode": stdlib.JSONEncodeFunc,
		"format":     stdlib.FormatFunc,
		"upper":      stdlib.UpperFunc,
		"lower":      stdlib.LowerFunc,
		"min":        stdlib.MinFunc,
		"max":        stdlib.MaxFunc,
		"join":       stdlib.JoinFunc,
		"concat":     stdlib.ConcatFunc,
		"tostring":   stdlib.MakeToFunc(cty.String),
		"tonumber":   stdlib.MakeToFunc(cty.Number),
	}
}

// moreFunctions are those of Nomad's language that need nothing but their arguments,
// for files that an agent will read too.
func moreFunctions() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc, "parseint": stdlib.ParseIntFunc, "chomp": stdlib.ChompFunc, "indent": stdlib.IndentFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"split": stdlib.SplitFunc, "replace": stdlib.ReplaceFunc, "regex": stdlib.RegexFunc, "regex_replace": stdlib.RegexReplaceFunc,
		"regexall": stdlib.RegexAllFunc, "formatlist": stdlib.FormatListFunc, "formatdate": stdlib.FormatDateFunc,
		"timeadd": stdlib.TimeAddFunc, "jsondecode": stdlib.JSONDecodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
		"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc,
		"compact": stdlib.CompactFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc,
		"merge": stdlib.MergeFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
		"setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc,
		"values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc, "strlen": stdlib.StrlenFunc,
		"try": tryfunc.TryFunc, "can": tryfunc.CanFunc, "convert": typeexpr.ConvertFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool),
	}
}

// runtime reports whether a name is interpolated by Nomad on the node.
func runtime(root string) bool {
	return strings.HasPrefix(root, "NOMAD_") || slices.Contains([]string{"env", "attr", "node", "meta", "device"}, root)
}

// keepRuntime replaces ${NOMAD_X} and the like inside of strings by their own
// text.
func (p *parser) keepRuntime(node hclsyntax.Node) hcl.Diagnostics {
	switch n := node.(type) {
	case *hclsyntax.TemplateExpr:
		for i, part := range n.Parts {
			n.Parts[i] = p.literally(part)
		}
	case *hclsyntax.TemplateWrapExpr:
		n.Wrapped = p.literally(n.Wrapped)
	}
	return nil
}

func (p *parser) literally(e hclsyntax.Expression) hclsyntax.Expression {
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || !runtime(t.Traversal.RootName()) {
		return e
	}
	return &hclsyntax.LiteralValueExpr{
		Val:      cty.StringVal("${" + p.text(t.SrcRange) + "}"),
		SrcRange: t.SrcRange,
	}
}

// eval computes an expression; on failure the fault is recorded.
func (p *parser) eval(e hclsyntax.Expression) (cty.Value, bool) {
	if !p.bounded(e) {
		return cty.NilVal, false
	}
	v, diags := e.Value(p.scope)
	if diags.HasErrors() {
		p.diagnose(diags)
		return cty.NilVal, false
	}
	if !p.fits(e, v) {
		return cty.NilVal, false
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		p.fail(p.pos(e.Range()), "a value that is not known before the job runs", "want one that the file alone determines")
		return cty.NilVal, false
	}
	return v, true
}

// str computes a string; numbers and booleans count as their text.
func (p *parser) str(e hclsyntax.Expression, what string) (string, bool) {
	v, ok := p.eval(e)
	if !ok {
		return "", false
	}
	s, ok := asString(v)
	if !ok {
		p.fail(p.pos(e.Range()), what+" is not a text", "want a text in quotes")
	}
	return s, ok
}

func asString(v cty.Value) (string, bool) {
	if v.IsNull() {
		return "", false
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() || !s.IsKnown() {
		return "", false
	}
	return s.AsString(), true
}

// strs computes a list of strings.
func (p *parser) strs(e hclsyntax.Expression, what string) ([]string, bool) {
	v, ok := p.eval(e)
	if !ok {
		return nil, false
	}
	var out []string
	if !v.IsNull() && isSequence(v.Type()) {
		ok = true
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			s, isString := asString(element)
			ok = ok && isString
			out = append(out, s)
		}
		if ok {
			return out, true
		}
	}
	p.fail(p.pos(e.Range()), what+" is not a list of texts", `want a list such as ["a", "b"]`)
	return nil, false
}

func isSequence(t cty.Type) bool { return t.IsTupleType() || t.IsListType() || t.IsSetType() }

func isMapping(t cty.Type) bool { return t.IsObjectType() || t.IsMapType() }

// strMap computes a map of strings.
func (p *parser) strMap(e hclsyntax.Expression, what string) (map[string]string, bool) {
	v, ok := p.eval(e)
	if !ok {
		return nil, false
	}
	if !v.IsNull() && isMapping(v.Type()) {
		out := map[string]string{}
		ok = true
		for it := v.ElementIterator(); it.Next(); {
			name, element := it.Element()
			s, isString := asString(element)
			ok = ok && isString
			out[name.AsString()] = s
		}
		if ok {
			return out, true
		}
	}
	p.fail(p.pos(e.Range()), what+" is not a map of texts", `want a map such as { NAME = "value" }`)
	return nil, false
}

// integer computes a whole number between low and high.
func (p *parser) integer(e hclsyntax.Expression, what string, low, high int64) (int64, bool) {
	v, ok := p.eval(e)
	if !ok {
		return 0, false
	}
	want := fmt.Sprintf("want a whole number from %d to %d", low, high)
	if high == math.MaxInt64 {
		want = fmt.Sprintf("want a whole number of at least %d", low)
	}
	number, err := convert.Convert(v, cty.Number)
	if err != nil || number.IsNull() || !number.IsKnown() {
		p.fail(p.pos(e.Range()), what+" is not a number", want)
		return 0, false
	}
	n, accuracy := number.AsBigFloat().Int64()
	if accuracy != 0 || n < low || n > high {
		p.fail(p.pos(e.Range()), fmt.Sprintf("%s is %s", what, number.AsBigFloat().Text('g', 10)), want)
		return 0, false
	}
	return n, true
}

// attributes returns the keys of a body in the order written.
func attributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
	return out
}

// scalar turns a computed value into the value of a key.
func scalar(v cty.Value) jobfile.Value {
	switch {
	case v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		return jobfile.Value{Kind: jobfile.String, Text: v.AsString()}
	case v.Type() == cty.Bool:
		return jobfile.Value{Kind: jobfile.Bool, Bool: v.True()}
	case v.Type() == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		if !math.IsInf(f, 0) {
			return jobfile.Value{Kind: jobfile.Number, Number: f, Text: v.AsBigFloat().Text('g', -1)}
		}
	}
	return jobfile.Value{Kind: jobfile.Other}
}
