package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/reconcile/stages"
	"pitchpipe/controller/tuning"
)

// recall asks the knowledge about one job.
func (r *rooms) recall(ctx context.Context, q reconcile.Question) (reconcile.Recollection, error) {
	var out reconcile.Recollection
	var err, e error
	m := q.Policy.Measure()
	usable := true
	if m.NeedsJoules() && !q.Site.EnforceModel {
		// Effects on computed joules are no effects; where the node is unknown, hold.
		node, err := r.nodes.Node(ctx, q.Node)
		usable = err == nil && node.EnergySource != tuning.Modelled
	}
	if usable {
		out.KindEffects, e = r.store.Effects(q.Kind, q.Own, m)
		err = errors.Join(err, e)
		out.Carried, e = r.store.Carried(q.Kind, q.Own, m)
		err = errors.Join(err, e)
		out.Profile, e = r.store.KindProfile(q.Kind)
		out.Profile = cmp.Or(out.Profile, q.Live)
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
	out.MemoryHeld, e = r.store.MemoryHeld(q.Kind)
	err = errors.Join(err, e)
	out.KindSeconds, out.KindRuns, e = r.store.KindSeconds(q.Kind, q.Own)
	err = errors.Join(err, e)
	switch last, e := r.store.LastReference(q.Kind); {
	case e == nil:
		out.Reference = &last
	case !errors.Is(e, knowledge.ErrNotFound):
		err = errors.Join(err, e)
	}
	out.RestartCost, _, e = r.store.RestartCost(q.Kind)
	return out, errors.Join(err, e)
}

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

// judged are the classes of observations under the present model. Observations do not
// change, so each is classified once per fit of a stratum that its profiles belong to.
type judged struct {
	classes map[string]string                // by observation id; empty = none
	of      map[classify.Key]map[string]bool // ids of those that have a profile in the stratum
}

// classOf is the class of an observation as the present model sees it: that of
// the profile under the owner's own settings, else of any.
func (r *rooms) classOf(o knowledge.Observation) string {
	r.mu.Lock()
	model := r.model
	id, ok := r.judged.classes[o.ID]
	r.mu.Unlock()
	if model == nil || ok {
		return id
	}
	id = classIn(model, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.model == model { // else another one came meanwhile
		r.judged.classes[o.ID] = id
		for _, p := range o.Profiles {
			key := classify.KeyOf(p)
			if r.judged.of[key] == nil {
				r.judged.of[key] = map[string]bool{}
			}
			r.judged.of[key][o.ID] = true
		}
	}
	return id
}

// use makes a model the present one. Of what was judged there remains what belongs to
// strata that are as they were.
func (r *rooms) use(model *classify.Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.model == nil {
		r.judged = judged{map[string]string{}, map[classify.Key]map[string]bool{}}
	}
	for _, key := range model.Changed(r.model) {
		for id := range r.judged.of[key] {
			delete(r.judged.classes, id)
		}
		delete(r.judged.of, key)
	}
	r.model = model
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

// learn keeps what a job taught, and what it teaches about the classes.
func (r *rooms) learn(ctx context.Context, l reconcile.Lesson) error {
	o := stages.Observation(l)
	if node, err := r.nodes.Node(ctx, l.Node); err == nil {
		o.Machine, o.Cores = node.MachineKind, node.Cores
	}
	r.refitting.Lock() // one at a time: each model follows from the one before
	defer r.refitting.Unlock()
	r.mu.Lock()
	old := r.model
	r.mu.Unlock()
	model, err := classify.Refit(old, samplesOf(o), r.samples, classify.Config{})
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
	r.forget(l.Job)
	return nil
}

// samplesOf are the profiles that an observation teaches classes by.
func samplesOf(o knowledge.Observation) []classify.Sample {
	var out []classify.Sample
	for _, p := range o.Profiles {
		if !o.Polluted {
			out = append(out, classify.Sample{Profile: p, Run: o.ID, Kind: o.Kind.String()})
		}
	}
	return out
}

// samples are those of a run that was learned from before.
func (r *rooms) samples(run string) ([]classify.Sample, error) {
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

// refit fits the classes anew from everything that was observed.
func (r *rooms) refit() error {
	r.refitting.Lock()
	defer r.refitting.Unlock()
	observations, err := r.store.All()
	if err != nil {
		return fmt.Errorf("read the observations: %w", err)
	}
	var samples []classify.Sample
	for _, o := range observations {
		samples = append(samples, samplesOf(o)...)
	}
	model, err := classify.Fit(samples, classify.Config{})
	if err != nil {
		return fmt.Errorf("fit the classes: %w", err)
	}
	if err := r.store.Update(func(tx *knowledge.Tx) error { return save(tx, model) }); err != nil {
		return err
	}
	r.use(model)
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
	r.use(model)
	return nil
}
