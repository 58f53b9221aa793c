package jsontree_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
)

func at(line, column int) jobfile.Pos {
	return jobfile.Pos{Filename: "f", Line: line, Column: column}
}

// parse reads a text by itself, whose places are its lines and columns.
func parse(text string) (*jobfile.Block, error) {
	src := []byte(text)
	return jsontree.Parse(src, func(offset int, _ string) jobfile.Pos { return jobfile.At("f", src, offset) })
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("{\"mode\" : \"a\",\n \"knob\": [{\"c\": [{\"values\": [1, null, [true]]}]}],\n \"budget\": {}, \"x\": [] }\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &jobfile.Block{
		Pos: at(1, 1),
		Attrs: []jobfile.Attr{
			{Name: "mode", Pos: at(1, 2), ValuePos: at(1, 11), Value: jobfile.Value{Kind: jobfile.String, Text: "a"}},
			{Name: "x", Pos: at(3, 16), ValuePos: at(3, 21), Value: jobfile.Value{Kind: jobfile.List}},
		},
		Blocks: []*jobfile.Block{
			{
				Type: "knob", Label: "c", Pos: at(2, 12), LabelPos: at(2, 12),
				Attrs: []jobfile.Attr{{
					Name: "values", Pos: at(2, 19), ValuePos: at(2, 29),
					Value: jobfile.Value{Kind: jobfile.List, List: []jobfile.Item{
						{Pos: at(2, 30), Value: jobfile.Value{Kind: jobfile.Number, Number: 1, Text: "1"}},
						{Pos: at(2, 33), Value: jobfile.Value{Kind: jobfile.Other}},
						{Pos: at(2, 39), Value: jobfile.Value{Kind: jobfile.List, List: []jobfile.Item{
							{Pos: at(2, 40), Value: jobfile.Value{Kind: jobfile.Bool, Bool: true}},
						}}},
					}},
				}},
			},
			{Type: "budget", Pos: at(3, 2)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"nothing", "", "f:1:1: broken JSON: unexpected end of JSON input"},
		{"no object", "3", "f:1:1: the tuning stanza is not an object"},
		{"two objects", "[{},{}]", "f:1:1: the tuning stanza is not an object"},
		{"cut off", "{\n\"a\":", "f:2:4: broken JSON: unexpected end of JSON input"},
		{"a missing quote", "{\"a: 1}", "f:1:7: broken JSON: unexpected end of JSON input"},
		{"a word", "{\"a\": yes}", "f:1:7: broken JSON: invalid character 'y'"},
		{"more behind it", "{} {}", "f:1:4: broken JSON: invalid character '{' after top-level value"},
		{"deep nesting", strings.Repeat("[", 1<<20), "f:1:10001: broken JSON: invalid character '[' exceeded max depth"},
		{"no text", "\xff", "f:1:1: text that is not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.src)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
