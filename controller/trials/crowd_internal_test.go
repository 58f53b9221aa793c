package trials

import (
	"testing"
	"time"

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
	state := func(change func(*State)) State {
		x := State{Trials: make([]Trial, 6)}
		x.Plan.Search = tuning.Search{Trials: 20, Parallel: 4}
		x.Room, x.Trials[3].Busy, x.Trials[5].Busy = 16, true, true
		change(&x)
		return x
	}
	for _, tt := range []struct {
		name   string
		change func(*State)
		want   tuning.Share
	}{
		{"others are to come", func(*State) {}, tuning.Share{Cores: 16, Trials: 4}},
		{"these are the last", func(x *State) { x.Plan.Trials = 6 }, tuning.Share{Cores: 16, Trials: 2}},
		{"one more is to come", func(x *State) { x.Plan.Trials = 7 }, tuning.Share{Cores: 16, Trials: 3}},
		{"the search closes", func(x *State) { x.Closing = "stopped" }, tuning.Share{Cores: 16, Trials: 2}},
		{"none waits for cores", func(x *State) { x.Room = 0 }, tuning.Share{}},
		{"they wait for something else", func(x *State) { x.Room = -1 }, tuning.Share{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := New(Config{})
			s.shown["x"] = state(tt.change)
			if got := s.Share("x"); got != tt.want {
				t.Errorf("share is %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := New(Config{}).Share("unknown"); got != (tuning.Share{}) {
		t.Errorf("an unknown search shares %+v", got)
	}
}
