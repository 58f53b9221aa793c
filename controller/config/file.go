package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// maxFile bounds what is read: a configuration has no megabyte of settings.
const maxFile = 1 << 20

// scalar is a value as it is written, and what its type reads.
type scalar struct {
	text  string
	pos   jobfile.Pos // its name is that of a file, a variable or a flag
	value any
}

type document struct {
	file   string
	faults []Error
}

func (d *document) at(n *yaml.Node) jobfile.Pos {
	return jobfile.Pos{Filename: d.file, Line: n.Line, Column: n.Column}
}

func (d *document) fault(at jobfile.Pos, key, found, want string) {
	d.faults = append(d.faults, faultAt(at, key, found, want, nil))
}

func (d *document) unknown(n *yaml.Node, block, name string, known []string) {
	want := cmp.Or(strings.TrimPrefix(jobfile.Suggestion(name, known), "; "), "want one of "+strings.Join(known, ", "))
	d.fault(d.at(n), block, fmt.Sprintf("unknown key %q", name), want)
}

// parse returns the block that the file is: an empty one for an empty or a faulty file.
func (d *document) parse(data []byte) *yaml.Node {
	empty := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	if len(data) > maxFile {
		d.fault(d.at(empty), "", fmt.Sprintf("a file of %d bytes", len(data)), fmt.Sprintf("want at most %d", maxFile))
		return empty
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		d.fault(d.at(&second), "", "a second document", "want one document in a file")
	case !errors.Is(err, io.EOF):
		// The parser's error has the line inside its text.
		text, where := strings.TrimPrefix(err.Error(), "yaml: "), jobfile.Pos{Filename: d.file}
		if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
			text, where.Filename = text[len(m[0]):], where.Filename+":"+m[1]
		}
		d.fault(where, "", text, "want YAML")
	case doc.Content == nil || isNull(doc.Content[0]):
	case doc.Content[0].Kind != yaml.MappingNode:
		d.fault(d.at(doc.Content[0]), "", "found "+kindOf(doc.Content[0]), "want a block of keys")
	default:
		return doc.Content[0]
	}
	return empty
}

type pair struct{ key, value *yaml.Node }

// pairs lists the keys of a block and leaves faulty ones out. A block without content has none.
func (d *document) pairs(path string, n *yaml.Node) (out []pair) {
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			d.fault(d.at(n), path, "found "+kindOf(n), "want a block of keys")
		}
		return nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		line, twice := seen[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge" || isNull(k):
			d.fault(d.at(k), path, "found "+kindOf(k)+" as a key", "want a plain word")
		case twice:
			d.fault(d.at(k), join(path, k.Value), "the key appears a second time", fmt.Sprintf("want it once; the first is in line %d", line))
		default:
			seen[k.Value] = k.Line
			out = append(out, pair{k, v})
		}
	}
	return out
}

// flatten gathers the values of a block by their dotted names, each of which is in types; one
// that ends in .* stands for every name in its block. Block is where the block is in the file.
func (d *document) flatten(block, path string, n *yaml.Node, types map[string]Type, out map[string]scalar) {
	for _, p := range d.pairs(join(block, path), n) {
		name := join(path, p.key.Value)
		var below bool
		var beside []string
		for _, known := range slices.Sorted(maps.Keys(types)) {
			if strings.HasPrefix(known, name+".") {
				below = true
			} else if rest, ok := strings.CutPrefix(known, path); ok && !types[known].gone {
				next, _, _ := strings.Cut(strings.Trim(rest, "."), ".")
				beside = append(beside, join(path, next))
			}
		}
		t, plain := types[name]
		if every, ok := types[path+".*"]; ok && !plain {
			if t, plain = every, true; !knobs().takes(p.key.Value) {
				d.fault(d.at(p.key), join(block, path), fmt.Sprintf("found %q", p.key.Value), "want "+knobs().want)
				continue
			}
		}
		switch {
		case below && (!plain || p.value.Kind != yaml.ScalarNode):
			d.flatten(block, name, p.value, types, out)
		case !plain:
			d.unknown(p.key, block, name, slices.Compact(beside))
		default:
			if v, ok := d.typed(join(block, name), p.value, t); ok {
				out[name] = v
			}
		}
	}
}

// typed reads a value of a type. A list in YAML is its items with commas between them.
func (d *document) typed(key string, n *yaml.Node, t Type) (v scalar, ok bool) {
	items, texts := []*yaml.Node{n}, []string{}
	if t.list && n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || isNull(item) {
			d.fault(d.at(item), key, "found "+kindOf(item), "want "+t.want)
			return v, false
		}
		texts = append(texts, item.Value)
	}
	return d.read(key, strings.Join(texts, ","), d.at(n), t)
}

func (d *document) read(key, text string, at jobfile.Pos, t Type) (v scalar, ok bool) {
	value, ok := t.read(text)
	if !ok {
		d.fault(at, key, fmt.Sprintf("found %q", text), "want "+t.want+jobfile.Suggestion(text, t.words))
	}
	return scalar{text, at, value}, ok
}

func join(path, name string) string { return strings.Trim(path+"."+name, ".") }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// kindOf names what is there. An alias is refused like everything else that is not a plain
// value: a policy must be readable from top to bottom.
func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.ScalarNode:
		return fmt.Sprintf("%q", n.Value)
	}
	return map[yaml.Kind]string{yaml.MappingNode: "a block of keys", yaml.SequenceNode: "a list", yaml.AliasNode: "an alias"}[n.Kind]
}

// ErrInvalid is what every fault of a configuration or of a site's policy wraps: a person has
// to change what is written.
var ErrInvalid = errors.New("invalid configuration")

// ErrUntrusted is returned for a file that others than its owner may change, or read where it
// is a secret: a person has to look at it and set its owner and mode.
var ErrUntrusted = errors.New("untrusted file")

// Error is one fault. Its place is in a file, or is a variable or a flag.
type Error struct {
	jobfile.Pos
	fault string // KEY: what was found; what is allowed there, and the nearest known word
	cause error  // of a path that cannot be used, else nil
}

func faultAt(at jobfile.Pos, key, found, want string, cause error) Error {
	if key != "" {
		found = key + ": " + found
	}
	return Error{at, found + "; " + want, cause}
}

// Error prints one line: where: key: found; want.
func (e Error) Error() string { return e.Pos.String() + ": " + e.fault }

// Is reports that a person has to change what is written.
func (e Error) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the system's error where a path cannot be used.
func (e Error) Unwrap() error { return e.cause }

// joined is one error of all faults, those of a file first, in the order of their places; nil:
// none.
func joined(faults []Error) error {
	slices.SortStableFunc(faults, func(a, b Error) int {
		return cmp.Or(cmp.Compare(min(b.Line, 1), min(a.Line, 1)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return errors.Join(tuning.Each(faults, func(e Error) error { return e })...)
}
