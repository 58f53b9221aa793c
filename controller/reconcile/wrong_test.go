package reconcile_test

import (
	"fmt"
	"reflect"
	"slices"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// wrong lists what must never be, about one job at its end.
func (w *world) wrong(id driver.JobID) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	job, err := w.cluster.Get(w.ctx, id)
	if err != nil {
		return []string{err.Error()}
	}
	if !job.State.Ended() {
		add("job %s was left %s", id, job.State)
	}
	rec, err := w.records.Load(w.ctx, id)
	if err != nil {
		return append(out, err.Error())
	}
	// A job that saves for an intent which is void by then goes on by itself, as
	// what it was before.
	goesOn := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool {
		return e.Trigger == reconcile.IntentVoid || e.Trigger == reconcile.OwnerChanged
	})
	intents := map[string]int{}
	for i, a := range job.Attempts {
		if a.Cause != driver.CauseIntent {
			continue
		}
		if before := intents[a.Intent]; before != 0 && (!goesOn || before != i || !reflect.DeepEqual(job.Attempts[i-1].Change, a.Change)) {
			add("intent %s made attempts %d and %d", a.Intent, before, a.Number)
		}
		intents[a.Intent] = a.Number
	}
	endings := 0
	for i, e := range rec.History {
		if e.Trigger == "" {
			continue
		}
		if !slices.Contains(reconcile.Arrows(), reconcile.Arrow{From: e.From, To: e.To, By: e.Trigger}) {
			add("history[%d]: %s to %s by %q is not in the table", i, e.From, e.To, e.Trigger)
		}
		if e.To.Over() {
			endings++
		}
	}
	if endings != 1 || !rec.Phase.Over() {
		add("the story has %d endings and is %s", endings, rec.Phase)
	}
	if rec.Move != nil {
		add("intent %s is still open", rec.Move.Driver.ID)
	}
	ownerCame := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Trigger == reconcile.OwnerChanged })
	for number := range intents {
		if !ownerCame && !slices.ContainsFunc(rec.Runs, func(r reconcile.Run) bool { return r.Intent == number && r.Action != tuning.Hold }) {
			add("the record does not know that attempt %d was its own", intents[number])
		}
	}
	return append(out, w.disorder()...)
}

// disorder lists effects that came before they were durable and in the audit.
func (w *world) disorder() []string {
	var out []string
	audited, saved := map[string]bool{}, map[string]bool{}
	for _, line := range w.trace {
		var verb, id, state string
		if _, err := fmt.Sscanf(line, "gated advance %s %s", &id, &state); err == nil {
			verb = "advance"
		} else if _, err := fmt.Sscanf(line, "%s %s", &verb, &id); err != nil {
			out = append(out, "trace: "+line)
		}
		switch verb {
		case "audit":
			audited[id] = true
		case "save":
			if !audited[id] {
				out = append(out, "saved before it was audited: "+id)
			}
			saved[id] = true
		case "advance":
			if !saved[id] || !audited[id] {
				out = append(out, "advanced before it was saved and audited: "+id)
			}
		}
	}
	return out
}
