package tuning

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Value is one value of a knob: a number or a word. The zero Value is not set. Values compare with
// ==.
type Value struct {
	word   string
	number float64
	kind   valueKind
}

type valueKind uint8

const (
	unset valueKind = iota
	isNumber
	isWord
)

// Number makes a numeric Value. Memory is a number of bytes.
func Number(f float64) Value { return Value{number: f, kind: isNumber} }

// Word makes a Value that is a name, such as "adam".
func Word(s string) Value { return Value{word: s, kind: isWord} }

// ParseValue reads a number where the text is a finite one, else a word.
func ParseValue(s string) Value {
	if f, ok := decimal(s); ok {
		return Number(f)
	}
	return Word(s)
}

// IsSet reports whether the Value holds anything.
func (v Value) IsSet() bool { return v.kind != unset }

// IsNumber reports whether the Value is numeric.
func (v Value) IsNumber() bool { return v.kind == isNumber }

// Float returns the number, and 0 for words.
func (v Value) Float() float64 { return v.number }

// Int returns the number rounded to the nearest integer, and 0 for words.
func (v Value) Int() int { return int(math.Round(v.number)) }

// String prints the value as a job would read it: integers without exponent.
func (v Value) String() string {
	switch v.kind {
	case isNumber:
		if v.number == math.Trunc(v.number) && math.Abs(v.number) < 1e15 {
			return strconv.FormatInt(int64(v.number), 10)
		}
		return strconv.FormatFloat(v.number, 'g', -1, 64)
	case isWord:
		return v.word
	case unset:
	}
	return ""
}

// Equal lets go-cmp compare values.
func (v Value) Equal(o Value) bool { return v == o }

// MarshalJSON writes a number, a string, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case isNumber:
		return json.Marshal(v.number)
	case isWord:
		return json.Marshal(v.word)
	case unset:
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	var x any
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	switch x := x.(type) {
	case nil:
		*v = Value{}
	case float64:
		*v = Number(x)
	case string:
		*v = Word(x)
	default:
		return fmt.Errorf("value: want a number or a string, found %T", x)
	}
	return nil
}

// Settings are the values of a job's knobs. A missing name is as the job file has it.
type Settings map[string]Value

// Clone returns a copy that the caller owns.
func (s Settings) Clone() Settings {
	if s == nil {
		return Settings{}
	}
	return maps.Clone(s)
}

// With returns a copy with one value replaced.
func (s Settings) With(name string, v Value) Settings {
	c := s.Clone()
	c[name] = v
	return c
}

// Merge returns a copy in which the values of o override those of s.
func (s Settings) Merge(o Settings) Settings {
	c := s.Clone()
	maps.Copy(c, o)
	return c
}

// Only returns the settings of the named knobs.
func (s Settings) Only(keep func(name string) bool) Settings {
	c := Settings{}
	for k, v := range s {
		if keep(k) {
			c[k] = v
		}
	}
	return c
}

// Key is a canonical text, equal exactly when the settings are: "batch_size=32 cores=2". Words that
// would read as something else stand in double quotes.
func (s Settings) Key() string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quoteIf(ambiguous(name), name) + "=" + s.text(name))
	}
	return b.String()
}

// String prints what Key prints.
func (s Settings) String() string { return s.Key() }

func (s Settings) text(name string) string {
	v := s[name]
	if v.kind == isWord {
		_, notNumber := strconv.ParseFloat(v.word, 64)
		_, notBytes := ParseBytes(v.word)
		return quoteIf(ambiguous(v.word) || notNumber == nil || name == Memory && notBytes == nil, v.word)
	}
	if f := v.Float(); name == Memory && v.IsNumber() && f == math.Trunc(f) && f >= 0 && f <= maxBytes {
		return Bytes(f).String()
	}
	return v.String()
}

func ambiguous(text string) bool {
	return text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return r == '=' || r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

func quoteIf(quote bool, text string) string {
	if quote {
		return strconv.Quote(text)
	}
	return text
}

// WithoutMemory are the settings without the memory, which only bounds the work.
func (s Settings) WithoutMemory() Settings {
	return s.Only(func(name string) bool { return name != Memory })
}

// Shape are the cores and threads: only what ran under the same can be compared.
func (s Settings) Shape() Settings {
	return s.Only(func(name string) bool { return name == Cores || name == Threads })
}

// EqualButMemory reports whether both do the same work.
func (s Settings) EqualButMemory(o Settings) bool {
	return s.WithoutMemory().Equal(o.WithoutMemory())
}

// Equal reports whether both hold the same knobs with the same values.
func (s Settings) Equal(o Settings) bool { return maps.Equal(s, o) }

// Diff lists the knobs whose values differ, sorted by name.
func (s Settings) Diff(o Settings) []string {
	var names []string
	for k, v := range o {
		if w, ok := s[k]; !ok || w != v {
			names = append(names, k)
		}
	}
	for k := range s {
		if _, ok := o[k]; !ok {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
