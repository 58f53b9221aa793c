package benchmind

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/fixtures"
	"pitchpipe/test/measure"
)

var update = flag.Bool("update", false, "rewrite the expected report")

// kind is the evaluation that a section asks for.
func kind(s section) string { return s.asks[0] }

// fixed are the results of all evaluations on the objects in testdata.
func fixed(t *testing.T, folder string) Report {
	t.Helper()
	r := Report{Machine: measure.Machine{CPU: "a processor", Cores: 2, GoVersion: "go", Load: "0", LoadAfter: "1"}, Data: "d"}
	for i, s := range sections("/own") {
		file, err := os.Open(filepath.Join("testdata", kind(s)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		x := result{section: s, took: time.Duration(i) * time.Second}
		x.object, x.err = decode(file)
		if err := errors.Join(x.err, file.Close()); err != nil {
			t.Fatal(err)
		}
		if err := (Options{Out: folder}).plot(&x); err != nil {
			t.Fatal(err)
		}
		r.results = append(r.results, x)
	}
	for i := range r.results {
		if r.results[i].name == "hyper" {
			r.results[i].err = errors.New("exit status 2: no seconds")
		}
	}
	return r
}

func TestTheReportOfASmallFixedSet(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := fixed(t, folder)
	var out strings.Builder
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	fixtures.Golden(t, *update, "testdata/report.md", out.String())
	if failed := r.Failed(); len(failed) != 1 || failed[0] != "hyper: exit status 2: no seconds" {
		t.Errorf("failed %q", failed)
	}
	for _, name := range []string{"tuner-blend", "tuner-energy", "tuner-cores", "classifier", "forecast", "search-zeus", "verify"} {
		isSVG(t, filepath.Join(folder, name+".svg"))
		if !strings.Contains(out.String(), "]("+name+".svg)") {
			t.Errorf("the report does not show %s", name)
		}
	}
}

// isSVG wants well-formed XML whose root is svg, with something drawn.
func isSVG(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path) //nolint:gosec // a test names it
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }() // it was only read
	d := xml.NewDecoder(file)
	root, paths := "", 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		if e, ok := token.(xml.StartElement); ok {
			if root == "" {
				root = e.Name.Local
			}
			if e.Name.Local == "path" {
				paths++
			}
		}
	}
	if root != "svg" || paths < 5 {
		t.Errorf("%s: root %q with %d paths", path, root, paths)
	}
}

func TestWhetherAnAimIsMet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got, want aim
	}{
		"at the limit":            {atMost("a", 0.5, true, 0.5), aim{"a", "at most 0.5", "0.5", true, ""}},
		"above it":                {atMost("a", 0.75, true, 0.5), aim{"a", "at most 0.5", "0.75", false, "0.25"}},
		"below what is wanted":    {atLeast("a", 0.9, true, 0.95), aim{"a", "at least 0.95", "0.9", false, "0.05"}},
		"not measured":            {atLeast("a", 0, false, 0), aim{"a", "at least 0", "-", false, ""}},
		"all but one":             {counted("a", []fields{{"v": 1.0}, {"v": 2.0}, {}}, 1, has), aim{"a", "2 of 3", "2 of 3", true, ""}},
		"one too few":             {counted("a", []fields{{"v": 1.0}, {}, {}}, 1, has), aim{"a", "2 of 3", "1 of 3", false, "1"}},
		"nothing is never enough": {counted("a", nil, 1, has), aim{"a", "1 of 0", "0 of 0", false, "1"}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}

func has(f fields) bool {
	_, ok := f.number("v")
	return ok
}

// program writes one that prints the objects of testdata, and fails for one of them.
func program(t *testing.T) string {
	t.Helper()
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pitchpipe")
	text := "#!/bin/sh\necho 1 of 1 >&2\nif [ \"$2\" = hyper ]; then echo \"invalid curves\" >&2; exit 2; fi\ncat '" + data + "'/\"$2\".json\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

func TestOneEvaluationThatFailsDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	data, out := t.TempDir(), filepath.Join(t.TempDir(), "mind")
	for _, s := range sections("") {
		for _, f := range s.files {
			for _, p := range f.paths {
				path := filepath.Join(data, p)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.Remove(filepath.Join(data, "adaptdl", "trials.csv")); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	r, err := Run(t.Context(), Options{Program: program(t), Data: data, Out: out, Trace: &said})
	if err != nil {
		t.Fatal(err)
	}
	failed := strings.Join(r.Failed(), "\n")
	if len(r.Failed()) != 2 || !strings.Contains(failed, "hyper: exit status 2: invalid curves") || !strings.Contains(failed, "speed-adaptdl: no recorded runs") {
		t.Errorf("failed %q", failed)
	}
	if lines := strings.Count(said.String(), "\n"); lines != len(sections("")) || !strings.Contains(said.String(), "aims met") {
		t.Errorf("%d lines:\n%s", lines, said.String())
	}
	for _, file := range []string{"report.md", "verify.json", "verify.svg", "tuner-blend.json"} {
		if st, err := os.Stat(filepath.Join(out, file)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestOnlyTheNamedOnesAreRun(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var said strings.Builder
	_, err := Run(t.Context(), Options{Program: "none", Data: data, Out: t.TempDir(), Only: []string{"speed-synergy"}, Trace: &said})
	if err != nil || strings.Count(said.String(), "\n") != 1 || !strings.HasPrefix(said.String(), "speed-synergy") {
		t.Errorf("%v: %q", err, said.String())
	}
	if _, err := Run(t.Context(), Options{Data: data, Out: t.TempDir(), Only: []string{"spead"}, Trace: io.Discard}); err == nil {
		t.Error("an evaluation that there is not was run")
	}
}

func TestWithoutDataItSaysWhatNamesThem(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Options{Data: filepath.Join(t.TempDir(), "none"), Out: t.TempDir(), Trace: io.Discard})
	if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "PITCHPIPE_DATA") {
		t.Errorf("%v", err)
	}
}

func TestABenchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Data: t.TempDir(), Out: t.TempDir(), Trace: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoEvaluationIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[]", "{}", `{"command":"evaluate tuner"}`} {
		if _, err := decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken for an evaluation", text)
		}
	}
}
