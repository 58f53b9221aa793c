package command

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/driver/slurm/check"
	"pitchpipe/test/fixtures"
)

// TestACheckIsPrintedAsItWasJudged prints the reports that package check has among its goldens.
func TestACheckIsPrintedAsItWasJudged(t *testing.T) {
	t.Parallel()
	reports, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "driver", "slurm", "check", "testdata", "*.json"))
	if err != nil || len(reports) < 5 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, path := range reports {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var r check.Report
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			update := flag.Lookup("update").Value.String() == "true"
			fixtures.Golden(t, update, filepath.Join("testdata", "slurm", name+".golden"), checkText(r))
		})
	}
}

func TestWhatAClusterSaysDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		for _, f := range []check.Finding{
			{Verdict: check.OK, Looked: text, Where: text},
			{Verdict: check.Wrong, Why: text, Change: []string{text}, Then: text},
		} {
			out := checkText(check.Report{Cluster: text, Version: text, Caller: text, Findings: []check.Finding{f}})
			if strings.ContainsFunc(out, func(c rune) bool { return c < ' ' && c != '\n' }) || strings.Count(out, "\n") > 13 {
				rt.Fatalf("a control character in %q", out)
			}
		}
	})
}
