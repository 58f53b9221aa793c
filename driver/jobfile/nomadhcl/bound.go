package nomadhcl

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// The bounds of what a file computes: forty lines of which each doubles the one before
// are a terabyte.
const (
	maxValue = 1 << 20  // of one value, in bytes of text
	maxWork  = 64 << 20 // that an expression may come to on the way
	fixed    = 16       // of a value beside its text
)

// bounded reports whether an expression certainly computes something of a sensible size,
// and reports it where not.
func (p *parser) bounded(e hclsyntax.Expression) bool {
	if p.cost(e, nil) <= maxWork {
		return true
	}
	p.tooLarge(e)
	return false
}

// fits reports a value that is too large.
func (p *parser) fits(e hclsyntax.Expression, v cty.Value) bool {
	if size(v) <= maxValue {
		return true
	}
	p.tooLarge(e)
	return false
}

func (p *parser) tooLarge(e hclsyntax.Expression) {
	p.fail(p.pos(e.Range()), "a value that grows beyond 1 MiB", "want a smaller one")
}

// size is how large a value is as text, at most.
func size(v cty.Value) int64 {
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case !v.IsKnown() || v.IsNull():
		return fixed
	case t == cty.String:
		return fixed + int64(len(v.AsString()))
	case t == cty.Number:
		exponent := v.AsBigFloat().MantExp(nil)
		return fixed + int64(math.Abs(float64(exponent))) + 160 // 512 bits of it
	case t.IsCollectionType() || t.IsTupleType() || t.IsObjectType():
		sum := int64(fixed)
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if sum = add(sum, add(size(k), size(e))); sum > maxWork {
				return sum
			}
		}
		return sum
	}
	return fixed
}

// add and times stay where they are too large to count.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// cost bounds from above how large the value of an expression and all on the way to it
// are. Inner are the variables of the loops around it.
func (p *parser) cost(e hclsyntax.Expression, inner map[string]int64) int64 {
	sum := func(parts ...hclsyntax.Expression) int64 {
		out := int64(fixed)
		for _, part := range parts {
			if part != nil {
				out = add(out, p.cost(part, inner))
			}
		}
		return out
	}
	switch x := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		return size(x.Val)
	case *hclsyntax.TemplateExpr:
		return sum(x.Parts...)
	case *hclsyntax.TupleConsExpr:
		return sum(x.Exprs...)
	case *hclsyntax.FunctionCallExpr:
		return add(sum(x.Args...), p.makes(x, inner))
	case *hclsyntax.ObjectConsExpr:
		out := int64(fixed)
		for _, item := range x.Items {
			out = add(out, sum(item.KeyExpr, item.ValueExpr))
		}
		return out
	case *hclsyntax.ForExpr:
		return p.loop(x, inner)
	case *hclsyntax.ScopeTraversalExpr:
		return p.refers(x, inner)
	case *hclsyntax.ObjectConsKeyExpr:
		return sum(x.Wrapped)
	case *hclsyntax.TemplateWrapExpr:
		return sum(x.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		return sum(x.Expression)
	case *hclsyntax.TemplateJoinExpr:
		return sum(x.Tuple)
	case *hclsyntax.RelativeTraversalExpr:
		return sum(x.Source)
	case *hclsyntax.IndexExpr:
		return sum(x.Collection, x.Key)
	case *hclsyntax.SplatExpr:
		return times(sum(x.Source), 2)
	case *hclsyntax.ConditionalExpr:
		return sum(x.Condition, x.TrueResult, x.FalseResult)
	case *hclsyntax.BinaryOpExpr:
		return sum(x.LHS, x.RHS)
	case *hclsyntax.UnaryOpExpr:
		return sum(x.Val)
	}
	return fixed
}

// refers is the size of what a name stands for.
func (p *parser) refers(x *hclsyntax.ScopeTraversalExpr, inner map[string]int64) int64 {
	if n, ok := inner[x.Traversal.RootName()]; ok {
		return n
	}
	v, diags := x.Value(p.scope)
	if diags.HasErrors() {
		return fixed // it is no more than an error
	}
	return size(v)
}

