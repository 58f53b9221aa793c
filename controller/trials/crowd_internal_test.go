package trials

import (
	"testing"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

func TestASearchGetsTheCoresThatItsTrialsHeldWhileOneWaited(t *testing.T) {
	t.Parallel()
	type look struct{ held, waits float64 }
	for _, tt := range []struct {
		name  string
		looks []look // one each minute
		want  float64
	}{
		{"no trial waits", []look{{4, 0}, {8, 0}, {8, 0}}, 0},
		{"one waits for its start at one look", []look{{4, 4}, {8, 0}, {8, 0}}, 0},
		{"one waits", []look{{8, 0}, {8, 4}, {8, 4}}, 8},
		{"one waits, and none runs", []look{{0, 4}, {0, 4}}, 0},
		{"those that give up cores let others begin", []look{{8, 4}, {8, 4}, {2, 4}, {8, 0}, {4, 0}}, 8},
		{"one that moves is seen twice at one look", []look{{2, 2}, {2, 2}, {4, 2}, {2, 2}}, 2},
		{"others give up theirs, and that does not help", []look{{8, 4}, {8, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}}, -1},
		{"others give up theirs, and after some minutes that helps", []look{{8, 4}, {8, 4}, {4, 4}, {4, 4}, {4, 4}, {8, 0}, {4, 4}, {4, 4}, {4, 4}}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c crowd
			room, now := 0.0, time.Unix(0, 0)
			for _, l := range tt.looks {
				now = now.Add(time.Minute)
				room = c.see(now, room, l.held, l.waits)
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
		{"others are to come", func(*search) {}, tuning.Share{Cores: 16, Trials: 4, Serial: .2, Next: 4}},
		{"these are the last", func(x *search) { x.brain.Search.Trials = 2 }, tuning.Share{Cores: 16, Trials: 2, Serial: .65}},
		{"one more is to come", func(x *search) { x.brain.Search.Trials = 3 }, tuning.Share{Cores: 16, Trials: 3, Serial: .4, Next: 1}},
		{"the search closes", func(x *search) { x.brain.Closing = "stopped" }, tuning.Share{Cores: 16, Trials: 2, Serial: 1}},
		{"none waits for cores", func(x *search) { x.Room = 0 }, tuning.Share{Next: 4}},
		{"they wait for something else", func(x *search) { x.Room = -1 }, tuning.Share{Next: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := searcher.Plan{Search: tuning.Search{Method: tuning.Random, Trials: 6, Parallel: 4, Epochs: 10, Eta: 3}}
			x := &search{brain: searcher.New(plan, searcher.Snapshot{Trials: []searcher.Trial{
				{Number: 1, State: searcher.Running, Busy: true, Reports: []searcher.Report{{Epoch: 4}}}, {Number: 2, State: searcher.Running, Busy: true},
			}})}
			x.Room = 16
			if tt.change(x); x.share() != tt.want {
				t.Errorf("share is %+v, want %+v", x.share(), tt.want)
			}
		})
	}
}
