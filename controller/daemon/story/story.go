package story

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Tell returns the story of a job in the order in which it happened.
func Tell(r *reconcile.Record) api.Story {
	asked := cmp.Or(r.Own.String(), "no setting that the tuner knows")
	opening := api.Line{At: r.Submitted, Text: fmt.Sprintf("%s submitted %q, asking for %s.", r.Owner, r.Name, asked)}
	s := api.Story{Job: string(r.Job), Lines: []api.Line{opening}}
	for _, e := range r.History {
		if line, ok := tell(r, e); ok {
			s.Lines = append(s.Lines, line)
		}
	}
	summarise(&s, r)
	return s
}

// Sentence is one entry as a sentence; not ok where nothing is worth saying.
func Sentence(r *reconcile.Record, e reconcile.Entry) (string, bool) {
	if d := e.Decision; d != nil { // what follows it is not asked for
		e.Decision = &tuning.Decision{Action: d.Action, Reason: d.Reason, Settings: d.Settings, Advice: d.Advice}
	}
	line, ok := tell(r, e)
	return line.Text, ok
}

func tell(r *reconcile.Record, e reconcile.Entry) (api.Line, bool) {
	line := api.Line{At: e.At}
	switch {
	case e.Decision != nil:
		line.Text, line.Why, line.Decision = decided(e), behind(e.Decision), e.Decision
	case e.To == reconcile.Ended:
		line.Text = ending(r)
		if e.Detail != "" {
			line.Why = []string{e.Detail}
		}
		if broke(r) {
			line.Why = append(line.Why, Because(r))
		}
	case e.Outcome != nil:
		line.Text, line.Why = outcome(*e.Outcome)
	case e.Class != nil && e.To == "":
		line.Text, line.Why = classified(*e.Class)
	case e.Trigger == reconcile.StanzaRead && e.Detail != "":
		line.Text = e.Detail + "."
	case e.Trigger == reconcile.IntentDone:
		line.Text = fmt.Sprintf("Attempt %d was submitted with %s.", e.Attempt, settingsText(r.Settings(e.Attempt)))
	case e.Trigger == reconcile.NoStanza, e.Trigger == reconcile.IntentVoid, e.Trigger == reconcile.OwnerChanged,
		e.Trigger == reconcile.OurFailure, e.To == "" && e.Reason != tuning.ReasonNone:
		line.Text = sentence(e.Reason.Sentence(), e.Detail)
	default:
		return line, false
	}
	return line, true
}

func decided(e reconcile.Entry) string {
	d := e.Decision
	form := "It moves to %s: %s."
	switch {
	case d.Action == tuning.Hold && len(d.Advice) > 0:
		return fmt.Sprintf("It is left as it is: %s. Better for it would be %s.", d.Reason.Sentence(), settingsText(d.Advice))
	case d.Action == tuning.Hold:
		return "It is left as it is: " + d.Reason.Sentence() + "."
	case d.Action == tuning.Probe && d.Reason == tuning.ReasonDoubted: // its sentence says already what is tried
		form = "It runs under its owner's %s for a while: %s."
	case d.Action == tuning.Probe:
		form = "Its next epochs try %s: %s."
	case d.Action == tuning.Adapt:
		form = "It is asked to bring its actions to %s: %s."
	case d.Action == tuning.Move && e.Trigger == reconcile.KnownKind:
		form = "Before it started it was given %s: %s."
	case d.Action == tuning.RollBack:
		form = "It returns to its owner's %s: %s."
	}
	return fmt.Sprintf(form, settingsText(d.Settings), d.Reason.Sentence())
}

func ends() map[driver.State]string {
	return map[driver.State]string{
		driver.Succeeded: "It finished its work", driver.Cancelled: "It was cancelled", driver.Lost: "Its scheduler lost it",
		driver.MemoryExceeded: "It ran out of its owner's own memory limit", driver.TimeExceeded: "It reached its time limit",
		driver.NotStarted: "It could not be started",
	}
}

func ending(r *reconcile.Record) string {
	text := cmp.Or(ends()[r.State], "It failed")
	switch {
	case r.Ended.IsZero():
	case r.Started.IsZero() && r.Done() == 0: // time in the queue is not run time
		text += fmt.Sprintf(" after %s in the queue", report.Duration(r.Ended.Sub(r.Submitted).Seconds()))
	default:
		text += fmt.Sprintf(" after %s and %s", report.Duration(r.Ended.Sub(cmp.Or(r.Started, r.Submitted)).Seconds()), number(float64(r.Done()), "epoch"))
	}
	if joules, source := r.Joules(); joules != nil {
		text += fmt.Sprintf(", with %s (%s)", report.Joules(float64(*joules)), source)
		if !slices.ContainsFunc(r.Runs, func(run reconcile.Run) bool { return run.Joules != nil }) {
			text += " in its epochs"
		}
	} else if r.Done() > 0 {
		text += "; its energy was not measured throughout"
	}
	return text + fmt.Sprintf(". It was %s and %s.%s", times("moved", len(r.Restarts)), times("probed", len(r.Probed)), net(r))
}

