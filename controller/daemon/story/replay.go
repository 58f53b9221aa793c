package story

import (
	"fmt"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// AddReplays makes the decisions of a record again and adds the results.
func AddReplays(s *api.Story, r *reconcile.Record, decide func(tuning.State) tuning.Decision) {
	if r.Dropped != nil {
		s.Dropped = r.Dropped.Decisions
	}
	for _, x := range r.Replay(decide) {
		out := api.Replay{At: x.At, Action: x.Action, Reason: x.Reason, Settings: x.Settings, Same: x.Same, Alike: x.Alike}
		out.Text = replayed(x)
		if x.Err == nil {
			out.Again, out.State = &x.Again, &x.Of
		}
		s.Replays = append(s.Replays, out)
	}
}

func replayed(x reconcile.Replayed) string {
	text := "It was decided to " + decisionText(x.Action, x.Reason, x.Settings) + ". "
	switch {
	case x.Err != nil:
		return text + fmt.Sprintf("This cannot be decided again (%v).", x.Err)
	case x.Same:
		return text + "A replay decides the same."
	case x.Alike:
		return text + "A replay decides the same, from other numbers."
	}
	return text + "A replay now decides to " + decisionText(x.Again.Action, x.Again.Reason, x.Again.Settings) + "."
}

func decisionText(a tuning.Action, r tuning.Reason, to tuning.Settings) string {
	does := map[tuning.Action]string{tuning.Probe: "try ", tuning.Move: "move to ", tuning.RollBack: "return to ", tuning.Adapt: "bring its actions to "}
	if verb, ok := does[a]; ok {
		return verb + settingsText(to) + ", since " + r.Sentence()
	}
	return "leave it as it is, since " + r.Sentence()
}