// loop is the cost of all rounds.
func (p *parser) loop(x *hclsyntax.ForExpr, inner map[string]int64) int64 {
	all := p.cost(x.CollExpr, inner)
	if all > maxWork {
		return all
	}
	rounds, each := all/fixed+1, all
	if v, diags := x.CollExpr.Value(p.scope); !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.CanIterateElements() {
		rounds, each = int64(v.LengthInt()), 0
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			each = max(each, size(k), size(e))
		}
	}
	within := map[string]int64{}
	maps.Copy(within, inner)
	within[x.KeyVar], within[x.ValVar] = each, each
	body := int64(fixed)
	for _, part := range []hclsyntax.Expression{x.KeyExpr, x.ValExpr, x.CondExpr} {
		if part != nil {
			body = add(body, p.cost(part, within))
		}
	}
	return add(all, times(rounds, body))
}

// makes bounds what a function makes, which is refused where it is more than a value may
// be.
func (p *parser) makes(x *hclsyntax.FunctionCallExpr, inner map[string]int64) int64 {
	costs, all := make([]int64, len(x.Args)), int64(fixed)
	for i, a := range x.Args {
		costs[i] = p.cost(a, inner)
		all = add(all, costs[i])
	}
	if len(costs) == 0 {
		return all
	}
	out := int64(maxValue)
	switch x.Name {
	case "replace", "regex_replace":
		out = times(costs[0], costs[len(costs)-1])
	case "join":
		out = add(all, times(all/fixed+1, costs[0]))
	case "range":
		out = 1024 * size(cty.NumberIntVal(0))
	case "format":
		if v, diags := x.Args[0].Value(nil); !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
			out = add(times(all, int64(strings.Count(v.AsString(), "%"))+1), formatted([]cty.Value{v}))
		}
	case "indent", "formatlist", "csvdecode":
	default:
		return times(all, 8)
	}
	return min(out, maxValue)
}

// growth is how large the values of functions are at most, by their arguments.
func growth() map[string]func(args []cty.Value) int64 {
	product := func(args []cty.Value) int64 {
		out := int64(1)
		for _, a := range args {
			out = times(out, size(a)+1)
		}
		return out
	}
	return map[string]func(args []cty.Value) int64{
		"replace":       func(args []cty.Value) int64 { return times(text(args, 0)+1, text(args, 2)+1) },
		"regex_replace": func(args []cty.Value) int64 { return times(text(args, 0)+1, text(args, 2)+1) },
		"indent": func(args []cty.Value) int64 {
			n, _ := args[0].AsBigFloat().Int64()
			return add(text(args, 1), times(max(n, 0), int64(strings.Count(args[1].AsString(), "\n"))+1))
		},
		"join": func(args []cty.Value) int64 {
			out := int64(0)
			for _, a := range args[1:] {
				out = add(out, add(size(a), times(size(a)/fixed+1, text(args, 0))))
			}
			return out
		},
		"format":     formatted,
		"formatlist": func(args []cty.Value) int64 { return times(formatted(args), size(args[len(args)-1])/fixed+1) },
		"csvdecode":  func(args []cty.Value) int64 { return product(append(args, args...)) / 4 },
		"range":      func([]cty.Value) int64 { return fixed << 10 }, // it ends after 1,024 by itself
	}
}

// text is the length of an argument that is a text.
func text(args []cty.Value, i int) int64 {
	if i < len(args) && args[i].Type() == cty.String && args[i].IsKnown() && !args[i].IsNull() {
		return int64(len(args[i].AsString()))
	}
	return fixed
}

var numbers = regexp.MustCompile(`\d+`)

// formatted bounds what a format makes: each verb is as wide as it says, or as what it
// shows.
func formatted(args []cty.Value) int64 {
	widest, all := int64(0), int64(0)
	for _, a := range args {
		all = add(all, size(a))
	}
	if args[0].Type() == cty.String && args[0].IsKnown() && !args[0].IsNull() {
		for _, n := range numbers.FindAllString(args[0].AsString(), -1) {
			width, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				return math.MaxInt64
			}
			widest = max(widest, width)
		}
		return times(add(widest, all), int64(strings.Count(args[0].AsString(), "%"))+1)
	}
	return all
}

// limited is a function that refuses to make what is too large.
func limited(name string, f function.Function) function.Function {
	how := growth()[name]
	spec := &function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if how != nil && known(args) && how(args) > maxValue {
				return cty.NilVal, fmt.Errorf("%s would make more than 1 MiB", name)
			}
			v, err := f.Call(args)
			if err == nil && size(v) > maxValue {
				err = fmt.Errorf("%s makes more than 1 MiB", name)
			}
			return v, err
		},
	}
	return function.New(spec)
}

func known(args []cty.Value) bool {
	for _, a := range args {
		if !a.IsWhollyKnown() || a.IsNull() {
			return false
		}
	}
	return true
}
