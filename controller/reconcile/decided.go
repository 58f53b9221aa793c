package reconcile

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// How many decisions are kept per job, and how many bytes of their states.
const (
	maxDecisions     = 12
	maxDecisionBytes = 48 << 10
)

// ErrNotKept means that the state of a decision was dropped, or could not be written.
var ErrNotKept = errors.New("the state of this decision is not kept")

// Decided is one decision with the state that it was made of, so that it can be replayed.
type Decided struct {
	At       time.Time       `json:"at"`
	Action   tuning.Action   `json:"action"`
	Reason   tuning.Reason   `json:"reason"`
	Settings tuning.Settings `json:"settings,omitempty"`
	Advice   tuning.Settings `json:"advice,omitempty"`
	Sum      string          `json:"sum"` // a fingerprint of the whole decision, evidence included
	// State holds the fields of the tuning.State that differ from the entry before it,
	// by their names in JSON; null: the field is gone.
	State map[string]json.RawMessage `json:"state"`
}

// Dropped counts the decisions that are no longer kept.
type Dropped struct {
	Decisions int       `json:"decisions"`
	Until     time.Time `json:"until"` // the newest of them was made then
}

// Replayed is a decision that was replayed.
type Replayed struct {
	Decided
	Of    tuning.State    // the whole state
	Again tuning.Decision // what it decides now
	// Same: action and evidence are equal. Alike: the action is.
	Same, Alike bool
	Err         error // why it could not be replayed; ErrNotKept
}

func (r *Record) addDecision(s tuning.State, d tuning.Decision) (changed bool, err error) {
	if r.repeats(d) {
		return false, nil
	}
	var fields map[string]json.RawMessage
	if err := recode(s, &fields); err != nil {
		return false, fmt.Errorf("keep the state of a decision: %w", err)
	}
	sum, err := sumOf(d)
	if err != nil {
		return false, err
	}
	r.Decided = append(r.Decided, Decided{
		At: d.At, Action: d.Action, Reason: d.Reason, Settings: d.Settings, Advice: d.Advice, Sum: sum,
		State: differing(r.fields(len(r.Decided)-1), fields),
	})
	for len(r.Decided) > 1 && (len(r.Decided) > maxDecisions || r.decisionBytes() > maxDecisionBytes) {
		if r.Dropped == nil {
			r.Dropped = &Dropped{}
		}
		r.Dropped.Decisions++
		r.Dropped.Until = r.Decided[0].At
		whole := r.fields(1)
		r.Decided = slices.Clone(r.Decided[1:])
		r.Decided[0].State = whole
	}
	return true, nil
}

func (r *Record) repeats(d tuning.Decision) bool {
	n := len(r.Decided)
	return n > 0 && r.Decided[n-1].repeats(d)
}

func (x Decided) repeats(d tuning.Decision) bool {
	return x.Action == d.Action && x.Reason == d.Reason && x.Settings.Equal(d.Settings) && x.Advice.Equal(d.Advice)
}

func (r *Record) decisionBytes() int {
	n := 0
	for _, x := range r.Decided {
		for name, raw := range x.State {
			n += len(name) + len(raw) + len(`"":,`)
		}
	}
	return n
}

func (r *Record) fields(i int) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, x := range r.Decided[:i+1] {
		maps.Copy(all, x.State)
	}
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == null })
	return all
}

// Replay makes every kept decision again, the oldest first.
func (r *Record) Replay(decide func(tuning.State) tuning.Decision) []Replayed {
	out := make([]Replayed, 0, len(r.Decided))
	for i, x := range r.Decided {
		p := Replayed{Decided: x}
		if err := recode(r.fields(i), &p.Of); err != nil {
			p.Err = fmt.Errorf("%w: %w", ErrNotKept, err)
		} else {
			p.Again = decide(p.Of)
			sum, err := sumOf(p.Again)
			p.Alike = x.repeats(p.Again) && p.Again.At.Equal(x.At)
			p.Same, p.Err = p.Alike && sum == x.Sum, err
		}
		out = append(out, p)
	}
	return out
}

// recode writes what has the JSON of from to another type.
func recode(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

const null = "null"

func differing(before, now map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range now {
		if old, ok := before[name]; !ok || !bytes.Equal(old, v) {
			out[name] = v
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			out[name] = json.RawMessage(null)
		}
	}
	return out
}

func sumOf(d tuning.Decision) (string, error) {
	d.At = d.At.UTC()
	raw, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("keep a decision: %w", err)
	}
	h := fnv.New128a()
	_, _ = h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (p *reconciliation) work(policy tuning.Policy, current tuning.Settings) forecast.Work {
	w := forecast.Work{
		Epochs: p.rec.comparable(p.rec.Epochs), Own: p.rec.Own, Current: current, Done: p.rec.Done(), Total: p.rec.Total, Learns: policy.Learns,
	}
	if policy.Quality != nil {
		w.Direction = forecast.Direction(policy.Quality.Direction)
	}
	if t := p.reference; t != nil && t.Settings.Equal(p.rec.Own) {
		w.Kind = t
	}
	return w
}

func (p *reconciliation) lessons(ctx context.Context) []tuning.CurveLesson {
	if p.services.Curves == nil {
		return nil
	}
	out, err := p.services.Curves(ctx, p.rec.Kind)
	if err != nil {
		p.cfg.Log.Warn("the errors of earlier forecasts cannot be read", "job", p.rec.Job, "error", err)
	}
	return out
}

// A job that changed its hyperparameters or did not reach its end teaches nothing.
func (p *reconciliation) teach(ctx context.Context) []tuning.CurveLesson {
	if _, ok := p.steady(); !ok {
		return nil
	}
	w := p.work(p.rec.Policy, p.rec.Settings(p.job.Attempt))
	w.Lessons = p.lessons(ctx)
	return p.stages.Teach(w)
}

// record keeps a new decision and its state for replay, and adds what was considered. The
// planner does not use the curve, so it is fitted only here. A state that cannot be written
// only cannot be replayed.
func (p *reconciliation) record(ctx context.Context, s tuning.State, d tuning.Decision) tuning.Decision {
	waiting := d.Action == tuning.Hold && d.Reason == s.Measured && plan.Waits(d.Reason)
	if waiting || p.rec.repeats(d) {
		return d // waiting for a profile is not news
	}
	w := p.work(s.Policy, s.Current)
	w.Curve, w.Lessons = true, p.lessons(ctx)
	s.Forecast = new(p.stages.Forecast(w))
	d = p.stages.Explain(s, d)
	changed, err := p.rec.addDecision(s, d)
	if err != nil {
		p.cfg.Log.Debug("a decision cannot be replayed", "job", p.rec.Job, "error", err)
	}
	p.dirty = p.dirty || changed
	return d
}