// net is what tuning did to the time, the cost and the joules of a job in all, over the epochs that it did.
func net(r *reconcile.Record) string {
	t, n := r.Toll, float64(r.Done())
	if t == nil {
		return ""
	}
	var parts []string
	say := func(x float64, format string, args ...any) {
		verb := map[bool]string{true: "saved ", false: "added "}[x < 0]
		parts = append(parts, verb+fmt.Sprintf(format, args...))
	}
	switch share := 100 * math.Abs(t.Seconds) / (t.Own * n); {
	case n == 0:
		say(t.Seconds, "%s", report.Duration(math.Abs(t.Seconds)))
	case share < .05: // it would read 0.0 %
		parts = append(parts, "changed the time by less than 0.1 %")
	default:
		say(t.Seconds, "%s (%.1f %% of the untuned time)", report.Duration(math.Abs(t.Seconds)), share)
	}
	if m := r.Policy.Measure(); n > 0 && (m.Priced() || m.Objective == tuning.EDP || m.Objective == tuning.Blend) {
		say(t.Epochs, "%.1f %% of its untuned %s", 100*math.Abs(t.Epochs)/n, strings.TrimSuffix(measureText(m.Objective), " per epoch"))
	}
	if t.Joules != nil {
		joules := float64(*t.Joules)
		say(joules, "%s (%s)", report.Joules(math.Abs(joules)), t.Source)
	}
	last := len(parts) - 1
	text := parts[last]
	if last > 0 {
		text = strings.Join(parts[:last], ", ") + " and " + text
	}
	if t.Kind {
		text += ", judged by other runs of its kind"
	}
	return " Overall, tuning " + text + "."
}

func times(what string, n int) string {
	if n < 3 {
		return []string{"never " + what, what + " once", what + " twice"}[n]
	}
	return fmt.Sprintf("%s %d times", what, n)
}

func classified(c tuning.Class) (string, []string) {
	var why []string
	if c.NearestID != "" {
		why = append(why, fmt.Sprintf("it is %.2f away from class %s, whose radius is %.2f", c.Distance, c.NearestID, c.Radius))
	}
	for _, n := range c.Neighbours {
		if n.ID != c.NearestID {
			why = append(why, fmt.Sprintf("the next is class %s: %.2f away, with a radius of %.2f", n.ID, n.Distance, n.Radius))
		}
	}
	if c.Known() {
		return fmt.Sprintf("Its profile belongs to class %s: %s.", c.ID, c.Reason.Sentence()), why
	}
	return fmt.Sprintf("Its class is unknown: %s.", c.Reason.Sentence()), why
}

func outcome(o tuning.Outcome) (string, []string) {
	text := fmt.Sprintf("Compared with its owner's settings: %s.", o.Reason.Sentence())
	over := number(float64(o.Pairs), "pair of epochs")
	switch {
	case o.Runs > 0:
		text = fmt.Sprintf("Compared with runs of its kind under its owner's settings: %s.", o.Reason.Sentence())
		over = number(float64(o.Runs), "run") + " of its kind under " + settingsText(o.Tuned)
	case o.Pairs == 0:
		return text, nil // without a number
	}
	why := measureText(o.Measure) + " changed by " + changed(o) + " over " + over
	if o.Source != "" {
		why += ", joules by " + o.Source
	}
	if o.NoEnergy {
		why += ", energy left out"
	}
	return text, []string{why}
}

func changed(o tuning.Outcome) string {
	low, high := report.Bound(o.Low, anyAmount), report.Bound(o.High, anyAmount)
	return fmt.Sprintf("%s (%g %% interval %s to %s)", report.Percent(o.LogRatio), o.Level*100, low, high)
}

func measureText(o tuning.Objective) string {
	return cmp.Or(map[tuning.Objective]string{
		tuning.Energy: "joules per epoch", tuning.Time: "seconds per epoch", tuning.EDP: "joules times seconds per epoch",
		tuning.Blend: "blend of joules and seconds per epoch", tuning.Cost: "cost per epoch",
		tuning.SearchTime: "share of its search's time per epoch",
	}[o], string(o))
}

func sentence(text, detail string) string {
	if text == "" {
		return "Something changed."
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if detail != "" {
		text += " (" + detail + ")"
	}
	return text + "."
}

func settingsText(s tuning.Settings) string {
	return cmp.Or(s.String(), "the settings of its job file")
}
