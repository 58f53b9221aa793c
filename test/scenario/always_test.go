package scenario

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/reconcile"
	"pitchpipe/driver"
)

// always checks what holds in every story.
func (p *play) always(cast []told, audit []reconcile.Audit) {
	p.Helper()
	for _, t := range cast {
		if !t.job.State.Ended() {
			p.Errorf("job %s was left %s", t.name, t.job.State)
		}
		p.intents(t, audit)
		p.epochs(t)
		if t.rec == nil {
			continue
		}
		if !p.broken[t.job.ID] && t.rec.Phase != reconcile.Ended {
			p.Errorf("job %s ended as %s, the tuner has it as %s", t.name, t.job.State, t.rec.Phase)
		}
		if t.rec.Phase.Over() && t.rec.Move != nil {
			p.Errorf("job %s is over and intent %s is still open", t.name, t.rec.Move.Driver.ID)
		}
		if n := len(t.rec.History); n > 200 {
			p.Errorf("the history of job %s has %d entries: it grows without end", t.name, n)
		}
		p.replays(t)
		for _, e := range t.rec.History {
			if e.Trigger != "" && !slices.Contains(reconcile.Arrows(), reconcile.Arrow{From: e.From, To: e.To, By: e.Trigger}) {
				p.Errorf("job %s went from %s to %s by %q, which is not in the table", t.name, e.From, e.To, e.Trigger)
			}
		}
		for _, line := range t.story.Lines {
			if !strings.HasSuffix(line.Text, ".") || len(line.Text) < 10 {
				p.Errorf("the story of job %s has a line %q", t.name, line.Text)
			}
		}
	}
}

// intents: each made at most one attempt, and was in the audit before.
func (p *play) intents(t told, audit []reconcile.Audit) {
	p.Helper()
	seen := map[string]int{}
	for _, a := range t.job.Attempts {
		if a.Cause != driver.CauseIntent {
			continue
		}
		if before, twice := seen[a.Intent]; twice {
			p.Errorf("job %s: intent %s made attempts %d and %d", t.name, a.Intent, before, a.Number)
		}
		seen[a.Intent] = a.Number
		i := slices.IndexFunc(audit, func(x reconcile.Audit) bool { return x.Intent == a.Intent })
		if i < 0 {
			p.Errorf("job %s: attempt %d by intent %s is not in the audit", t.name, a.Number, a.Intent)
		} else if audit[i].At.After(a.Started) {
			p.Errorf("job %s: intent %s was audited at %s, after attempt %d began at %s", t.name, a.Intent, audit[i].At, a.Number, a.Started)
		}
	}
}

// epochs: none was worked on twice, and a job that succeeded did them all.
func (p *play) epochs(t told) {
	p.Helper()
	line := regexp.MustCompile(`(?m)^epoch (\d+)/`)
	next := 1
	for _, found := range line.FindAllStringSubmatch(t.log, -1) {
		if found[1] != strconv.Itoa(next) {
			p.Errorf("job %s: epoch %s came where %d was due", t.name, found[1], next)
			return
		}
		next++
	}
}
