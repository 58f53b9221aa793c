package main

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

// A run of total epochs, and how small each is: the race detector makes every one ten times
// as dear, and what is proved does not depend on how much is computed.
const (
	total = 4
	scale = 0.001
)

func small(t *testing.T, input, threads int) epochs.Params {
	return epochs.Params{Input: input, Seed: 5, Scale: scale, Epochs: total, Batch: 8, Team: team.New(threads), Dir: t.TempDir()}
}

// play makes the work, loads state where there is any, does epochs from to to and
// returns what each reached and the state then.
func play(t *testing.T, k epochs.Kind, p epochs.Params, state []byte, from, to int) ([]epochs.Result, []byte) {
	t.Helper()
	w, err := k.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := w.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	if state != nil {
		if err := w.Load(bytes.NewReader(state)); err != nil {
			t.Fatal(err)
		}
	}
	var results []epochs.Result
	for n := from; n <= to; n++ {
		r, err := w.Epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	var b bytes.Buffer
	if err := w.Save(&b); err != nil {
		t.Fatal(err)
	}
	return results, b.Bytes()
}

func TestAResumedRunIsBitForBitAnUninterruptedOne(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			want, wantState := play(t, k, small(t, 1, 1), nil, 1, total)
			first, saved := play(t, k, small(t, 1, 1), nil, 1, total/2)
			second, state := play(t, k, small(t, 1, 1), saved, total/2+1, total)
			if got := slices.Concat(first, second); !slices.Equal(got, want) || !bytes.Equal(state, wantState) {
				t.Errorf("reached %v, want %v; states equal: %t", got, want, bytes.Equal(state, wantState))
			}
		})
	}
}

func TestThreadsDoNotChangeTheResult(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			want, wantState := play(t, k, small(t, 2, 1), nil, 1, 3)
			for _, threads := range []int{2, 5} {
				got, state := play(t, k, small(t, 2, threads), nil, 1, 3)
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
		if k.Name == "tick" {
			continue // has no data
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			_, one := play(t, k, small(t, 1, 1), nil, 1, 1)
			_, two := play(t, k, small(t, 2, 1), nil, 1, 1)
			seeded := small(t, 1, 1)
			seeded.Seed++
			_, three := play(t, k, seeded, nil, 1, 1)
			if bytes.Equal(one, two) || bytes.Equal(one, three) {
				t.Errorf("the same state with another input (%t) or seed (%t)", bytes.Equal(one, two), bytes.Equal(one, three))
			}
		})
	}
}

func TestACutStateIsAnError(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		_, state := play(t, k, small(t, 1, 1), nil, 1, 1)
		w, err := k.New(small(t, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Load(bytes.NewReader(state[:len(state)-1])); err == nil {
			t.Errorf("%s: no error", k.Name)
		}
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	}
}
