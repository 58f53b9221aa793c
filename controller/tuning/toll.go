package tuning

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Toll is what tuning cost a job so far against the same epochs under its owner's settings. Every
// epoch counts, disturbed or not, ended or not. Below 0 it saved.
type Toll struct {
	Seconds float64 `json:"seconds"`
	Joules  *Joules `json:"joules,omitempty"` // nil: unknown, since an epoch of it or of the reference has none
	Source  string  `json:"source,omitempty"` // of Joules

	// Epochs is the toll in the objective, counted in epochs under the owner's settings.
	// Harm leaves out what settings saved: it is what tuning lost where it did not work out.
	Epochs float64 `json:"epochs"`
	Harm   float64 `json:"harm"`

	Own  float64 `json:"own_seconds"`    // seconds of an epoch under the owner's settings
	Kind bool    `json:"kind,omitempty"` // Own is that of other runs of the kind, not of this job

	Present Present `json:"present,omitzero"` // the attempt under way, where it is not under the owner's settings
}

// Present is what an attempt under other settings than the owner's took so far.
type Present struct {
	Epochs    float64 `json:"epochs"`    // its part of the toll
	Done      int     `json:"done"`      // epochs that ended
	Disturbed int     `json:"disturbed"` // of these, by other work on the node
	Seconds   float64 `json:"seconds"`   // of these
	Running   float64 `json:"running"`   // seconds that the running epoch has taken
}

// Pace is how many times as long an epoch of the present attempt takes at least. The running epoch
// counts once it makes the pace worse.
func (t Toll) Pace() float64 {
	p, pace := t.Present, 0.0
	if p.Done > 0 {
		pace = p.Seconds / float64(p.Done)
	}
	return max(pace, (p.Seconds+p.Running)/float64(p.Done+1)) / t.Own
}

// Course is what a Toll is made of.
type Course struct {
	Policy    Policy
	Own       Settings
	Current   Settings
	Attempt   int                    // the present one
	Reference Trial                  // what an epoch takes under Own
	Kind      bool                   // Reference is that of other runs of the kind
	Epochs    []Epoch                // of all attempts, by attempt and number; cut ones included
	Still     []Span                 // in which the job was suspended; what meets them is neither lost nor saved
	Ours      func(attempt int) bool // reports whether tuning began the attempt
	Began     time.Time              // the first attempt
	Started   time.Time              // of the present attempt
	Running   bool                   // the present attempt runs: an epoch is under way
	Heard     time.Time              // since when ended epochs of that are reported; zero: some may have ended unreported
	Now       time.Time              // or, of one that was lost, its end
	Lost      bool                   // tuning ended the job, so that none of its epochs did work
}

// Toll adds up the course; nil: the reference is unknown.
func (c Course) Toll() *Toll {
	if !(c.Reference.Seconds > 0) {
		return nil
	}
	t := ledger{Course: c, restart: c.Policy.Measure().Degree(), out: Toll{Kind: c.Kind, Own: c.Reference.Seconds}, settings: map[string]float64{}}
	if j := c.Reference.Joules; j != nil && *j > 0 {
		t.out.Joules, t.out.Source = new(Joules), c.Reference.Source
	}
	var last *Epoch
	done := 0 // epochs that earlier attempts ended
	epochs := slices.Clone(c.begun())
	for i := range epochs {
		e := &epochs[i]
		e.Cut = e.Cut || c.Lost
		first := last == nil || last.Attempt != e.Attempt
		if last == nil && e.Attempt > 1 && e.Number == 1 { // the attempt before ended no epoch
			t.gap(e.Attempt, cmp.Or(c.Began, e.Start), e.Start)
		}
		if last != nil && first {
			t.gap(e.Attempt, last.End, e.Start)
			if done = max(done, last.Number); last.Cut {
				done--
			}
		}
		if !Meet(t.Still, e.Start, e.End) {
			t.epoch(*e, first, e.Number <= done && t.Ours(e.Attempt))
		}
		last = e
	}
	if t.running(last); c.Lost && last != nil {
		t.gap(c.Attempt, last.End, c.Now)
	}
	for _, v := range t.settings {
		t.out.Epochs += v
		t.out.Harm += max(v, 0)
	}
	t.out.Epochs += t.restarts
	t.out.Harm += t.restarts
	return &t.out
}

// begun are the epochs without the start of the program, which takes as long under any settings: the first epoch of
// a first attempt that ended is no longer than the next, or than the reference.
func (c Course) begun() []Epoch {
	if c.Running || len(c.Epochs) == 0 || c.Epochs[0].Attempt != 1 {
		return c.Epochs
	}
	out, usual := slices.Clone(c.Epochs), c.Reference.Seconds
	if len(out) > 1 && out[1].Attempt == 1 && !out[1].Cut {
		usual = out[1].Seconds()
	}
	e := &out[0]
	if share := usual / e.Seconds(); share > 0 && share < 1 {
		e.Start = e.End.Add(-time.Duration(usual * float64(time.Second)))
		if e.Joules != nil {
			e.Joules = new(*e.Joules * Joules(share))
		}
	}
	return out
}

