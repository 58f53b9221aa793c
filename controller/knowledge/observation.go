package knowledge

import (
	"cmp"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Observation is what one job taught, as it was measured.
type Observation struct {
	ID      string         `json:"id"`  // unique: job id, settings and role; a second one of the same ID is ignored
	Job     string         `json:"job"` // observations of one job count as one run, see Submitted
	Kind    tuning.JobKind `json:"kind"`
	User    string         `json:"user,omitempty"`
	Search  string         `json:"search,omitempty"`  // that the job is a trial of; empty: of none
	Machine string         `json:"machine,omitempty"` // kind of machine, as in tuning.Profile
	Cores   int            `json:"cores,omitempty"`   // of the node; 0 = unknown
	At      time.Time      `json:"at"`

	// Submitted tells runs apart that come again under the job's id, as those of a
	// scheduler whose jobs have names. Observations of older versions lack it.
	Submitted time.Time `json:"submitted,omitzero"`

	Profiles []tuning.Profile `json:"profiles,omitempty"` // one per setting that was profiled
	Peak     tuning.Bytes     `json:"peak,omitempty"`     // largest resident memory; 0 = unknown

	// Trials hold one entry per setting with its means per epoch, that of the
	// owner's own settings marked as Reference.
	Trials       []tuning.Trial    `json:"trials,omitempty"`
	Outcome      *tuning.Outcome   `json:"outcome,omitempty"`
	Regressed    []tuning.Settings `json:"regressed,omitempty"` // that made the job worse, or under which it could not run
	RestartCosts []time.Duration   `json:"restart_costs,omitempty"`
	Startup      time.Duration     `json:"startup,omitempty"` // before its first epoch; 0 = unknown

	// Final is what the job reached; nil: it did not end well, or its
	// hyperparameters changed on the way.
	Final *Final `json:"final,omitempty"`

	// How the run went as a whole. Observations of older versions have none of it, which
	// is not to say that it went badly.
	Began  tuning.Settings `json:"began,omitempty"`  // what its first attempt ran under
	Trying bool            `json:"trying,omitempty"` // to see what that brings
	Epochs int             `json:"epochs,omitempty"` // that it did in all; 0 = not known
	End    tuning.End      `json:"end,omitempty"`

	Broke bool `json:"broke,omitempty"` // a restart by tuning ended it

	// Toll is what tuning cost the job or saved it; nil: it was not tuned, or that is unknown.
	Toll *tuning.Toll `json:"toll,omitempty"`

	// Reached is when it reached the target of its quality; nil: it had none, or that is
	// not known.
	Reached *tuning.Reached `json:"reached,omitempty"`

	// Curve is what forecasts of its loss or quality were worth. Observations of older
	// versions have none.
	Curve []tuning.CurveLesson `json:"curve,omitempty"`

	Adapted *tuning.Adapted `json:"adapted,omitempty"` // nil: it could take no actions

	// Polluted marks a job most of whose epochs were disturbed by others. It teaches no
	// effect and no time; its memory, its quality and what hurt it count.
	Polluted bool `json:"polluted,omitempty"`
}

// Final is the quality that a job reached after all its epochs.
type Final struct {
	Settings tuning.Settings `json:"settings"` // its hyperparameters
	Epochs   int             `json:"epochs"`   // in all
	Quality  float64         `json:"quality"`
}

// unique sorts observations and drops repeated IDs, so that what is derived depends on no order.
func unique(obs []Observation) []Observation {
	out := slices.Clone(obs)
	slices.SortStableFunc(out, byTime)
	seen := make(map[string]bool, len(out))
	return slices.DeleteFunc(out, func(o Observation) bool {
		again := seen[o.ID]
		seen[o.ID] = true
		return again
	})
}

func byTime(a, b Observation) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
}

// What a run measured, where and when, is that of the observations that are not polluted.
type run struct {
	observations []Observation
	machine      string
	search       string
	cores        int
	at           time.Time // the newest
	trials       []tuning.Trial
}

// Of a setting that several observations speak about, the one with most epochs counts.
func runs(obs []Observation) []run {
	type key struct {
		kind      tuning.JobKind
		job       string
		submitted int64
	}
	index := map[key]int{}
	var out []run
	for _, o := range unique(obs) {
		k := key{o.Kind, o.Job, o.Submitted.Unix()}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, run{})
		}
		r := &out[i]
		r.observations, r.search = append(r.observations, o), o.Search
		if o.Polluted {
			continue
		}
		r.at, r.machine, r.cores = o.At, o.Machine, o.Cores
		for _, t := range o.Trials {
			r.add(t)
		}
	}
	return out
}

func (r *run) add(t tuning.Trial) {
	if t.Failed || !(t.Seconds > 0) || !(t.Weight() > 0) {
		return
	}
	i := slices.IndexFunc(r.trials, func(u tuning.Trial) bool { return u.Settings.Equal(t.Settings) })
	switch {
	case i < 0:
		r.trials = append(r.trials, t)
	case t.Weight() > r.trials[i].Weight():
		t.Reference = t.Reference || r.trials[i].Reference
		r.trials[i] = t
	}
}

// outgrew reports whether a job was killed for memory under its owner's limit: how much it needs is not known.
func (o Observation) outgrew() bool { return o.End == tuning.EndMemory }

// References are what the jobs of a kind measured under their owner's settings, the oldest first.
func References(obs []Observation, kind tuning.JobKind) []tuning.Trial {
	var out []tuning.Trial
	for _, r := range runs(ofKind(obs, kind)) {
		if t, ok := tuning.Reference(r.trials); ok && !t.Failed {
			out = append(out, t)
		}
	}
	return out
}
