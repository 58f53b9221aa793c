package jsontree

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
)

// Parse reads a stanza from JSON text. Places are lines and columns of that text.
// The error, if any, is of type jobfile.Errors.
func Parse(filename string, src []byte) (*jobfile.Block, error) {
	return parse(src, func(offset int) jobfile.Pos { return jobfile.At(filename, src, offset) })
}

// ParseAt reads a stanza from JSON text that was the value of something else:
// every place in it is at.
func ParseAt(at jobfile.Pos, src []byte) (*jobfile.Block, error) {
	return parse(src, func(int) jobfile.Pos { return at })
}

func parse(src []byte, pos func(offset int) jobfile.Pos) (*jobfile.Block, error) {
	fail := func(offset int, found string) error {
		return jobfile.Errors{{Pos: pos(offset), Found: found, Want: `want a JSON object such as {"mode":"apply"}`}}
	}
	if !utf8.Valid(src) {
		return nil, fail(0, "text that is not UTF-8")
	}
	// This decoder bounds the nesting, and says more clearly what is wrong.
	var any json.RawMessage
	if err := json.Unmarshal(src, &any); err != nil {
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
		Pos: func(r hcl.Range) jobfile.Pos { return pos(r.Start.Byte) },
		Eval: func(e hcl.Expression) (cty.Value, bool) {
			v, diags := e.Value(nil)
			return v, !diags.HasErrors()
		},
	}
	return r.Stanza(e)
}
