package nomadhcl

import (
	"cmp"
	"maps"
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
)

// functions are those of Nomad's language that need nothing but their arguments.
func functions() map[string]function.Function {
	return map[string]function.Function{
		"jsonencode": stdlib.JSONEncodeFunc, "format": stdlib.FormatFunc, "upper": stdlib.UpperFunc, "lower": stdlib.LowerFunc,
		"min": stdlib.MinFunc, "max": stdlib.MaxFunc, "join": stdlib.JoinFunc, "concat": stdlib.ConcatFunc,
		"tostring": stdlib.MakeToFunc(cty.String), "tonumber": stdlib.MakeToFunc(cty.Number),
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc, "parseint": stdlib.ParseIntFunc, "chomp": stdlib.ChompFunc, "indent": stdlib.IndentFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"split": stdlib.SplitFunc, "replace": stdlib.ReplaceFunc, "regex": stdlib.RegexFunc, "regex_replace": stdlib.RegexReplaceFunc,
		"regexall": stdlib.RegexAllFunc, "formatlist": stdlib.FormatListFunc, "formatdate": stdlib.FormatDateFunc,
		"timeadd": stdlib.TimeAddFunc, "jsondecode": stdlib.JSONDecodeFunc,
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

// keepRuntime replaces ${NOMAD_X} and the like inside of strings by their own text.
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
func (p *parser) eval(e hcl.Expression) (cty.Value, bool) {
	v, diags := p.value(e)
	if diags.HasErrors() {
		p.diagnose(diags)
		return cty.NilVal, false
	}
	if !v.IsWhollyKnown() {
		p.fail(p.pos(e.Range()), "a value that is not known before the job runs", "want one that the file alone determines")
		return cty.NilVal, false
	}
	return v, true
}

// try computes what the file determines by itself.
func (p *parser) try(e hcl.Expression) (cty.Value, bool) {
	v, diags := p.value(e)
	return v, !diags.HasErrors() && v.IsWhollyKnown()
}

func (p *parser) value(e hcl.Expression) (cty.Value, hcl.Diagnostics) {
	if s, ok := e.(hclsyntax.Expression); ok {
		_ = hclsyntax.VisitAll(s, p.count) // it finds no faults
		e = p.counted(s)
	}
	v, diags := e.Value(p.scope)
	v, _ = v.UnmarkDeep()
	return v, diags
}

// as computes what the file determines by itself, as a value of the type.
func (p *parser) as(e hcl.Expression, kind cty.Type) (cty.Value, bool) {
	v, ok := p.try(e)
	if !ok || v.IsNull() {
		return cty.NilVal, false
	}
	v, err := convert.Convert(v, kind)
	return v, err == nil && !v.IsNull()
}

func attributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(body.Attributes), func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
}
