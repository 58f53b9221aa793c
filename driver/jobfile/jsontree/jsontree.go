package jsontree

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
)

const knob = "knob"

func hasNames(block string) bool { return block == knob || block == "action" }

// Reader reads expressions.
type Reader struct {
	// Pos is the place of a range, which is at a path of names from the outermost object on.
	Pos func(r hcl.Range, path string) jobfile.Pos
	// Eval computes an expression that is not written out; false: it cannot, and has
	// reported why.
	Eval func(hcl.Expression) (cty.Value, bool)
}

// node is one value of a JSON-like tree. One of the three counts.
type node struct {
	pos     jobfile.Pos
	value   jobfile.Value
	members *[]member // of an object, in the order written, repeated names included
	elems   *[]node   // of a list
}

type member struct {
	name string
	pos  jobfile.Pos
	node node
}

// Stanza makes the block tree of a stanza from its outermost expression, nil where that
// cannot be computed. The error, if any, is of type jobfile.Errors.
func (r Reader) Stanza(e hcl.Expression) (*jobfile.Block, error) {
	n, ok := r.node(e, "")
	if !ok {
		return nil, nil //nolint:nilnil // Eval has reported it
	}
	n = unwrap(n)
	if n.members != nil && len(*n.members) == 1 && (*n.members)[0].name == "tuning" {
		n = unwrap((*n.members)[0].node)
	}
	switch {
	case n.members != nil:
	case n.value.Kind == jobfile.String && n.elems == nil: // JSON in a text
		return Parse([]byte(n.value.Text), func(int, string) jobfile.Pos { return n.pos })
	default:
		return nil, jobfile.Errors{{
			Pos: n.pos, Found: "the tuning stanza is not an object", Want: `want an object such as {"mode":"apply"}`,
		}}
	}
	top := &jobfile.Block{Pos: n.pos}
	fill(top, *n.members)
	return top, nil
}

// Attr adds a key and its value to a block.
func (r Reader) Attr(b *jobfile.Block, name string, at jobfile.Pos, e hcl.Expression) {
	if n, ok := r.node(e, name); ok {
		fill(b, []member{{name, at, n}})
	}
}

// node takes an expression apart: by its syntax where it is written out, by its value
// where it is computed.
func (r Reader) node(e hcl.Expression, path string) (node, bool) {
	n := node{pos: r.Pos(e.Range(), path)}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		n.members = &[]member{}
		for _, p := range pairs {
			key, ok := r.Eval(p.Key)
			if !ok {
				return n, false
			}
			name := ""
			if key, err := convert.Convert(key, cty.String); err == nil && !key.IsNull() {
				name = key.AsString()
			}
			at := path + "." + name
			child, ok := r.node(p.Value, at)
			if !ok {
				return n, false
			}
			*n.members = append(*n.members, member{name, r.Pos(p.Key.Range(), at), child})
		}
		return n, true
	}
	if exprs, diags := hcl.ExprList(e); !diags.HasErrors() {
		n.elems = &[]node{}
		for _, element := range exprs {
			child, ok := r.node(element, path)
			if !ok {
				return n, false
			}
			*n.elems = append(*n.elems, child)
		}
		return n, true
	}
	v, ok := r.Eval(e)
	return computed(n.pos, v), ok
}

// computed turns a value into a tree whose places are all the same.
func computed(at jobfile.Pos, v cty.Value) node {
	n := node{pos: at, value: jobfile.Value{Kind: jobfile.Other}}
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return n
	}
	switch t := v.Type(); {
	case t.IsObjectType() || t.IsMapType():
		n.members = &[]member{}
		for it := v.ElementIterator(); it.Next(); {
			name, element := it.Element()
			*n.members = append(*n.members, member{name.AsString(), at, computed(at, element)})
		}
	case v.CanIterateElements():
		n.elems = &[]node{}
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			*n.elems = append(*n.elems, computed(at, element))
		}
	case t == cty.String:
		n.value = jobfile.Value{Kind: jobfile.String, Text: v.AsString()}
	case t == cty.Bool:
		n.value = jobfile.Value{Kind: jobfile.Bool, Bool: v.True()}
	case t == cty.Number:
		if f, _ := v.AsBigFloat().Float64(); !math.IsInf(f, 0) {
			n.value = jobfile.Value{Kind: jobfile.Number, Number: f, Text: v.AsBigFloat().Text('g', -1)}
		}
	}
	return n
}

