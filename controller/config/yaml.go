package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the largest file that is read: nobody writes a megabyte of settings
// by hand.
const maxFile = 1 << 20

// place is where something stands in a file. Line and column count from 1.
type place struct {
	file         string
	line, column int
}

func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// scalar is one value of a file and where it stands.
type scalar struct {
	text string
	pos  place
}

// scalars are the values of a file by dotted key.
type scalars map[string]scalar

func (s scalars) texts() map[string]string {
	out := map[string]string{}
	for name, v := range s {
		out[name] = v.text
	}
	return out
}

// nest turns dotted keys into the tree that they mean.
func nest(flat map[string]string) map[string]any {
	root := map[string]any{}
	for name, text := range flat {
		at := root
		parts := strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			next, ok := at[part].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = text
	}
	return root
}

// parseFile reads the controller's file: nested blocks whose dotted path is a key.
func parseFile(file string, data []byte) (scalars, Errors) {
	out := scalars{}
	d := document{file: file}
	d.walkKeys("", d.parse(data), out)
	return out, d.faults
}

// document collects the faults of one file.
type document struct {
	file   string
	faults Errors
}

func (d *document) at(n *yaml.Node) place { return place{d.file, n.Line, n.Column} }

func (d *document) fault(n *yaml.Node, key, found, want string) {
	d.faults = append(d.faults, Error{Where: d.at(n).String(), Key: key, Found: found, Want: want, at: d.at(n)})
}

// parse returns the mapping that the file is; an empty one for an empty file and
// for one that is faulty.
func (d *document) parse(data []byte) *yaml.Node {
	empty := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	if len(data) > maxFile {
		d.faults = append(d.faults, Error{Where: d.file, at: place{file: d.file}, Found: fmt.Sprintf("a file of %d bytes", len(data)), Want: fmt.Sprintf("want at most %d", maxFile)})
		return empty
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err)
		}
		return empty
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		d.fault(&second, "", "a second document", "want one document in a file")
		return empty
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return empty
	}
	root := doc.Content[0]
	switch {
	case isNull(root):
		return empty
	case root.Kind != yaml.MappingNode:
		d.fault(root, "", "found "+kindOf(root), "want a block of keys")
		return empty
	default:
		return root
	}
}

// syntax turns the parser's error, which has the line inside its text, into ours.
func (d *document) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	where := d.file
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		where += ":" + m[1]
		text = text[len(m[0]):]
	}
	d.faults = append(d.faults, Error{Where: where, Found: text, Want: "want YAML", at: place{file: d.file}})
}

type pair struct{ key, value *yaml.Node }

// pairs lists the keys of a block. Faulty ones are noted and left out; a block
// without content has no keys.
func (d *document) pairs(path string, n *yaml.Node) []pair {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "found "+kindOf(n), "want a block of keys")
		return nil
	}
	seen := map[string]int{}
	var out []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" || isNull(k) {
			d.fault(k, path, "found "+kindOf(k)+" as a key", "want a plain word")
			continue
		}
		if line, ok := seen[k.Value]; ok {
			d.fault(k, join(path, k.Value), "the key stands here a second time", fmt.Sprintf("want it once; the first is in line %d", line))
			continue
		}
		seen[k.Value] = k.Line
		out = append(out, pair{k, v})
	}
	return out
}

func (d *document) walkKeys(path string, n *yaml.Node, out scalars) {
	for _, p := range d.pairs(path, n) {
		name := join(path, p.key.Value)
		switch {
		case isKey(name):
			text, ok := d.text(name, p.value)
			if ok {
				out[name] = scalar{text, d.at(p.value)}
			}
		case isBlock(name):
			d.walkKeys(name, p.value, out)
		default:
			d.faults = append(d.faults, unknown(d.at(p.key), "", name, keyNames()))
		}
	}
}

// text reads a plain value.
func (d *document) text(key string, n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.fault(n, key, "found "+kindOf(n), "want a value")
		return "", false
	}
	return n.Value, true
}

func isKey(name string) bool {
	return slices.Contains(keyNames(), name)
}

func isBlock(name string) bool {
	return slices.ContainsFunc(keyNames(), func(k string) bool { return strings.HasPrefix(k, name+".") })
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// kindOf says in words what stands there. Aliases are refused with everything
// else that is not a plain value: a policy has to be readable from top to bottom.
func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a block of keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	default:
		return fmt.Sprintf("%q", n.Value)
	}
}
