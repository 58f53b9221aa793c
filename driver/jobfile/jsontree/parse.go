package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
)

// maxDepth is how deep objects and lists may nest; a stanza needs seven levels.
const maxDepth = 32

// Parse reads a stanza from JSON text. Places are lines and columns of that text.
// The error, if any, is of type jobfile.Errors.
func Parse(filename string, src []byte) (*jobfile.Block, error) {
	return parse(src, func(offset int64) jobfile.Pos {
		before := src[:min(int(offset), len(src))]
		return jobfile.Pos{
			Filename: filename,
			Line:     bytes.Count(before, []byte("\n")) + 1,
			Column:   len(before) - bytes.LastIndexByte(before, '\n'),
		}
	})
}

// ParseAt reads a stanza from JSON text that was the value of something else:
// every place in it is at.
func ParseAt(at jobfile.Pos, src []byte) (*jobfile.Block, error) {
	return parse(src, func(int64) jobfile.Pos { return at })
}

func parse(src []byte, pos func(int64) jobfile.Pos) (*jobfile.Block, error) {
	fail := func(offset int64, found string) error {
		return jobfile.Errors{{Pos: pos(offset), Found: found, Want: `want a JSON object such as {"mode":"apply"}`}}
	}
	if !utf8.Valid(src) {
		return nil, fail(0, "text that is not UTF-8")
	}
	p := &parser{src: src, pos: pos, dec: json.NewDecoder(bytes.NewReader(src))}
	p.dec.UseNumber()
	n, err := p.node(0)
	if err == nil {
		if _, err = p.next(); errors.Is(err, io.EOF) {
			return Build(n)
		}
		return nil, fail(p.last, "more text behind the JSON object")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fail(p.last, "broken JSON: "+err.Error())
}

// parser reads tokens with their places.
type parser struct {
	src []byte
	dec *json.Decoder
	pos func(offset int64) jobfile.Pos

	last int64 // offset of the last token, the broken one included
}

// next returns the next token and remembers where it starts.
func (p *parser) next() (json.Token, error) {
	p.last = p.start()
	return p.dec.Token()
}

// start is the offset of the next token: the decoder's offset is the end of the
// last one.
func (p *parser) start() int64 {
	i := p.dec.InputOffset()
	for i < int64(len(p.src)) && strings.IndexByte(" \t\r\n,:", p.src[i]) >= 0 {
		i++
	}
	return i
}

var (
	errDepth  = errors.New("nested too deeply")
	errNumber = errors.New("a number beyond all bounds")
)

func (p *parser) node(depth int) (Node, error) {
	if depth > maxDepth {
		return Node{}, errDepth
	}
	token, err := p.next()
	n := Node{Pos: p.pos(p.last)}
	if err != nil {
		return n, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			n.Shape = Object
			n.Members, err = p.members(depth)
		} else {
			n.Shape = Array
			n.Elems, err = p.elems(depth)
		}
		return n, err
	case string:
		n.Value = jobfile.Value{Kind: jobfile.String, Text: cty.NormalizeString(t)}
	case bool:
		n.Value = jobfile.Value{Kind: jobfile.Bool, Bool: t}
	case json.Number:
		f, err := t.Float64()
		if err != nil {
			return n, errNumber
		}
		n.Value = jobfile.Value{Kind: jobfile.Number, Number: f, Text: t.String()}
	default:
		n.Value = jobfile.Value{Kind: jobfile.Other}
	}
	return n, nil
}

func (p *parser) members(depth int) ([]Member, error) {
	var out []Member
	for p.dec.More() {
		token, err := p.next()
		at := p.pos(p.last)
		if err != nil {
			return out, err
		}
		name, _ := token.(string) // the decoder accepts nothing else as a name
		n, err := p.node(depth + 1)
		if err != nil {
			return out, err
		}
		out = append(out, Member{Name: cty.NormalizeString(name), Pos: at, Node: n})
	}
	_, err := p.next()
	return out, err
}

func (p *parser) elems(depth int) ([]Node, error) {
	var out []Node
	for p.dec.More() {
		n, err := p.node(depth + 1)
		if err != nil {
			return out, err
		}
		out = append(out, n)
	}
	_, err := p.next()
	return out, err
}
