package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/record"
	"pitchpipe/test/workloads/epochs"
)

func TestTheFactorialIsAPlanOfKindsThatThereAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "factorial.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := record.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, k := range kinds() {
		named = append(named, k.Name)
	}
	for _, w := range p.Workloads {
		if len(w.Command) < 2 || w.Command[1] != w.Name || !slices.Contains(named, w.Name) || w.Env[epochs.EnvThreads] == "" {
			t.Errorf("%s: runs %q with %v", w.Name, w.Command, w.Env)
		}
		for _, input := range w.Inputs {
			var said bytes.Buffer
			if _, err := epochs.Parse(w.Name, strings.Fields(input), func(string) string { return "" }, &said); err != nil {
				t.Errorf("%s: input %q: %v", w.Name, input, err)
			}
		}
	}
	if settings := len(p.Cells()) / (len(p.Workloads) * len(p.Workloads[0].Inputs) * p.Repeats); settings != 4 {
		t.Errorf("%d settings of each input", settings)
	}
}
