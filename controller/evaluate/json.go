package evaluate

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// MarshalJSON writes the report as encoding/json would, but for two things: a figure that
// is not finite is null, wherever it stands, since one of them would refuse all the
// others; and there are rows and data, if only none.
func (r Report[R, S]) MarshalJSON() ([]byte, error) {
	if r.Data == nil {
		r.Data = []string{}
	}
	if r.Rows == nil {
		r.Rows = []R{}
	}
	var b bytes.Buffer
	if err := encodeStruct(&b, reflect.ValueOf(r)); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Command, err)
	}
	return b.Bytes(), nil
}

func encode(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() { //nolint:exhaustive // what is not named here has nothing inside
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		if !speaks(v) {
			return encode(b, v.Elem())
		}
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			b.WriteString("null")
			return nil
		}
	case reflect.Struct:
		if !speaks(v) {
			return encodeStruct(b, v)
		}
	case reflect.Slice, reflect.Array:
		if !speaks(v) && (v.Kind() == reflect.Array || !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8) {
			return encodeList(b, v)
		}
	case reflect.Map:
		if !speaks(v) && !v.IsNil() && v.Type().Key().Kind() == reflect.String {
			return encodeMap(b, v)
		}
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

// speaks tells whether a value writes itself.
func speaks(v reflect.Value) bool {
	t := v.Type()
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func encodeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	first := true
	for _, f := range Fields(v.Type()) {
		at, err := v.FieldByIndexErr(f.Index)
		if err != nil || f.OmitEmpty && empty(at) {
			continue // of a nil pointer, or empty
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if err := encodePair(b, f.Key, at); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func encodePair(b *bytes.Buffer, key string, v reflect.Value) error {
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	b.Write(name)
	b.WriteByte(':')
	return encode(b, v)
}

func encodeList(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func encodeMap(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(x, y reflect.Value) int { return cmp.Compare(x.String(), y.String()) })
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encodePair(b, k.String(), v.MapIndex(k)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// empty is what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // as encoding/json has it
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// Field is one key of the JSON of a struct.
type Field struct {
	Key       string
	Index     []int
	OmitEmpty bool
	Type      reflect.Type
}

// Fields are the keys of a struct in their order, those of embedded structs among them.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				out = append(out, inner)
			}
		case f.IsExported():
			out = append(out, Field{cmp.Or(name, f.Name), []int{i}, slices.Contains(strings.Split(options, ","), "omitempty"), f.Type})
		}
	}
	return out
}
