package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/reconcile/stages"
	"pitchpipe/controller/tuning"
)

func measureOf(p tuning.Policy) knowledge.Measure {
	return knowledge.Measure{Objective: p.Objective, Weight: p.Weight}
}

// recall asks the knowledge about one job.
func (r *rooms) recall(ctx context.Context, q reconcile.Question) (reconcile.Recollection, error) {
	var out reconcile.Recollection
	var err, e error
	m := measureOf(q.Policy)
	joules, _ := m.Objective.Weights(m.Weight)
	usable := true
	if joules > 0 && !q.Site.EnforceModel {
		// Effects on computed joules are no effects; where the node is unknown, hold.
		node, err := r.nodes.Node(ctx, q.Node)
		usable = err == nil && node.EnergySource != tuning.Modelled
	}
	if usable {
		out.KindEffects, e = r.store.Effects(q.Kind, q.Own, m)
		err = errors.Join(err, e)
	}
	if usable && q.Class != nil && q.Class.Known() {
		out.ClassEffects, e = r.store.ClassEffects(q.Class.ID, r.teachers(q), q.Own, r.target(ctx, q.Node), m)
		err = errors.Join(err, e)
	}
	out.Regressed, e = r.store.Regressions(q.Kind)
	err = errors.Join(err, e)
	out.PeakRSS, out.PeakRuns, e = r.store.PeakRSS(q.Kind)
	err = errors.Join(err, e)
	out.KindSeconds, out.KindRuns, e = r.store.KindSeconds(q.Kind, q.Own)
	err = errors.Join(err, e)
	switch last, e := r.store.LastReference(q.Kind); {
	case e == nil:
		out.Reference = &last
	case !errors.Is(e, knowledge.ErrNotFound):
		err = errors.Join(err, e)
	}
	if q.Epochs > 0 {
		quality, jobs, e := r.store.FinalQuality(q.Kind, q.Taught, q.Epochs)
		err = errors.Join(err, e)
		if jobs >= qualityRuns {
			out.Quality = &quality
		}
	}
	out.RestartCost, _, e = r.store.RestartCost(q.Kind)
	return out, errors.Join(err, e)
}

// qualityRuns is in how many untuned jobs of the kind a quality must have been seen
// before another job is held against it: two runs differ by their seeds alone.
const qualityRuns = 3

// teachers is classOf for those jobs whose experience may move the one that asks.
func (r *rooms) teachers(q reconcile.Question) func(knowledge.Observation) string {
	return func(o knowledge.Observation) string {
		if !q.Site.ShareClasses && o.Kind.Owner != q.Kind.Owner {
			return ""
		}
		return r.classOf(o)
	}
}

// target is the machine that effects are asked for; unknown while its exporter does
// not answer.
func (r *rooms) target(ctx context.Context, name string) knowledge.Target {
	node, err := r.nodes.Node(ctx, name)
	if err != nil {
		return knowledge.Target{}
	}
	return knowledge.Target{Machine: node.MachineKind, Cores: node.Cores}
}

// judged are the classes of observations under one model: observations do not
// change, so each is classified once per fit.
type judged struct {
	model   *classify.Model
	classes map[string]string // by observation id; empty = none
}

// classOf is the class of an observation as the present model sees it: that of
// the profile under the owner's own settings, else of any.
func (r *rooms) classOf(o knowledge.Observation) string {
	r.mu.Lock()
	model := r.model
	if r.judged.model != model {
		r.judged = judged{model, map[string]string{}}
	}
	known := r.judged
	id, ok := known.classes[o.ID]
	r.mu.Unlock()
	if model == nil || ok {
		return id
	}
	id = classIn(model, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	known.classes[o.ID] = id // of this model, even when another one came meanwhile
	return id
}

func classIn(model *classify.Model, o knowledge.Observation) string {
	own := tuning.Settings{}
	if t, ok := tuning.Reference(o.Trials); ok {
		own = t.Settings
	}
	id := ""
	for _, p := range o.Profiles {
		c := model.Classify(p)
		if !c.Known() {
			continue
		}
		if agree(p.Settings, own) {
			return c.ID
		}
		id = c.ID
	}
	return id
}

// agree tells whether the profile's settings are those of s where both speak.
func agree(profile, s tuning.Settings) bool {
	for name, v := range profile {
		if w, ok := s[name]; ok && w != v {
			return false
		}
	}
	return true
}

// learn keeps what a job taught and fits the classes anew.
func (r *rooms) learn(ctx context.Context, l reconcile.Lesson) error {
	o := stages.Observation(l)
	if node, err := r.nodes.Node(ctx, l.Node); err == nil {
		o.Machine, o.Cores = node.MachineKind, node.Cores
	}
	if _, err := r.store.Put(o); err != nil {
		return err
	}
	r.forget(l.Job)
	return r.refit()
}

// refit fits the classes anew from everything that was observed.
func (r *rooms) refit() error {
	r.refitting.Lock() // one at a time: each carries the class ids of the one before on
	defer r.refitting.Unlock()
	observations, err := r.store.All()
	if err != nil {
		return fmt.Errorf("read the observations: %w", err)
	}
	var samples []classify.Sample
	for _, o := range observations {
		for _, p := range o.Profiles {
			if o.Polluted || slices.Contains(p.Flags, tuning.FlagContended) {
				continue
			}
			samples = append(samples, classify.Sample{Profile: p, Run: o.ID, Kind: o.Kind.String()})
		}
	}
	if len(samples) == 0 {
		return nil
	}
	r.mu.Lock()
	old := r.model
	r.mu.Unlock()
	// The seed is fixed: the same observations give the same classes.
	rng := rand.New(rand.NewPCG(r.seed, uint64(len(samples))))
	model, err := classify.Refit(old, samples, classify.Config{}, rng)
	if err != nil {
		return fmt.Errorf("fit the classes: %w", err)
	}
	raw, err := model.Encode()
	if err != nil {
		return fmt.Errorf("encode the classes: %w", err)
	}
	if err := r.store.SaveModel(raw); err != nil {
		return err
	}
	r.mu.Lock()
	r.model = model
	r.mu.Unlock()
	return nil
}

// loadModel reads the classes that were fitted last.
func (r *rooms) loadModel() error {
	raw, err := r.store.LoadModel()
	if errors.Is(err, knowledge.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	// A model that cannot be read is fitted anew: it is derived, the
	// observations are what is kept.
	model, err := classify.Decode(raw)
	if err != nil {
		r.log.Warn("the classes cannot be read and are fitted anew", "error", err)
		return r.refit()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model = model
	return nil
}
