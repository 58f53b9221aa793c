package trials

import (
	"testing"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

func TestASearchGetsTheCoresThatItsTrialsHeldWhileOneWaited(t *testing.T) {
	t.Parallel()
	type look struct {
		at          time.Duration
		held, waits float64
	}
	const s, m = time.Second, time.Minute
	for _, tt := range []struct {
		name  string
		looks []look
		want  float64
	}{
		{"no trial waits", []look{{0, 4, 0}, {m, 8, 0}, {2 * m, 8, 0}}, 0},
		{"one waits as long as its start takes", []look{{0, 4, 4}, {4 * s, 4, 4}, {4500 * time.Millisecond, 8, 0}, {m, 8, 4}}, 0},
		{"one waits", []look{{0, 8, 0}, {s, 8, 4}, {12 * s, 8, 4}}, 8},
		{"one waits, and none runs", []look{{0, 0, 4}, {m, 0, 4}}, 0},
		{"those that give up cores let others begin", []look{{0, 8, 4}, {m, 8, 4}, {2 * m, 2, 4}, {3 * m, 8, 0}, {4 * m, 4, 0}}, 8},
		{"one that moves is seen twice at one look", []look{{0, 2, 2}, {m, 2, 2}, {61 * s, 4, 2}, {2 * m, 2, 2}}, 2},
		{"others give up theirs, and that does not help", []look{{0, 8, 4}, {m, 8, 4}, {2 * m, 4, 4}, {7 * m, 4, 4}}, -1},
		{"others give up theirs, and after some minutes that helps", []look{{0, 8, 4}, {m, 8, 4}, {2 * m, 4, 4}, {6 * m, 8, 0}, {7 * m, 4, 4}, {11 * m, 4, 4}}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c crowd
			room := 0.0
			for _, l := range tt.looks {
				room = c.see(time.Unix(0, 0).Add(l.at), room, l.held, l.waits)
			}
			if room != tt.want {
				t.Errorf("room for %g cores, want %g", room, tt.want)
			}
		})
	}
}

func TestTrialsShareCoresWithThoseThatRunBesideThem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*search)
		want   tuning.Share
	}{
		{"others are to come", func(*search) {}, tuning.Share{Cores: 16, Trials: 4, Serial: .2, Late: .2, Next: 4}},
		{"these are the last", func(x *search) { x.brain.Search.Trials = 2 }, tuning.Share{Cores: 16, Trials: 2, Serial: .65, Late: 1}},
		{"one more is to come", func(x *search) { x.brain.Search.Trials = 3 }, tuning.Share{Cores: 16, Trials: 3, Serial: .4, Late: .5, Next: 1}},
		{"the search closes", func(x *search) { x.brain.Closing = "stopped" }, tuning.Share{Cores: 16, Trials: 2, Serial: 1, Late: 1}},
		{"none waits for cores", func(x *search) { x.Room = 0 }, tuning.Share{Next: 4}},
		{"they wait for something else", func(x *search) { x.Room = -1 }, tuning.Share{Next: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := searcher.Plan{Search: tuning.Search{Method: tuning.Random, Trials: 6, Parallel: 4, Epochs: 10, Eta: 3}}
			x := &search{brain: searcher.New(plan, searcher.Snapshot{Trials: []searcher.Trial{
				{Number: 1, State: searcher.Running, Busy: true, Reports: []searcher.Report{{Epoch: 4}}}, {Number: 2, State: searcher.Running, Busy: true},
			}})}
			x.Room, x.crowd.runs = 16, map[int]bool{1: true}
			if tt.change(x); x.share(time.Unix(0, 0)) != tt.want {
				t.Errorf("share is %+v, want %+v", x.share(time.Unix(0, 0)), tt.want)
			}
		})
	}
}
