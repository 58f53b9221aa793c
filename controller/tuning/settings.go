package tuning

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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

// Compare orders values by their numbers, and other values by their texts.
func (v Value) Compare(o Value) int {
	return cmp.Or(cmp.Compare(v.Float(), o.Float()), cmp.Compare(v.String(), o.String()))
}

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
// would read as something else are in double quotes.
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

// ErrUnit is what every unit parser wraps: the text is not a quantity of the
// asked kind.
var ErrUnit = errors.New("not a quantity")

// Joules is an amount of energy.
type Joules float64

// Bytes is an amount of memory or data.
type Bytes int64

const maxBytes = math.MaxInt64 / 2

type unit struct {
	name   string
	factor float64
}

func binaryUnits() []unit {
	return []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
}

// Longer names come first, so that "MiB" is not read as "B".
func byteUnits() []unit {
	return append(
		binaryUnits(),
		unit{"kB", 1e3}, unit{"KB", 1e3}, unit{"MB", 1e6}, unit{"GB", 1e9}, unit{"TB", 1e12},
		unit{"K", 1 << 10}, unit{"M", 1 << 20}, unit{"G", 1 << 30}, unit{"T", 1 << 40}, unit{"B", 1}, unit{"", 1},
	)
}

func energyUnits() []unit {
	return []unit{{"MWh", 3.6e9}, {"kWh", 3.6e6}, {"Wh", 3600}, {"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}, {"KJ", 1e3}, {"J", 1}, {"", 1}}
}

// ParseBytes reads "256MiB", "4GiB", "16G" (binary, as schedulers mean it),
// "1.5GB" (decimal) or a plain number of bytes.
func ParseBytes(s string) (Bytes, error) {
	for number, u := range quantities(s, byteUnits()) { // float64 holds 53 bits only
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && n <= maxBytes/int64(u.factor) {
			return Bytes(n * int64(u.factor)), nil
		}
	}
	v, err := parseQuantity(s, byteUnits())
	if err != nil {
		return 0, fmt.Errorf("%w: want an amount of memory such as 256MiB or 4GiB", err)
	}
	if v > maxBytes {
		return 0, fmt.Errorf("%w: %q is more memory than any machine has", ErrUnit, s)
	}
	return Bytes(math.Round(v)), nil
}

// ParseJoules reads "2MJ", "500kJ", "0.5kWh" or a plain number of joules.
func ParseJoules(s string) (Joules, error) {
	v, err := parseQuantity(s, energyUnits())
	if err != nil {
		return 0, fmt.Errorf("%w: want an amount of energy such as 2MJ or 0.5kWh", err)
	}
	return Joules(v), nil
}

// quantities yields the text before each of the units that it ends in.
func quantities(s string, units []unit) func(yield func(number string, u unit) bool) {
	return func(yield func(string, unit) bool) {
		for _, u := range units {
			if number, ok := strings.CutSuffix(strings.TrimSpace(s), u.name); ok && !yield(strings.TrimSpace(number), u) {
				return
			}
		}
	}
}

func parseQuantity(s string, units []unit) (float64, error) {
	for number, u := range quantities(s, units) {
		v, ok := decimal(number)
		switch {
		case !ok:
		case v < 0:
			return 0, fmt.Errorf("%w: %q is negative", ErrUnit, s)
		case math.IsInf(v*u.factor, 0):
			return 0, fmt.Errorf("%w: %q is too large", ErrUnit, s)
		default:
			return v * u.factor, nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrUnit, s)
}

// decimal reads a finite number in decimal notation.
func decimal(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && !strings.ContainsAny(text, "xXpP_")
}

// ParseDuration reads Go durations ("90m", "1h30m"), days ("2d"), and plain
// seconds ("60").
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	d, err := time.ParseDuration(text)
	if err != nil {
		number, isDays := strings.CutSuffix(text, "d")
		v, ok := decimal(number)
		if !ok {
			return 0, fmt.Errorf("%w: %q: want a time such as 60s, 90m or 4h", ErrUnit, s)
		}
		if v *= float64(time.Second); isDays {
			v *= 24 * 3600
		}
		if v > math.MaxInt64/2 {
			return 0, fmt.Errorf("%w: %q is longer than 146 years", ErrUnit, s)
		}
		d = time.Duration(math.Round(max(v, -1))) // -1 is as negative as any other
	}
	if d < 0 {
		return 0, fmt.Errorf("%w: %q is negative", ErrUnit, s)
	}
	return d, nil
}

// String prints the largest binary unit that divides the amount evenly, so that
// what is printed can be written back into a stanza.
func (b Bytes) String() string {
	for _, u := range slices.Backward(binaryUnits()) {
		if n := int64(u.factor); b != 0 && int64(b)%n == 0 {
			return strconv.FormatInt(int64(b)/n, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Human prints the amount rounded for reading, "1.4 GiB": three digits, and all
// of those before the point.
func (b Bytes) Human() string {
	for _, u := range slices.Backward(binaryUnits()) {
		v := float64(b) / u.factor
		switch {
		case v >= 999.5: // 'g' would print 1e+03
			return strconv.FormatFloat(v, 'f', 0, 64) + " " + u.name
		case v >= 1:
			return strconv.FormatFloat(v, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// String prints an amount that ParseJoules reads back, exactly: in the largest
// unit that loses nothing.
func (j Joules) String() string {
	for _, u := range []unit{{"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}} {
		v := float64(j) / u.factor
		if math.Abs(v) >= 1 && v*u.factor == float64(j) {
			return strconv.FormatFloat(v, 'g', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(float64(j), 'g', -1, 64) + "J"
}
