package story

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Tell returns the story of a job in the order in which it happened.
func Tell(r *reconcile.Record) api.Story {
	s := api.Story{Job: string(r.Job)}
	s.Lines = append(s.Lines, api.Line{At: r.Submitted, Text: opening(r)})
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
	if d := e.Decision; d != nil { // what is behind it is not asked for
		e.Decision = &tuning.Decision{Action: d.Action, Reason: d.Reason, Settings: d.Settings, Advice: d.Advice}
	}
	line, ok := tell(r, e)
	return line.Text, ok
}

func opening(r *reconcile.Record) string {
	asked := r.Own.String()
	if asked == "" {
		asked = "no setting that the tuner knows"
	}
	return fmt.Sprintf("%s submitted %q, asking for %s.", r.Owner, r.Name, asked)
}

func tell(r *reconcile.Record, e reconcile.Entry) (api.Line, bool) {
	line := api.Line{At: e.At}
	switch {
	case e.Decision != nil && e.Decision.Action != tuning.Hold:
		line.Text = acted(e)
		line.Why, line.Decision = behind(e.Decision), e.Decision
	case e.Decision != nil:
		line.Text = held(e.Decision)
		line.Why, line.Decision = behind(e.Decision), e.Decision
	case e.To == reconcile.Ended:
		line.Text = ending(r)
		if e.Detail != "" {
			line.Why = []string{e.Detail}
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

func acted(e reconcile.Entry) string {
	d := e.Decision
	target := settingsText(d.Settings)
	switch d.Action {
	case tuning.Probe:
		if d.Reason == tuning.ReasonDoubted { // its sentence says already what is tried
			return fmt.Sprintf("Its owner's %s return for a while: %s.", target, d.Reason.Sentence())
		}
		return fmt.Sprintf("Its next epochs try %s: %s.", target, d.Reason.Sentence())
	case tuning.Move:
		if e.Trigger == reconcile.KnownKind {
			return fmt.Sprintf("Before it started it was given %s: %s.", target, d.Reason.Sentence())
		}
		return fmt.Sprintf("It moves to %s: %s.", target, d.Reason.Sentence())
	case tuning.RollBack:
		return fmt.Sprintf("It returns to its owner's %s: %s.", target, d.Reason.Sentence())
	case tuning.Hold:
	}
	return "It stays as it is."
}

func held(d *tuning.Decision) string {
	text := "It is left as it is: " + d.Reason.Sentence() + "."
	if len(d.Advice) > 0 {
		text += fmt.Sprintf(" Better for it would be %s.", settingsText(d.Advice))
	}
	return text
}

func ending(r *reconcile.Record) string {
	var b strings.Builder
	switch r.State {
	case driver.Succeeded:
		b.WriteString("It finished its work")
	case driver.Cancelled:
		b.WriteString("It was cancelled")
	case driver.Lost:
		b.WriteString("Its scheduler lost it")
	case driver.MemoryExceeded:
		b.WriteString("It ran out of its owner's own memory limit")
	case driver.TimeExceeded:
		b.WriteString("It reached its time limit")
	case driver.NotStarted:
		b.WriteString("It could not be started")
	case driver.Failed, driver.Pending, driver.Running, driver.Stopped:
		b.WriteString("It failed")
	}
	switch {
	case r.Ended.IsZero():
	case r.Started.IsZero() && r.Done() == 0: // the time in the queue is no run time
		fmt.Fprintf(&b, " after %s in the queue", report.Duration(r.Ended.Sub(r.Submitted).Seconds()))
	default:
		fmt.Fprintf(&b, " after %s and %s", report.Duration(r.Ended.Sub(cmp.Or(r.Started, r.Submitted)).Seconds()), number(float64(r.Done()), "epoch"))
	}
	switch joules, source := r.Joules(); {
	case joules != nil:
		fmt.Fprintf(&b, ", with %s (%s) in its epochs", report.Joules(float64(*joules)), source)
	case r.Done() > 0:
		b.WriteString("; its energy was not measured throughout")
	}
	fmt.Fprintf(&b, ". It was %s and %s.", times("moved", len(r.Restarts)), times("probed", len(r.Probed)))
	b.WriteString(net(r))
	return b.String()
}

// net is what tuning saved or cost the job in all.
func net(r *reconcile.Record) string {
	t := r.Toll
	if t == nil {
		return ""
	}
	verb, seconds := "cost", t.Seconds
	if seconds < 0 {
		verb, seconds = "saved", -seconds
	}
	text := fmt.Sprintf(" Tuning %s it %s net", verb, report.Duration(seconds))
	if n := max(r.Total, r.Done()); n > 0 {
		text += fmt.Sprintf(" (%.1f %% of what it takes untuned)", 100*seconds/(t.Own*float64(n)))
	}
	if t.Joules != nil {
		verb, joules := "and cost", float64(*t.Joules)
		if joules < 0 {
			verb, joules = "and saved", -joules
		}
		text += fmt.Sprintf(" %s %s (%s)", verb, report.Joules(joules), t.Source)
	}
	if t.Kind {
		text += ", judged by other runs of its kind"
	}
	return text + "."
}

func times(what string, n int) string {
	switch n {
	case 0:
		return "never " + what
	case 1:
		return what + " once"
	case 2:
		return what + " twice"
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
		return text, nil // there is no number
	}
	why := fmt.Sprintf("%s changed by %s (%g %% interval %s to %s) over %s", measureText(o.Measure),
		percent(o.LogRatio), o.Level*100, bound(o.Low), bound(o.High), over)
	if o.Source != "" {
		why += ", joules by " + o.Source
	}
	if o.NoEnergy {
		why += ", energy left out"
	}
	return text, []string{why}
}

// measureText is what an objective measures.
func measureText(o tuning.Objective) string {
	switch o {
	case tuning.Energy:
		return "joules per epoch"
	case tuning.Time:
		return "seconds per epoch"
	case tuning.EDP:
		return "joules times seconds per epoch"
	case tuning.Blend:
		return "blend of joules and seconds per epoch"
	case tuning.Cost:
		return "cost per epoch"
	}
	return string(o)
}

func percent(logRatio float64) string { return fmt.Sprintf("%+.1f %%", math.Expm1(logRatio)*100) }

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
	if len(s) == 0 {
		return "the settings of its job file"
	}
	return s.String()
}
