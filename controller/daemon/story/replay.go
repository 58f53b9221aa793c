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
	was := decisionText(x.Action, x.Reason, x.Settings)
	switch {
	case x.Err != nil:
		return fmt.Sprintf("It was decided to %s. This cannot be decided again (%v).", was, x.Err)
	case x.Same:
		return fmt.Sprintf("It was decided to %s. The same is decided again.", was)
	case x.Alike:
		return fmt.Sprintf("It was decided to %s. The same is decided again, by other numbers.", was)
	}
	return fmt.Sprintf("It was decided to %s. Now it would be decided to %s.", was,
		decisionText(x.Again.Action, x.Again.Reason, x.Again.Settings))
}

func decisionText(a tuning.Action, r tuning.Reason, to tuning.Settings) string {
	switch a {
	case tuning.Probe:
		return fmt.Sprintf("try %s, since %s", settingsText(to), r.Sentence())
	case tuning.Move:
		return fmt.Sprintf("move to %s, since %s", settingsText(to), r.Sentence())
	case tuning.RollBack:
		return fmt.Sprintf("return to %s, since %s", settingsText(to), r.Sentence())
	case tuning.Hold:
	}
	return "leave it as it is, since " + r.Sentence()
}
