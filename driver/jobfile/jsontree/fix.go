package jsontree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"pitchpipe/driver/jobfile"
)

// Without changes a stanza as package json decodes it: what a Fix leaves out is gone.
func Without(v any, f jobfile.Fix) any { return without(v, "stanza", f) }

// without drops what leaves an object: the stanza ("stanza"), its knobs ("knobs"), or a block.
func without(v any, kind string, f jobfile.Fix) any {
	if list, ok := v.([]any); ok {
		for i := range list {
			list[i] = without(list[i], kind, f)
		}
		return slices.DeleteFunc(list, func(e any) bool { o, ok := e.(map[string]any); return ok && len(o) == 0 })
	}
	object, _ := v.(map[string]any)
	for name, inner := range object {
		switch {
		case kind == "stanza" && f.Leaves(name, "") && f.Mode != "" && object["mode"] == nil:
			object["mode"] = f.Mode
			delete(object, name)
		case kind == "stanza" && f.Leaves(name, ""), kind == "knobs" && f.Leaves(knob, name), f.Drops(kind, name):
			delete(object, name)
		case kind == "knobs":
			object[name] = without(inner, knob, f)
		case kind == "stanza":
			object[name] = without(inner, cmp.Or(map[string]string{"tuning": "stanza", knob: "knobs"}[name], name), f)
		}
	}
	return v
}

// WithoutIn is JSON text of a stanza without what a Fix leaves out, and any text that is not
// JSON unchanged.
func WithoutIn(text string, f jobfile.Fix) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return string(bytes.TrimSpace(Encode(Without(v, f), "")))
}

// Encode is JSON as people write it: with < and > and a line break at its end. What package
// json decoded never fails.
func Encode(v any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	_ = e.Encode(v)
	return b.Bytes()
}
