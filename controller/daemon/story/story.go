package story

import (
	"fmt"
	"math"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
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
	return s
}

// Sentence is one entry as a sentence; not ok where nothing is worth saying.
func Sentence(r *reconcile.Record, e reconcile.Entry) (string, bool) {
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
		line.Why = evidence(e.Decision.Evidence)
	case e.Decision != nil:
		line.Text = held(e.Decision)
		line.Why = evidence(e.Decision.Evidence)
	case e.To == reconcile.Ended || e.To == reconcile.Cancelled:
		line.Text = ending(r)
	case e.Outcome != nil:
		line.Text, line.Why = outcome(*e.Outcome)
	case e.Class != nil && e.To == "":
		line.Text, line.Why = classified(*e.Class)
	case e.Trigger == reconcile.IntentDone:
		line.Text = fmt.Sprintf("Attempt %d was started with %s.", e.Attempt, settingsText(r.Settings(e.Attempt)))
	case e.Trigger == reconcile.NoStanza, e.Trigger == reconcile.IntentVoid, e.Trigger == reconcile.OwnerCame,
		e.Trigger == reconcile.Unreachable, e.Trigger == reconcile.OurFault, e.To == "" && e.Reason != tuning.ReasonNone:
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
		return fmt.Sprintf("Its next epochs try %s: %s.", target, d.Reason.Sentence())
	case tuning.Move:
		if e.To == reconcile.Recalled {
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
	if !r.Ended.IsZero() {
		fmt.Fprintf(&b, " after %.1f s and %d epochs", r.Ended.Sub(r.Submitted).Seconds(), r.Done())
	}
	switch joules, source := r.Joules(); {
	case joules != nil:
		fmt.Fprintf(&b, ", with %.0f J (%s) in its epochs", float64(*joules), source)
	case r.Done() > 0:
		b.WriteString("; its energy was not measured throughout")
	}
	fmt.Fprintf(&b, ". It was moved %s and probed %s.", times(len(r.Restarts)), times(len(r.Probed)))
	return b.String()
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func classified(c tuning.Class) (string, []string) {
	why := []string{fmt.Sprintf("distance %.2f, radius %.2f, nearest class %s", c.Distance, c.Radius, orNone(c.NearestID))}
	if c.NearestID == "" {
		why = nil
	}
	if c.Known() {
		return fmt.Sprintf("Its profile belongs to class %s: %s.", c.ID, c.Reason.Sentence()), why
	}
	return fmt.Sprintf("Its class is unknown: %s.", c.Reason.Sentence()), why
}

func outcome(o tuning.Outcome) (string, []string) {
	return fmt.Sprintf("Compared with its owner's settings: %s.", o.Reason.Sentence()), []string{
		fmt.Sprintf("%s changed by %s (%g %% interval %s to %s, %d pairs of epochs)", o.Measure,
			percent(o.LogRatio), o.Level*100, percent(o.Low), percent(o.High), o.Pairs),
	}
}

func percent(logRatio float64) string { return fmt.Sprintf("%+.1f %%", math.Expm1(logRatio)*100) }

func evidence(es []tuning.Evidence) []string {
	out := make([]string, 0, len(es))
	for _, e := range es {
		name := strings.ReplaceAll(e.Name, "_", " ")
		switch {
		case strings.Contains(e.Name, "log_ratio"):
			out = append(out, fmt.Sprintf("%s: %s", strings.Replace(name, "log ratio", "effect", 1), percent(e.Value)))
		case e.Text != "":
			out = append(out, name+": "+e.Text)
		default:
			out = append(out, fmt.Sprintf("%s: %.4g", name, e.Value))
		}
	}
	return out
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
	if len(s) == 0 {
		return "the settings of its job file"
	}
	return s.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
