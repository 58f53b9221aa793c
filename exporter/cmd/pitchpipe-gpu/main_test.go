package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/exporter/collector/gpu/card"
)

func TestTheExporterReadsItsLines(t *testing.T) {
	t.Parallel()
	var out, diagnostics bytes.Buffer
	if err := run(t.Context(), []string{"--library", fake(t, "MIG"), "--once"}, &out, &diagnostics); err != nil {
		t.Fatal(err)
	}
	line, rest, _ := strings.Cut(out.String(), "\n")
	r, err := card.Decode([]byte(line))
	if err != nil || rest != "" || len(r.Devices) != 2 || len(r.Devices[0].Instances) != 2 || diagnostics.Len() > 0 {
		t.Errorf("%v: %q, %q", err, out.String(), diagnostics.String())
	}
}

func TestAnErrorHasAReasonAndNoOutput(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"--library", filepath.Join(t.TempDir(), "none")}, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, errAbsent) {
		t.Errorf("without the library: %v", err)
	}
	for _, args := range [][]string{{"--interval", "1ms"}, {"more"}, {"--no-such-flag"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, &bytes.Buffer{}); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, wrote %q", args, err, out.String())
		}
	}
}
