package nomadhcl

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// The bounds of what a file computes: forty lines that each double the one before are a
// terabyte.
const (
	maxValue = 1 << 20  // of one value, in bytes of text
	maxWork  = 64 << 20 // of all values of a file, those on the way included
	fixed    = 16       // of a value besides its text
)

// counted is an expression whose value counts. Where the file has computed too much it is
// not computed any more.
type counted struct {
	hclsyntax.Expression
	left *int64 // of the file's maxWork
}

// Value computes the expression and counts what it comes to.
func (c counted) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if *c.left > 0 {
		v, diags := c.Expression.Value(ctx)
		n := size(v)
		if *c.left -= n; n <= maxValue && *c.left > 0 {
			return v, diags
		}
	}
	at := c.Range()
	return cty.DynamicVal, hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "a value that grows beyond 1 MiB", Detail: "want a smaller one", Subject: &at,
	}}
}

// UnwrapExpression is how package hcl finds out what is written.
func (c counted) UnwrapExpression() hcl.Expression { return c.Expression }

func (p *parser) counted(e hclsyntax.Expression) hclsyntax.Expression {
	if _, done := e.(counted); done || e == nil { // or an optional part
		return e
	}
	return counted{e, &p.left}
}

// count counts the parts that can make up a larger value.
func (p *parser) count(node hclsyntax.Node) hcl.Diagnostics {
	switch n := node.(type) {
	case counted:
		return p.count(n.Expression)
	case *hclsyntax.TemplateExpr:
		for i, part := range n.Parts {
			n.Parts[i] = p.counted(part)
		}
	case *hclsyntax.TemplateJoinExpr:
		n.Tuple = p.counted(n.Tuple)
	case *hclsyntax.TupleConsExpr:
		for i, e := range n.Exprs {
			n.Exprs[i] = p.counted(e)
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range n.Items {
			n.Items[i].ValueExpr = p.counted(n.Items[i].ValueExpr)
		}
	case *hclsyntax.FunctionCallExpr:
		for i, e := range n.Args {
			n.Args[i] = p.counted(e)
		}
	case *hclsyntax.ForExpr:
		n.CollExpr, n.KeyExpr, n.ValExpr, n.CondExpr = p.counted(n.CollExpr), p.counted(n.KeyExpr), p.counted(n.ValExpr), p.counted(n.CondExpr)
	case *hclsyntax.SplatExpr:
		n.Source, n.Each = p.counted(n.Source), p.counted(n.Each)
	}
	return nil
}

// size is how large a value is as text, at most.
func size(v cty.Value) int64 {
	v, _ = v.Unmark()
	switch t := v.Type(); {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case t == cty.String:
		return fixed + int64(len(v.AsString()))
	case t == cty.Number:
		exponent := v.AsBigFloat().MantExp(nil)
		return fixed + int64(math.Abs(float64(exponent))) + 160 // 512 bits of it
	case v.CanIterateElements():
		sum := int64(fixed)
		for it := v.ElementIterator(); it.Next() && sum <= maxWork; {
			k, e := it.Element()
			sum += size(k) + size(e)
		}
		return sum
	}
	return fixed
}

// wide is the width of a verb that makes a text of a thousand letters and more.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{4}`)

// limited is a function that refuses to make what is too large, where it repeats one
// argument for each part of another.
func limited(name string, f function.Function) function.Function {
	if !slices.Contains([]string{"replace", "regex_replace", "join", "format", "formatlist", "indent"}, name) {
		return f
	}
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(), Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if makes(name, args) > maxWork {
				return cty.NilVal, fmt.Errorf("%s would make more than 1 MiB", name)
			}
			return f.Call(args)
		},
	})
}

// makes bounds what a function makes of its arguments.
func makes(name string, args []cty.Value) float64 {
	rest, longest := 0.0, 1.0
	for _, a := range args[1:] {
		rest += float64(size(a))
		if a.IsKnown() && !a.IsNull() && a.CanIterateElements() {
			longest = max(longest, float64(a.LengthInt()))
		}
	}
	first, verbs := float64(size(args[0])), 0.0
	switch a := args[0]; {
	case !a.IsKnown() || a.IsNull():
	case a.Type() == cty.Number:
		first, _ = a.AsBigFloat().Float64()
	case a.Type() == cty.String:
		verbs = float64(strings.Count(a.AsString(), "%"))
		if wide.MatchString(a.AsString()) {
			verbs = math.Inf(1)
		}
	}
	switch name {
	case "format":
		return verbs * (rest + fixed)
	case "formatlist":
		return verbs * longest * (rest + fixed)
	}
	return first * rest // one argument of the others too much, which counts as a part of them
}
