package stanza

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// datum is a value as a block gives it. A key whose value could not be read has no text.
type datum struct {
	key, at jobfile.Pos
	text    string
	items   []jobfile.Item // of TypeValue and TypeValues, which the knob reads
	bad     bool           // it is not what the key wants
}

// readValue reads the value of a key into its field. Found is empty, or says what is there
// instead of what the key wants.
func readValue(k Key, a jobfile.Attr, into any) (d datum, found string) {
	d = datum{key: a.Pos, at: a.ValuePos}
	v := single(a.Value)
	if k.Type == TypeValues && a.Value.Kind == jobfile.List {
		d.items = a.Value.List
		return d, ""
	}
	if list, ok := into.(*[]string); ok {
		return d, readWords(k, a, list)
	}
	if k.Type == TypeValue || k.Type == TypeValues {
		d.items = []jobfile.Item{{Pos: a.ValuePos, Value: v}}
		return d, ""
	}
	text, ok := scalarText(v)
	found = k.Name + " is " + describe(v)
	if !ok || !printable(text) {
		return d, found
	}
	d.text = text
	if !k.set(into, v, text) {
		return d, found
	}
	if k.Type == TypePattern {
		if _, err := regexp.Compile(text); err != nil {
			return d, fmt.Sprintf("%s does not compile: %s", k.Name, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	return d, ""
}

func readWords(k Key, a jobfile.Attr, into *[]string) (found string) {
	items := a.Value.List
	if a.Value.Kind != jobfile.List {
		items = []jobfile.Item{{Value: a.Value}}
	}
	for _, item := range items {
		text, ok := scalarText(item.Value)
		switch {
		case !ok || !slices.Contains(k.Words, text):
			return "a word of " + k.Name + " is " + describe(item.Value)
		case slices.Contains(*into, text):
			return k.Name + " has the word " + text + " twice"
		}
		*into = append(*into, text)
	}
	if len(items) == 0 {
		return k.Name + " is an empty list"
	}
	return ""
}

// set sets the field of the key and reports whether the text is a value of its type.
func (k Key) set(into any, v jobfile.Value, text string) bool {
	word := v.Kind != jobfile.Number && slices.Contains(k.Words, text)
	value := tuning.ParseValue(text)
	number := positiveZero(value.Float())
	if word {
		number = 0 // of none, which bounds nothing
	}
	numeric := word || value.IsNumber() && v.Kind != jobfile.Bool && number >= k.Low && number <= k.High
	var err error
	switch into := into.(type) {
	case *string:
		*into = text
		return word || k.Type != TypeWord && text != "" && (v.Kind == jobfile.String || v.Kind == jobfile.Bare)
	case *bool:
		*into = text == "true"
		return *into || text == "false"
	case *float64:
		*into = number
		return numeric
	case **float64:
		*into = &number
		return numeric
	case *int:
		*into = int(number)
		return numeric && number == math.Trunc(number)
	case *uint64:
		*into = uint64(max(number, 0))
		return numeric && number == math.Trunc(number)
	case **tuning.Condition:
		knob, value, ok := strings.Cut(text, "=")
		*into = &tuning.Condition{Knob: knob, Value: tuning.ParseValue(value)}
		return ok
	case *time.Duration:
		*into, err = tuning.ParseDuration(text)
		return err == nil && *into > 0 && !value.IsNumber() // 30 is minutes elsewhere, as in #SBATCH --time
	case *tuning.Joules:
		*into, err = tuning.ParseJoules(text)
		return err == nil && *into > 0 && !value.IsNumber() && !math.IsInf(float64(*into), 0)
	}
	return false
}

// positiveZero turns -0 into 0, which prints and compares alike everywhere.
func positiveZero(f float64) float64 {
	if f == 0 {
		return 0
	}
	return f
}

// single joins a bare list of a #TUNE line for a key that wants one text: there a comma is
// only a comma.
func single(v jobfile.Value) jobfile.Value {
	if v.Kind != jobfile.List || len(v.List) == 0 {
		return v
	}
	parts := make([]string, len(v.List))
	for i, item := range v.List {
		if item.Value.Kind != jobfile.Bare {
			return v
		}
		parts[i] = item.Value.Text
	}
	return jobfile.Value{Kind: jobfile.Bare, Text: strings.Join(parts, ",")}
}

func scalarText(v jobfile.Value) (string, bool) {
	switch v.Kind {
	case jobfile.String, jobfile.Bare:
		return v.Text, true
	case jobfile.Number:
		return strconv.FormatFloat(v.Number, 'g', -1, 64), true
	case jobfile.Bool:
		return strconv.FormatBool(v.Bool), true
	case jobfile.List, jobfile.Other:
	}
	return "", false
}

// printable reports whether a text fits both spellings of a stanza.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || r == utf8.RuneError || r == '\uFEFF'
	}) < 0
}

func describe(v jobfile.Value) string {
	text, scalar := scalarText(v)
	switch {
	case v.Kind == jobfile.List && len(v.List) == 0:
		return "an empty list"
	case v.Kind == jobfile.List:
		return "a list"
	case !scalar:
		return "null, an object, or not known before the job runs"
	case v.Kind == jobfile.Number || v.Kind == jobfile.Bool:
		return text
	case len(text) > 80:
		return "a long text"
	}
	return strconv.Quote(text)
}