type ledger struct {
	Course
	restart  float64 // factors of the objective that a second without work counts in
	restarts float64 // epochs that restarts cost
	settings map[string]float64
	out      Toll
}

// Awake leaves out the epochs that meet one of the spans.
func Awake(epochs []Epoch, still []Span) []Epoch {
	if len(still) == 0 {
		return epochs
	}
	return slices.DeleteFunc(slices.Clone(epochs), func(e Epoch) bool { return Meet(still, e.Start, e.End) })
}

func (t *ledger) gap(attempt int, from, to time.Time) {
	d := to.Sub(from)
	if !t.Ours(attempt) || d <= 0 || Meet(t.Still, from, to) {
		return
	}
	n := d.Seconds() / t.Reference.Seconds
	t.restarts += t.restart * n
	t.add(d.Seconds(), n)
}

func (t *ledger) add(seconds, epochs float64) {
	t.out.Seconds += seconds
	if t.out.Joules != nil {
		*t.out.Joules += Joules(epochs) * *t.Reference.Joules
	}
}

// An epoch that was cut, or is done again, did no work.
func (t *ledger) epoch(e Epoch, first, again bool) {
	home := e.Settings.Equal(t.Own)
	if home && !again && !e.Cut && !(first && e.Attempt > 1 && t.Ours(e.Attempt)) {
		return
	}
	loss, work := t.loss(e), 1.0
	if e.Cut || again {
		loss, work = loss+1, 0
	}
	if home {
		t.restarts += max(loss, 0) // it loads what it saved
	} else {
		t.settings[e.Settings.Key()] += loss
	}
	t.out.Seconds += e.Seconds() - work*t.Reference.Seconds
	if t.out.Joules != nil {
		if e.Joules == nil || e.Source != t.Reference.Source {
			t.out.Joules, t.out.Source = nil, ""
		} else {
			*t.out.Joules += *e.Joules - Joules(work)**t.Reference.Joules
		}
	}
	if e.Attempt == t.Attempt && !home && !e.Cut {
		p := &t.out.Present
		p.Epochs += loss
		p.Seconds += e.Seconds()
		p.Done++
		if e.Polluted {
			p.Disturbed++
		}
	}
}

// Where joules are missing, watts are taken to be in proportion to cores.
func (t *ledger) loss(e Epoch) float64 {
	one, reference := Trial{Settings: e.Settings, Epochs: 1, Seconds: e.Seconds(), Joules: e.Joules, Source: e.Source}, t.Reference
	ratio, ok := one.LogRatio(reference, t.Policy.Measure())
	if !ok {
		cores := 1.0
		if now, own := e.Settings[Cores].Float(), t.Own[Cores].Float(); now > 0 && own > 0 {
			cores = now / own
		}
		used, before := Joules(cores*one.Seconds), Joules(reference.Seconds)
		one.Joules, reference.Joules, one.Source, reference.Source = &used, &before, "", ""
		if ratio, ok = one.LogRatio(reference, t.Policy.Measure()); !ok && one.Seconds > 0 { // what it uses has no price
			ratio = math.Log(one.Seconds / reference.Seconds)
		}
	}
	return math.Expm1(ratio)
}

// burst is how many epochs a report of the job usually ends: what most epochs see, since the last report of
// an attempt ends what is left.
func (c Course) burst() float64 {
	each := []int{1}
	for _, e := range c.Epochs {
		if !e.Inner {
			n := max(1, e.Together)
			each = append(each, slices.Repeat([]int{n}, n)...)
		}
	}
	slices.Sort(each)
	return float64(each[len(each)/2])
}

// Before the first mark of the attempt it adds the time since the last epoch. Where several epochs are
// reported together, the silence is that of all of them.
func (t *ledger) running(last *Epoch) {
	if !t.Course.Running {
		return
	}
	from := t.Started
	switch {
	case last != nil && last.Attempt == t.Attempt:
		from = last.End
	case last != nil:
		t.gap(t.Attempt, last.End, t.Started)
	}
	if t.Heard.IsZero() {
		return // how long the running epoch takes is unknown
	}
	if t.Heard.After(from) {
		from = t.Heard
	}
	elapsed := t.Now.Sub(from).Seconds() / t.burst()
	if t.Current.Equal(t.Own) || !(elapsed > 0) || Meet(t.Still, from, t.Now) {
		return
	}
	t.out.Present.Running = elapsed
	// What it has cost so far is the least that it will have cost.
	if loss := t.loss(Epoch{Settings: t.Current, End: t.Started.Add(time.Duration(elapsed * float64(time.Second))), Start: t.Started}); loss > 0 {
		t.settings[t.Current.Key()] += loss
		t.out.Present.Epochs += loss
		t.add(max(elapsed-t.Reference.Seconds, 0), loss)
	}
}

// ToEnd is how many seconds the running epoch is expected to take still: as long as those of its
// attempt, or as long again as it has taken.
func (p Present) ToEnd() float64 {
	if p.Done > 0 {
		if left := p.Seconds/float64(p.Done) - p.Running; left > 0 {
			return left
		}
	}
	return p.Running
}