// unwrap takes a list of one element off.
func unwrap(n node) node {
	if n.elems != nil && len(*n.elems) == 1 {
		return (*n.elems)[0]
	}
	return n
}

func fill(b *jobfile.Block, members []member) {
	for _, m := range members {
		objects, ok := blocks(m.node)
		if !ok {
			b.Attrs = append(b.Attrs, jobfile.Attr{Name: m.name, Pos: m.pos, Value: value(m.node), ValuePos: m.node.pos})
			continue
		}
		for _, o := range objects {
			if b.Type == "" && hasNames(m.name) {
				fillNamed(b, m.name, *o.members)
				continue
			}
			child := &jobfile.Block{Type: m.name, Pos: m.pos}
			if len(objects) > 1 {
				child.Pos = o.pos
			}
			fill(child, *o.members)
			b.Blocks = append(b.Blocks, child)
		}
	}
}

func fillNamed(b *jobfile.Block, block string, members []member) {
	for _, m := range members {
		objects, ok := blocks(m.node)
		if !ok { // to be judged as a key of a block that has none
			child := &jobfile.Block{Type: block, Pos: m.pos}
			fill(child, []member{m})
			b.Blocks = append(b.Blocks, child)
		}
		for _, o := range objects {
			child := &jobfile.Block{Type: block, Label: m.name, LabelPos: m.pos, Pos: m.pos}
			fill(child, *o.members)
			b.Blocks = append(b.Blocks, child)
		}
	}
}

// blocks returns the objects that a node stands for: itself, or its elements.
func blocks(n node) ([]node, bool) {
	if n.members != nil {
		return []node{n}, true
	}
	if n.elems == nil || len(*n.elems) == 0 || slices.ContainsFunc(*n.elems, func(e node) bool { return e.members == nil }) {
		return nil, false
	}
	return *n.elems, true
}

func value(n node) jobfile.Value {
	switch {
	case n.members != nil:
		return jobfile.Value{Kind: jobfile.Other}
	case n.elems == nil:
		return n.value
	}
	v := jobfile.Value{Kind: jobfile.List}
	for _, e := range *n.elems {
		v.List = append(v.List, jobfile.Item{Pos: e.pos, Value: value(e)})
	}
	return v
}

// Parse reads a stanza from JSON text. pos is the place of an offset in it, which is at a path of
// names from the outermost object on. The error, if any, is of type jobfile.Errors.
func Parse(src []byte, pos func(offset int, path string) jobfile.Pos) (*jobfile.Block, error) {
	fail := func(offset int, found string) error {
		return jobfile.Errors{{Pos: pos(offset, ""), Found: found, Want: `want a JSON object such as {"mode":"apply"}`}}
	}
	if !utf8.Valid(src) {
		return nil, fail(0, "text that is not UTF-8")
	}
	// This decoder bounds the nesting, and says more clearly what is wrong.
	var text json.RawMessage
	if err := json.Unmarshal(src, &text); err != nil {
		at := 0
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(int(syntax.Offset)-1, 0)
		}
		return nil, fail(at, "broken JSON: "+err.Error())
	}
	e, diags := hcljson.ParseExpression(src, "")
	if diags.HasErrors() {
		return nil, fail(diags[0].Subject.Start.Byte, "broken JSON: "+diags[0].Detail)
	}
	r := Reader{
		Pos: func(r hcl.Range, path string) jobfile.Pos { return pos(r.Start.Byte, path) },
		Eval: func(e hcl.Expression) (cty.Value, bool) {
			v, diags := e.Value(nil)
			return v, !diags.HasErrors()
		},
	}
	return r.Stanza(e)
}
