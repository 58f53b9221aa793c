package jsontree

import (
	"pitchpipe/driver/jobfile"
)

// knob is the one block type whose blocks have names.
const knob = "knob"

// Shape tells which fields of a Node count.
type Shape uint8

// The shapes.
const (
	Scalar Shape = iota
	Object
	Array
)

// Node is one value of a JSON-like tree.
type Node struct {
	Pos     jobfile.Pos
	Shape   Shape
	Value   jobfile.Value // of a Scalar
	Members []Member      // of an Object, in the order written, repeated names included
	Elems   []Node        // of an Array
}

// Member is one name and value of an object.
type Member struct {
	Name string
	Pos  jobfile.Pos
	Node Node
}

// Build makes the block tree of a stanza from its outermost node. The error, if
// any, is of type jobfile.Errors.
func Build(n Node) (*jobfile.Block, error) {
	n = unwrap(n)
	if n.Shape == Object && len(n.Members) == 1 && n.Members[0].Name == "tuning" {
		n = unwrap(n.Members[0].Node)
	}
	if n.Shape != Object {
		return nil, jobfile.Errors{{
			Pos: n.Pos, Found: "the tuning stanza is not an object", Want: `want an object such as {"mode":"apply"}`,
		}}
	}
	top := &jobfile.Block{Pos: n.Pos}
	Fill(top, n)
	return top, nil
}

// unwrap takes a list of one element off.
func unwrap(n Node) Node {
	if n.Shape == Array && len(n.Elems) == 1 {
		return n.Elems[0]
	}
	return n
}

// Fill adds the members of an object to a block.
func Fill(b *jobfile.Block, object Node) {
	for _, m := range object.Members {
		objects, ok := blocks(m.Node)
		if !ok {
			b.Attrs = append(b.Attrs, jobfile.Attr{
				Name: m.Name, Pos: m.Pos, Value: value(m.Node), ValuePos: m.Node.Pos,
			})
			continue
		}
		for _, o := range objects {
			if b.Type == "" && m.Name == knob {
				fillKnobs(b, o)
				continue
			}
			child := &jobfile.Block{Type: m.Name, Pos: m.Pos}
			if len(objects) > 1 {
				child.Pos = o.Pos
			}
			Fill(child, o)
			b.Blocks = append(b.Blocks, child)
		}
	}
}

// fillKnobs adds one knob for each member of the object.
func fillKnobs(b *jobfile.Block, object Node) {
	for _, m := range object.Members {
		objects, ok := blocks(m.Node)
		if !ok { // to be judged as a key of a block that has none
			child := &jobfile.Block{Type: knob, Pos: m.Pos}
			Fill(child, Node{Shape: Object, Members: []Member{m}})
			b.Blocks = append(b.Blocks, child)
			continue
		}
		for _, o := range objects {
			child := &jobfile.Block{Type: knob, Label: m.Name, LabelPos: m.Pos, Pos: m.Pos}
			Fill(child, o)
			b.Blocks = append(b.Blocks, child)
		}
	}
}

// blocks returns the objects that a node stands for: itself, or its elements.
func blocks(n Node) ([]Node, bool) {
	if n.Shape == Object {
		return []Node{n}, true
	}
	if n.Shape != Array || len(n.Elems) == 0 {
		return nil, false
	}
	for _, e := range n.Elems {
		if e.Shape != Object {
			return nil, false
		}
	}
	return n.Elems, true
}

// value turns a scalar or a list into what a key holds.
func value(n Node) jobfile.Value {
	switch n.Shape {
	case Scalar:
		return n.Value
	case Array:
		v := jobfile.Value{Kind: jobfile.List}
		for _, e := range n.Elems {
			v.List = append(v.List, jobfile.Item{Pos: e.Pos, Value: value(e)})
		}
		return v
	case Object:
	}
	return jobfile.Value{Kind: jobfile.Other}
}
