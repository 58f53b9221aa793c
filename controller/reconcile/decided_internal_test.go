package reconcile

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// anyKept draws a state; what of it is drawn changes from one to the next.
func anyKept(t *rapid.T, i int) tuning.State {
	s := tuning.State{
		Now:      time.Unix(int64(1000+i), 0).UTC(),
		Policy:   tuning.DefaultPolicy(),
		Site:     tuning.DefaultSite(),
		Gate:     tuning.ReasonPaused,
		Standing: tuning.Standing{EpochsDone: i, EpochSeconds: rapid.Float64().Draw(t, "seconds")},
	}
	if rapid.Bool().Draw(t, "own") {
		s.Own = tuning.Settings{tuning.Cores: tuning.Number(float64(rapid.IntRange(1, 3).Draw(t, "cores")))}
	}
	if rapid.Bool().Draw(t, "class") {
		s.Class = &tuning.Class{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "trials") {
		s.Trials = append(s.Trials, tuning.Trial{Epochs: rapid.IntRange(0, 9).Draw(t, "epochs")})
	}
	return s
}

// echo decides what can be told from the state alone.
func echo(s tuning.State) tuning.Decision {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return tuning.Decision{Action: tuning.Hold, Reason: tuning.Reason(fmt.Sprint(s.EpochsDone)), At: s.Now, Evidence: []tuning.Evidence{{Name: "state", Text: string(raw)}}}
}

func TestEveryKeptDecisionIsMadeAgainFromItsRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &Record{}
		n := rapid.IntRange(1, 2*maxDecisions).Draw(t, "decisions")
		for i := range n {
			s := anyKept(t, i)
			if changed, err := r.addDecision(s, echo(s)); err != nil || !changed {
				t.Fatalf("decision %d was not kept: %v", i, err)
			}
			if changed, err := r.addDecision(s, echo(s)); err != nil || changed {
				t.Fatalf("a repetition was kept: %v", err)
			}
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Record
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		replays := again.Replay(echo)
		if want := min(n, maxDecisions); len(replays) != want {
			t.Fatalf("%d of %d decisions are kept, want %d", len(replays), n, want)
		}
		for i, x := range replays {
			if !x.Same || !x.Alike || x.Err != nil {
				t.Fatalf("decision %d of %d: same %v, alike %v, %v", i, n, x.Same, x.Alike, x.Err)
			}
		}
		dropped := 0
		if again.Dropped != nil {
			dropped = again.Dropped.Decisions
		}
		if dropped != n-len(replays) {
			t.Fatalf("%d dropped of %d, kept %d", dropped, n, len(replays))
		}
	})
}

func TestWhatIsKeptDoesNotGrowWithoutLimit(t *testing.T) {
	t.Parallel()
	r := &Record{}
	for i := range 100 {
		s := tuning.State{Now: time.Unix(int64(i), 0), Standing: tuning.Standing{EpochsDone: i}}
		for j := range 100 { // another hundred effects each time
			s.KindEffects = append(s.KindEffects, tuning.Effect{Runs: i*100 + j, Settings: tuning.Settings{"knob": tuning.Word(strings.Repeat("x", 50))}})
		}
		if _, err := r.addDecision(s, echo(tuning.State{Standing: tuning.Standing{EpochsDone: i}})); err != nil {
			t.Fatal(err)
		}
		if n := r.decisionBytes(); len(r.Decided) > 1 && n > maxDecisionBytes {
			t.Fatalf("%d bytes are kept after decision %d", n, i)
		}
	}
	if r.Dropped == nil || r.Dropped.Decisions+len(r.Decided) != 100 || !r.Dropped.Until.Before(r.Decided[0].At) && !r.Dropped.Until.IsZero() {
		t.Errorf("kept %d, dropped %+v", len(r.Decided), r.Dropped)
	}
}

func TestAStateThatCannotBeWrittenStopsNothing(t *testing.T) {
	t.Parallel()
	r := &Record{}
	if changed, err := r.addDecision(tuning.State{Standing: tuning.Standing{EpochSeconds: math.NaN()}}, tuning.Decision{Action: tuning.Hold}); changed || err == nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if len(r.Decided) != 0 {
		t.Errorf("kept %+v", r.Decided)
	}
}

func TestAPlannerThatThinksOtherwiseIsToldFromOneThatSaysOtherwise(t *testing.T) {
	t.Parallel()
	r := &Record{}
	s := tuning.State{Now: time.Unix(7, 0).UTC()}
	if _, err := r.addDecision(s, tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonPaused, At: s.Now}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		now         tuning.Decision
		same, alike bool
	}{
		"the very same":       {tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonPaused, At: s.Now}, true, true},
		"by other numbers":    {tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonPaused, At: s.Now, Evidence: []tuning.Evidence{{Name: "x"}}}, false, true},
		"for another reason":  {tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonOff, At: s.Now}, false, false},
		"something else":      {tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonPaused, At: s.Now}, false, false},
		"to another settings": {tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonPaused, At: s.Now, Settings: tuning.Settings{"a": tuning.Number(1)}}, false, false},
	} {
		got := r.Replay(func(of tuning.State) tuning.Decision {
			if diff := cmp.Diff(s, of); diff != "" {
				t.Errorf("%s: the state (-was +is):\n%s", name, diff)
			}
			return c.now
		})[0]
		if got.Same != c.same || got.Alike != c.alike {
			t.Errorf("%s: same %v, alike %v", name, got.Same, got.Alike)
		}
	}
}
