package benchmind

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// fields are the keys of one row or summary.
type fields map[string]any

// object is what an evaluation prints with --json.
type object struct {
	Command string   `json:"command"`
	Rows    []fields `json:"rows"`
	Summary fields   `json:"summary"`
}

func decode(from io.Reader) (object, error) {
	var o object
	if err := json.NewDecoder(from).Decode(&o); err != nil {
		return o, fmt.Errorf("its output is not the JSON of an evaluation: %w", err)
	}
	if o.Command == "" || o.Summary == nil {
		return o, fmt.Errorf("its output lacks command or summary")
	}
	return o, nil
}

// number is that of a key; false: it is missing or null.
func (f fields) number(key string) (float64, bool) {
	v, ok := f[key].(float64)
	return v, ok
}

// word is that of a key, empty where it is missing.
func (f fields) word(key string) string {
	v, _ := f[key].(string)
	return v
}

// one is the object of a key, nil where it is missing or null.
func (f fields) one(key string) fields {
	m, _ := f[key].(map[string]any)
	return m
}

// list are the rows of a key.
func (f fields) list(key string) []fields {
	all, _ := f[key].([]any)
	out := make([]fields, 0, len(all))
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// where are the rows that have all of the given words and numbers.
func where(rows []fields, has fields) []fields {
	return slices.DeleteFunc(slices.Clone(rows), func(r fields) bool { return !matches(r, has) })
}

func matches(r, has fields) bool {
	for k, v := range has {
		if r[k] != v {
			return false
		}
	}
	return true
}
