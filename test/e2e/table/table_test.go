package table_test

import (
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/e2e/table"
)

func TestEpochsAreLostOrDoneTwice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, output          string
		discards, lost, twice int
	}{
		{"each once", "epoch 1/3 a\nepoch 2/3 b\nepoch 3/3 c\n", 0, 0, 0},
		{"one is missing", "epoch 1/3 a\nepoch 3/3 c\n", 0, 1, 0},
		{"one stands twice", "epoch 1/3 a\nepoch 2/3 b\nepoch 2/3 b\nepoch 3/3 c\n", 0, 0, 1},
		{"one stands twice after a discard", "epoch 1/3 a\nepoch 2/3 b\nepoch 2/3 b\nepoch 3/3 c\n", 1, 0, 0},
		{"one stands thrice after a discard", "epoch 1/3 a\nepoch 2/3 b\nepoch 2/3 b\nepoch 2/3 b\nepoch 3/3 c\n", 1, 0, 1},
		{"of another total", "epoch 1/30 a\nepoch 2/3 b\nepoch 3/3 c\n", 0, 1, 0},
		{"nothing", "", 1, 3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if lost, twice := table.LostAndTwice(tt.output, 3, tt.discards); lost != tt.lost || twice != tt.twice {
				t.Errorf("%d lost and %d twice, want %d and %d", lost, twice, tt.lost, tt.twice)
			}
		})
	}
}

func TestTheTableComparesThoseThatWereChanged(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{tuning.Cores: tuning.Number(1)}
	run := func(seconds float64, current tuning.Settings) table.Run {
		return table.Run{Job: api.Job{Own: own, Current: current}, Seconds: seconds, Attempts: 1}
	}
	got := table.Print([]table.Row{
		{Mode: "m", Kind: "changed", Epochs: 3, Untuned: run(10, own), First: run(20, own), Tuned: run(5, tuning.Settings{tuning.Cores: tuning.Number(2)})},
		{Mode: "m", Kind: "kept", Epochs: 3, Untuned: run(10, own), First: run(20, own), Tuned: run(30, own)},
	})
	for _, want := range []string{"changed", "kept", "10.0 → 5.0", "1 of 2 jobs that returned were changed. Lost 0, done twice 0.", "took 0.50 of their untuned time"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table does not say %q:\n%s", want, got)
		}
	}
}

func TestAnEpochIsDoneAgainOnlyAfterADiscard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, did string
		discards  int
		want      bool
	}{
		{"each once", "1 2 3", 0, true},
		{"two again after a discard", "1 2 1 2 3", 1, true},
		{"again after each of two discards", "1 2 2 1 2 3", 2, true},
		{"again more often than was discarded", "1 2 2 2 3", 1, false},
		{"again without a discard", "1 2 2 3", 0, false},
		{"one is missing after a discard", "1 2 1 3", 1, false},
		{"one is missing", "1 3", 0, false},
		{"the last is missing", "1 2", 0, false},
		{"an epoch before the first", "0 1 2 3", 1, false},
		{"half a number", "1 2 3x", 0, false},
		{"nothing", "", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := table.InOrder(strings.Fields(tt.did), 3, tt.discards); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestTheStorySaysHowManyAttemptsWereThrownAway(t *testing.T) {
	t.Parallel()
	story := api.Story{Lines: []api.Line{{}, {Decision: &tuning.Decision{Action: tuning.Move}}, {Decision: &tuning.Decision{Action: tuning.RollBack, Discard: true}}}}
	if n := table.Discards(story); n != 1 {
		t.Errorf("%d discards, want 1", n)
	}
}
