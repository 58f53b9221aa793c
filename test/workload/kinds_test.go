package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/record"
)

// A run of total epochs, and how small each is: the race detector makes every one ten times
// as dear, and what is proved does not depend on how much is computed.
const (
	total = 4
	scale = 0.001
)

func small(t *testing.T, input, threads int) params {
	t.Helper()
	return params{input: input, seed: 5, scale: scale, epochs: total, batch: 8, team: newTeam(threads), dir: t.TempDir()}
}

// played makes the work, loads state where there is any, does epochs from to to and
// returns what each reached and the state then.
func played(t *testing.T, k kind, p params, state []byte, from, to int) ([]result, []byte) {
	t.Helper()
	w, err := k.start(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closed(w) }()
	if state != nil {
		if err := restore(w, state); err != nil {
			t.Fatal(err)
		}
	}
	var results []result
	for n := from; n <= to; n++ {
		r, err := w.epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	got, err := stateOf(w)
	if err != nil {
		t.Fatal(err)
	}
	return results, got
}

func TestAResumedRunIsBitForBitAnUninterruptedOne(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			want, wantState := played(t, k, small(t, 1, 1), nil, 1, total)
			first, saved := played(t, k, small(t, 1, 1), nil, 1, total/2)
			second, state := played(t, k, small(t, 1, 1), saved, total/2+1, total)
			if got := slices.Concat(first, second); !slices.Equal(got, want) || !bytes.Equal(state, wantState) {
				t.Errorf("reached %v, want %v; states equal: %t", got, want, bytes.Equal(state, wantState))
			}
		})
	}
}

func TestThreadsDoNotChangeTheResult(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			want, wantState := played(t, k, small(t, 2, 1), nil, 1, 3)
			for _, threads := range []int{2, 5} {
				got, state := played(t, k, small(t, 2, threads), nil, 1, 3)
				if !slices.Equal(got, want) || !bytes.Equal(state, wantState) {
					t.Errorf("%d threads: reached %v, want %v; states equal: %t", threads, got, want, bytes.Equal(state, wantState))
				}
			}
		})
	}
}

func TestInputsAndSeedsAreOtherData(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if k.name == "tick" {
			continue // has no data
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			_, one := played(t, k, small(t, 1, 1), nil, 1, 1)
			_, two := played(t, k, small(t, 2, 1), nil, 1, 1)
			seeded := small(t, 1, 1)
			seeded.seed++
			_, three := played(t, k, seeded, nil, 1, 1)
			if bytes.Equal(one, two) || bytes.Equal(one, three) {
				t.Errorf("the same state with another input (%t) or seed (%t)", bytes.Equal(one, two), bytes.Equal(one, three))
			}
		})
	}
}

func TestACutStateIsAnError(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		_, state := played(t, k, small(t, 1, 1), nil, 1, 1)
		w, err := k.start(small(t, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := restore(w, state[:len(state)-1]); err == nil {
			t.Errorf("%s: no error", k.name)
		}
		_ = closed(w)
	}
}

func TestTheFactorialIsAPlanOfKindsThatThereAre(t *testing.T) {
	t.Parallel()
	path := "factorial.yaml"
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
		named = append(named, k.name)
	}
	for _, w := range p.Workloads {
		if len(w.Command) < 2 || w.Command[1] != w.Name || !slices.Contains(named, w.Name) || w.Env[envThreads] == "" {
			t.Errorf("%s: runs %q with %v", w.Name, w.Command, w.Env)
		}
		for _, input := range w.Inputs {
			var said bytes.Buffer
			if _, err := parse(w.Name, strings.Fields(input), func(string) string { return "" }, &said); err != nil {
				t.Errorf("%s: input %q: %v", w.Name, input, err)
			}
		}
	}
	if settings := len(p.Cells()) / (len(p.Workloads) * len(p.Workloads[0].Inputs) * p.Repeats); settings != 4 {
		t.Errorf("%d settings of each input", settings)
	}
}
