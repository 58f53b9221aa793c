package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

func (r *services) recall(ctx context.Context, q reconcile.Question) (reconcile.Recollection, error) {
	all, err := r.store.All()
	obs, of := r.store.Observations(q.Kind)
	if err = errors.Join(err, of); err != nil {
		return reconcile.Recollection{}, err
	}
	now, m := time.Now(), q.Policy.Measure()
	usable := len(q.Policy.Knobs) > 0 // else there is nothing to choose
	if m.NeedsJoules() && !q.Site.EnforceModel {
		// Effects on computed joules are not effects; wait where the node is unknown.
		node, err := r.nodes.Node(ctx, q.Node)
		usable = usable && err == nil && node.EnergySource != tuning.Modelled
	}
	out := q.Recall(obs, usable, now)
	if usable && q.Class != nil && q.Class.Known() {
		class := slices.DeleteFunc(slices.Clone(all), func(o knowledge.Observation) bool { return r.teaches(q, o) != q.Class.ID })
		out.ClassEffects = knowledge.ClassEffects(class, q.Own, r.target(ctx, q.Node), m, now)
	}
	if out.Restarts == 0 {
		out.RestartCost, _ = knowledge.RestartCost(all, q.Kind)
	}
	return out, nil
}

// teaches is the class of an observation whose experience may move the job that asks, else
// empty.
func (r *services) teaches(q reconcile.Question, o knowledge.Observation) string {
	if !q.Site.ShareClasses && o.Kind.Owner != q.Kind.Owner {
		return ""
	}
	return r.classOf(o)
}

// target is the machine that effects are asked for; unknown while its exporter does
// not answer.
func (r *services) target(ctx context.Context, name string) knowledge.Target {
	node, err := r.nodes.Node(ctx, name)
	if err != nil {
		return knowledge.Target{}
	}
	return knowledge.Target{Machine: node.MachineKind, Cores: node.Cores}
}

// judged is the class of an observation under the present model, empty = none, and the strata
// that its profiles belong to. Observations do not change, so each is classified once per fit
// of one of these.
type judged struct {
	class  string
	strata []classify.Key
}

// classOf is the class of an observation as the present model sees it: that of
// the profile under the owner's own settings, else of any.
func (r *services) classOf(o knowledge.Observation) string {
	r.mu.Lock()
	model := r.model.Load()
	known, ok := r.judged[o.ID]
	r.mu.Unlock()
	if model == nil || ok {
		return known.class
	}
	known.class, known.strata = classIn(model, o), tuning.Each(o.Profiles, classify.KeyOf)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.model.Load() == model { // else another one came meanwhile
		r.judged[o.ID] = known
	}
	return known.class
}

// use makes a model the current one. Of what was judged there remains what belongs to
// strata that are as they were.
func (r *services) use(model *classify.Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.model.Swap(model)
	if old == nil {
		r.judged = map[string]judged{}
	}
	changed := model.Changed(old)
	maps.DeleteFunc(r.judged, func(_ string, j judged) bool {
		return slices.ContainsFunc(j.strata, func(key classify.Key) bool { return slices.Contains(changed, key) })
	})
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

// agree reports whether the profile has the settings of s, as far as both have a knob.
func agree(profile, s tuning.Settings) bool {
	for name, v := range profile {
		if w, ok := s[name]; ok && w != v {
			return false
		}
	}
	return true
}

// learn keeps what a job taught, and what it teaches about the classes.
func (r *services) learn(ctx context.Context, o knowledge.Observation, node string) error {
	if n, err := r.nodes.Node(ctx, node); err == nil {
		o.Machine, o.Cores = n.MachineKind, n.Cores
	}
	r.refitting.Lock() // one at a time: each model follows from the one before
	defer r.refitting.Unlock()
	old := r.model.Load()
	model, err := classify.Refit(old, samplesOf(o), r.samples)
	if err != nil {
		return fmt.Errorf("fit the classes: %w", err)
	}
	added := false
	// Both or neither are durable: a model has learned what is stored, each once.
	err = r.store.Update(func(tx *knowledge.Tx) error {
		if added, err = tx.Put(o); err != nil || !added || model == old {
			return err
		}
		return save(tx, model)
	})
	if err != nil {
		return err
	}
	if added {
		r.use(model)
	}
	r.forget(o.Job)
	return nil
}

// samplesOf are the profiles that an observation teaches classes by.
func samplesOf(o knowledge.Observation) []classify.Sample {
	if o.Polluted {
		return nil
	}
	return tuning.Each(o.Profiles, func(p tuning.Profile) classify.Sample {
		return classify.Sample{Profile: p, Run: o.ID, Kind: o.Kind.String()}
	})
}

// samples returns the samples of a run that was learned before.
func (r *services) samples(run string) ([]classify.Sample, error) {
	o, err := r.store.Observation(run)
	if errors.Is(err, knowledge.ErrNotFound) {
		return nil, nil
	}
	return samplesOf(o), err
}

func save(tx *knowledge.Tx, model *classify.Model) error {
	raw, err := model.Encode()
	if err != nil {
		return fmt.Errorf("encode the classes: %w", err)
	}
	return tx.SaveModel(raw)
}

func (r *services) refit() error {
	r.refitting.Lock()
	defer r.refitting.Unlock()
	observations, err := r.store.All()
	if err != nil {
		return fmt.Errorf("read the observations: %w", err)
	}
	model, err := classify.Fit(slices.Concat(tuning.Each(observations, samplesOf)...))
	if err != nil {
		return fmt.Errorf("fit the classes: %w", err)
	}
	if err := r.store.Update(func(tx *knowledge.Tx) error { return save(tx, model) }); err != nil {
		return err
	}
	r.use(model)
	return nil
}

func (r *services) loadModel() error {
	raw, err := r.store.LoadModel()
	if errors.Is(err, knowledge.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	// A model that cannot be read is fitted again: it is derived from the observations, which are
	// kept.
	model, err := classify.Decode(raw)
	if err != nil {
		r.log.Warn("the classes cannot be read and are fitted again", "error", err)
		return r.refit()
	}
	r.use(model)
	return nil
}
