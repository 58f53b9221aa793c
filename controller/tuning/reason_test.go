package tuning_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
)

var update = flag.Bool("update", false, "rewrite the golden files")

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

func TestTheListOfReasonsIsClosed(t *testing.T) {
	t.Parallel()
	names, known := declared(t), map[tuning.Reason]bool{}
	if len(names) < 50 {
		t.Fatalf("%d reasons found in reason.go", len(names))
	}
	for name, r := range names {
		if known[r] {
			t.Errorf("%s: %q is declared twice", name, r)
		}
		known[r] = true
	}
	said, sentences := map[tuning.Reason]bool{tuning.ReasonNone: true}, map[string]bool{}
	for _, r := range tuning.Reasons() {
		switch {
		case !known[r.Reason]:
			t.Errorf("%q has a sentence and no constant", r.Reason)
		case said[r.Reason]:
			t.Errorf("%q has two sentences", r.Reason)
		case r.Sentence == "" || sentences[r.Sentence]:
			t.Errorf("%q: the sentence %q is empty or stands twice", r.Reason, r.Sentence)
		case r.Reason.Sentence() != r.Sentence:
			t.Errorf("%q says %q, want %q", r.Reason, r.Reason.Sentence(), r.Sentence)
		case strings.TrimRight(r.Sentence, ".") != r.Sentence || strings.ToLower(r.Sentence[:1]) != r.Sentence[:1]:
			t.Errorf("%q: the sentence %q is not made to stand inside another", r.Reason, r.Sentence)
		}
		said[r.Reason], sentences[r.Sentence] = true, true
	}
	for name, r := range names {
		if !said[r] {
			t.Errorf("%s (%q) has no sentence", name, r)
		}
	}
	if got := tuning.ReasonNone.Sentence(); got != "" {
		t.Errorf("no reason says %q", got)
	}
	if got := tuning.Reason("of-another-version").Sentence(); got != "of-another-version" {
		t.Errorf("an unknown reason says %q, want itself", got)
	}
}

func TestReasonsPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Reasons\n\nWhatever Pitchpipe does with a job, and whatever it leaves undone, has one of these reasons. They stand in\n" +
		"`pitchpipe status`, in `pitchpipe explain`, in the audit, and as `reason` in every JSON output.\n\n" +
		"This page is generated from `reason.go`: `go test ./controller/tuning -update`.\n\n| reason | meaning |\n|---|---|\n")
	for _, r := range tuning.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Reason, r.Sentence)
	}
	if *update {
		if err := os.WriteFile("REASONS.md", []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("REASONS.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("REASONS.md (-have +want):\n%s", diff)
	}
}
