package reconcile_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/controller/reconcile"
)

var update = flag.Bool("update", false, "rewrite STATES.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStatesAreDocumentedAsTheTableHasThem(t *testing.T) {
	t.Parallel()
	got := states(reconcile.Arrows())
	if *update {
		if err := os.WriteFile("STATES.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("STATES.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("STATES.md is out of date; run go test ./controller/reconcile -update (-file +table):\n%s", diff)
	}
}

// everywhere are the triggers that every live phase knows; they would hide the
// way of a job in a diagram.
func everywhere() []reconcile.Trigger {
	return []reconcile.Trigger{
		reconcile.JobEnded, reconcile.OurFailure, reconcile.OwnerChanged,
	}
}

func states(arrows []reconcile.Arrow) string {
	var b strings.Builder
	b.WriteString("# The phases of a job\n\nGenerated from the table in phase.go by its test; do not edit.\n\n")
	b.WriteString("Leaving aside what can happen in any phase, the way of a job is this:\n\n```mermaid\nstateDiagram-v2\n")
	b.WriteString("    [*] --> " + name(reconcile.Seen) + "\n")
	way := slices.DeleteFunc(slices.Clone(arrows), func(a reconcile.Arrow) bool { return slices.Contains(everywhere(), a.By) })
	for _, a := range way {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", name(a.From), name(a.To), a.By)
	}
	b.WriteString("```\n\n## Every arrow of the way\n\n| from | to | because |\n|---|---|---|\n")
	for _, a := range way {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.From, a.To, a.By)
	}
	b.WriteString("\n## What can happen in any phase\n\n| because | from | to |\n|---|---|---|\n")
	for _, by := range everywhere() {
		var froms, tos []string
		for _, a := range arrows {
			if a.By == by {
				froms, tos = append(froms, string(a.From)), append(tos, string(a.To))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", by, list(froms), list(tos))
	}
	return b.String()
}

// name is what a mermaid diagram accepts.
func name(p reconcile.Phase) string { return strings.ReplaceAll(string(p), "-", "_") }

func list(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

func TestTheTableIsSound(t *testing.T) {
	t.Parallel()
	arrows := reconcile.Arrows()
	sorted := slices.SortedFunc(slices.Values(arrows), func(a, b reconcile.Arrow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.By, b.By))
	})
	if n := len(slices.Compact(sorted)); n != len(arrows) {
		t.Errorf("%d arrows, %d different ones", len(arrows), n)
	}
	reached := map[reconcile.Phase]bool{reconcile.Seen: true}
	for range arrows {
		for _, a := range arrows {
			if reached[a.From] {
				reached[a.To] = true
			}
		}
	}
	over := func(from, to reconcile.Phase, by reconcile.Trigger) bool {
		return slices.Contains(arrows, reconcile.Arrow{From: from, To: to, By: by})
	}
	for _, p := range reconcile.Phases() {
		if !reached[p] {
			t.Errorf("no way leads to %s", p)
		}
		if p.Over() {
			continue
		}
		if !over(p, reconcile.Ended, reconcile.JobEnded) {
			t.Errorf("a job cannot end while it is %s", p)
		}
		if p != reconcile.Seen && !over(p, reconcile.Seen, reconcile.OwnerChanged) {
			t.Errorf("an owner cannot change a job that is %s", p)
		}
	}
	for _, a := range arrows {
		if a.From.Over() {
			t.Errorf("%s is final, and %q leads from it to %s", a.From, a.By, a.To)
		}
		if a.To == reconcile.Changing && a.From == reconcile.Changing {
			t.Errorf("%q leads from one intent under way, %s, to another, %s", a.By, a.From, a.To)
		}
	}
}
