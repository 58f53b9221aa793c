package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// told is what is left of one job at the end of a story.
type told struct {
	name  string
	job   driver.Job
	rec   *reconcile.Record
	log   string
	story api.Story
}

// collect asks the controller for the stories, ends it, and reads what it kept.
func (p *play) collect() ([]told, []reconcile.Audit) {
	p.Helper()
	out := make([]told, len(p.names))
	for i, name := range p.names {
		id := p.id(name)
		job, err := p.cluster.Get(p.Context(), id)
		if err != nil {
			p.Fatalf("get %s: %v", name, err)
		}
		out[i] = told{name: name, job: job, log: p.output(id)}
		if code := p.ask(p.users[name], http.MethodGet, "/v1/explain/"+string(id), nil, &out[i].story); code != http.StatusOK {
			p.Errorf("explain %s: status %d", name, code)
		}
		if n := len(p.retold(name).Lines); n != len(out[i].story.Lines) {
			p.Errorf("the story of job %s has %d lines, and in %d where its decisions are made again", name, len(out[i].story.Lines), n)
		}
	}
	p.close()
	records := p.records()
	for i := range out {
		out[i].rec = records[out[i].job.ID]
	}
	return out, p.audit()
}

func (p *play) output(id driver.JobID) string {
	p.Helper()
	r, err := p.cluster.Logs(p.Context(), id, 0)
	if err != nil {
		p.Fatalf("logs of %s: %v", id, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// records reads the durable stories, as the next controller would.
func (p *play) records() map[driver.JobID]*reconcile.Record {
	p.Helper()
	store, err := knowledge.Open(filepath.Join(p.config.State, "knowledge.db"), knowledge.Options{})
	if err != nil {
		p.Fatal(err)
	}
	out := map[driver.JobID]*reconcile.Record{}
	err = store.ForEachJSON("records", func(key string, decode func(v any) error) error {
		var r reconcile.Record
		if err := decode(&r); err != nil {
			return err
		}
		out[driver.JobID(key)] = &r
		return nil
	})
	if err != nil {
		p.Error(err)
	}
	if err := store.Close(); err != nil {
		p.Error(err)
	}
	return out
}

func (p *play) audit() []reconcile.Audit {
	p.Helper()
	raw, err := os.ReadFile(filepath.Join(p.config.State, "audit.jsonl"))
	if err != nil {
		p.Fatal(err)
	}
	var out []reconcile.Audit
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var a reconcile.Audit
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			p.Fatalf("audit line %s: %v", lines.Bytes(), err)
		}
		out = append(out, a)
	}
	return out
}

// report is the text that a story's expect holds.
func report(cast []told, pauses []api.Pause) string {
	var b strings.Builder
	for i, t := range cast {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.write(&b)
	}
	for _, x := range pauses {
		fmt.Fprintf(&b, "\npaused: %s by %s: %s\n", strings.TrimSpace(x.Scope+" "+x.Name), x.By, x.Why)
	}
	return b.String()
}

func (t told) write(b *strings.Builder) {
	fmt.Fprintf(b, "job %s\n", t.name)
	fmt.Fprintf(b, "  %s, attempts %d\n", t.job.State, len(t.job.Attempts))
	if t.rec == nil {
		b.WriteString("  the controller knows nothing of it\n")
		return
	}
	r := t.rec
	fmt.Fprintf(b, "  phase %s, reason %s\n", r.Phase, orNone(string(r.Reason)))
	fmt.Fprintf(b, "  class %s\n", className(r.Class))
	fmt.Fprintf(b, "  probes %d, restarts %d\n", len(r.Probed), len(r.Restarts))
	fmt.Fprintf(b, "  own %s\n", orNone(r.Own.String()))
	if end := r.Settings(t.job.Attempt); !end.Equal(r.Own) {
		fmt.Fprintf(b, "  end %s\n", end)
	}
	if n := len(r.Epochs); n > 0 && r.Policy.Quality != nil && r.Epochs[n-1].Quality != nil {
		fmt.Fprintf(b, "  ended with quality %.3f\n", *r.Epochs[n-1].Quality)
	}
	if o := r.Outcome; o != nil {
		fmt.Fprintf(b, "  outcome %s of %s\n", o.Verdict, o.Tuned)
	}
	for _, e := range r.History {
		if text, ok := entry(r, e); ok {
			fmt.Fprintf(b, "  - %s\n", text)
		}
	}
}

func className(c *tuning.Class) string {
	switch {
	case c == nil:
		return "not asked"
	case c.Known():
		return "known"
	}
	return "unknown: " + string(c.Reason)
}

// entry is one line of a job's history, where it decides or explains something.
func entry(r *reconcile.Record, e reconcile.Entry) (string, bool) {
	switch {
	case e.Decision != nil:
		return decision(r, e), true
	case e.Trigger == reconcile.IntentVoid:
		return "nothing changed: " + string(e.Reason), true
	case e.Trigger == reconcile.IntentDone:
		return fmt.Sprintf("started with %s", changed(r, r.Settings(e.Attempt))), true
	case e.Outcome != nil && (e.Trigger == reconcile.OutcomeKnown || e.To == ""):
		return "outcome " + string(e.Outcome.Verdict), true
	case e.Class != nil && e.To == "":
		return "class " + className(e.Class), true
	case e.To == "" && e.Reason != tuning.ReasonNone:
		return "note " + string(e.Reason), true
	case slices.Contains([]reconcile.Trigger{
		reconcile.NoStanza, reconcile.OwnerChanged, reconcile.OurFailure,
	}, e.Trigger):
		return strings.TrimSpace(string(e.To) + ": " + string(e.Trigger)), true
	}
	return "", false
}

func decision(r *reconcile.Record, e reconcile.Entry) string {
	d := e.Decision
	text := fmt.Sprintf("%s: %s", d.Action, d.Reason)
	if d.Action != tuning.Hold {
		text += ", " + changed(r, d.Settings)
	}
	if len(d.Advice) > 0 {
		text += ", advice " + changed(r, d.Advice)
	}
	return text
}

// changed is what the settings differ in from the owner's own.
func changed(r *reconcile.Record, s tuning.Settings) string {
	diff := s.Only(func(name string) bool { return r.Own[name] != s[name] })
	if len(diff) == 0 {
		return "its own"
	}
	return diff.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
