package tuning_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/controller/tuning"
)

// declared are the constants of type Reason in reason.go: name → text.
func declared(t *testing.T) map[string]tuning.Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tuning.Reason{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if !strings.HasPrefix(v.Names[0].Name, "Reason") {
				continue
			}
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Reason" {
				t.Fatalf("%s is not declared as a Reason", v.Names[0])
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = tuning.Reason(text)
		}
	}
	return out
}

func TestEveryReasonHasOneSentence(t *testing.T) {
	t.Parallel()
	names, rows := declared(t), map[tuning.Reason]bool{tuning.ReasonNone: true}
	page, err := os.ReadFile("REASONS.md")
	if err != nil || len(names) < 50 {
		t.Fatalf("%d reasons (%v)", len(names), err)
	}
	sentences := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.*?) \\| .*\\|$").FindAllStringSubmatch(string(page), -1) {
		r, sentence := tuning.Reason(row[1]), row[2]
		switch {
		case rows[r] || sentences[sentence]:
			t.Errorf("%q: it or its sentence %q stands twice", r, sentence)
		case r.Sentence() != sentence:
			t.Errorf("%q says %q, want %q", r, r.Sentence(), sentence)
		case strings.TrimRight(sentence, ".") != sentence || strings.ToLower(sentence[:1]) != sentence[:1]:
			t.Errorf("%q: the sentence %q is not made to stand inside another", r, sentence)
		}
		rows[r], sentences[sentence] = true, true
	}
	known := map[tuning.Reason]bool{}
	for name, r := range names {
		if known[r] || !rows[r] {
			t.Errorf("%s (%q) is declared twice, or has no sentence", name, r)
		}
		known[r] = true
	}
	if len(known) != len(rows) {
		t.Errorf("%d reasons and %d sentences", len(known), len(rows))
	}
	for r, want := range map[tuning.Reason]string{"": "", "of-another-version": "of-another-version"} {
		if got := r.Sentence(); got != want {
			t.Errorf("%q says %q, want %q", r, got, want)
		}
	}
}
