package classify

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/tuning"
)

// Sample is one profile to learn from. Profiles of one run are not independent:
// together they count as one.
type Sample struct {
	Profile tuning.Profile
	Run     string // job id
	Kind    string // what was run, such as tuning.JobKind prints it; may be empty
}

// Fit learns classes from samples, but for those whose profile has few samples or
// was contended: they show noise, or others' work. Without samples the model
// knows nothing and says so. Equal samples in any order and an equal source give an equal model.
func Fit(samples []Sample, cfg Config, rng *rand.Rand) (*Model, error) {
	return Refit(nil, samples, cfg, rng)
}

// Refit learns classes anew from all samples, and gives each the id of the
// nearest class of the old model that lies within its radius, so that ids keep
// their meaning as knowledge grows. Each id is given once; other classes get ids
// that were never used. old may be nil.
func Refit(old *Model, samples []Sample, cfg Config, rng *rand.Rand) (*Model, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	m := &Model{Version: version, Generation: 1, Confidence: cfg.Confidence, PriorRuns: cfg.PriorRuns, Strata: []Stratum{}}
	if old != nil {
		m.Generation, m.Issued = old.Generation+1, old.Issued
	}
	strata, err := gather(samples)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.SortedFunc(maps.Keys(strata), compareKeys) {
		s, err := learn(key, strata[key], cfg, rng)
		if err != nil {
			return nil, fmt.Errorf("stratum %v: %w", key, err)
		}
		m.giveIDs(&s, old)
		m.Strata = append(m.Strata, s)
	}
	m.ID, err = m.name()
	return m, err
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Settings, b.Settings))
}

// run is the mean profile of one run.
type run struct {
	id, kind string
	features map[string]float64
}

// gather sorts samples into strata and takes the median over the profiles of
// each run. The runs come sorted by id.
func gather(samples []Sample) (map[Key][]run, error) {
	type member struct {
		key Key
		run string
	}
	profiles := map[member][]Sample{}
	for i, s := range samples {
		if s.Run == "" {
			return nil, fmt.Errorf("%w: sample %d names no run", ErrSample, i)
		}
		if slices.ContainsFunc(s.Profile.Flags, spoils) {
			continue
		}
		at := member{KeyOf(s.Profile), s.Run}
		profiles[at] = append(profiles[at], s)
	}
	out := map[Key][]run{}
	for at, group := range profiles {
		values := map[string][]float64{}
		kind := ""
		for _, s := range group {
			kind = max(kind, s.Kind)
			for f, v := range s.Profile.Features {
				if usable(v) {
					values[f] = append(values[f], v)
				}
			}
		}
		r := run{at.run, kind, map[string]float64{}}
		for f, v := range values {
			r.features[f] = quantile(v, 0.5)
		}
		if len(r.features) > 0 {
			out[at.key] = append(out[at.key], r)
		}
	}
	for _, runs := range out {
		slices.SortFunc(runs, compareRuns)
	}
	return out, nil
}

// spoils tells whether a profile that has this flag is not learned from. Counters
// that were multiplexed are scaled up by the time they ran: right on average.
func spoils(f tuning.Flag) bool {
	return f == tuning.FlagFewSamples || f == tuning.FlagContended
}

// learn makes the stratum of one key; its classes have no ids yet.
func learn(key Key, runs []run, cfg Config, rng *rand.Rand) (Stratum, error) {
	s := Stratum{Key: key, Axes: axes(key.Schema, runs, cfg), Runs: len(runs)}
	s.Merge = mergeDistance(freedom(s.Axes))
	clusters, err := s.partition(runs, cfg, rng)
	if err != nil {
		return s, err
	}
	kept := slices.DeleteFunc(clusters, func(members []run) bool { return len(members) < cfg.MinRuns })
	s.Silhouette = s.silhouette(kept)
	s.Groups = s.groups(kept, cfg)
	return s, nil
}

// groups describes clusters of runs. The dispersion within a class is drawn
// towards that of all classes, and that towards the documented noise, each worth
// PriorRuns runs; it never falls under half of the documented variance, or runs
// of one input would make a class that no other input fits.
func (s Stratum) groups(clusters [][]run, cfg Config) []Group {
	out := make([]Group, len(clusters))
	squares := make([]float64, len(clusters))
	all, free := 0.0, 0.0
	for i, members := range clusters {
		out[i] = Group{Center: center(s.Axes, members)}
		for _, r := range members {
			d, _ := s.distance(r.features, out[i].Center)
			squares[i] += d * d
			out[i].Runs = append(out[i].Runs, r.id)
			if r.kind != "" {
				out[i].Kinds = append(out[i].Kinds, r.kind)
			}
		}
		slices.Sort(out[i].Kinds)
		out[i].Kinds = slices.Compact(out[i].Kinds)
		all += squares[i]
		free += float64(len(members) - 1)
	}
	pooled := (cfg.PriorRuns + all) / (cfg.PriorRuns + free)
	for i, members := range clusters {
		own := (cfg.PriorRuns*pooled + squares[i]) / (cfg.PriorRuns + float64(len(members)-1))
		out[i].Spread = max(leastSpread, own)
	}
	return out
}

// center is the mean of the runs that have a feature, taken where they lie on its axis.
func center(axes []Axis, members []run) map[string]float64 {
	out := map[string]float64{}
	for _, a := range axes {
		sum, n := 0.0, 0.0
		for _, r := range members {
			if v, ok := r.features[a.Feature]; ok {
				sum, n = sum+a.place(v), n+1
			}
		}
		if n > 0 {
			out[a.Feature] = a.value(sum / n)
		}
	}
	return out
}

func compareRuns(a, b run) int { return cmp.Compare(a.id, b.id) }
