package classify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

const (
	// most is how many runs a stratum is learned from. Work grows with the square of
	// what is looked at, and thousands of runs of few kinds say no more.
	most = 400
	// settled is from how many runs on a class learns nothing from a further run that it
	// recognises: its centre, its radius and the noise hardly change.
	settled = 16
)

// Sample is one profile to learn from. Profiles of one run are not independent:
// together they count as one.
type Sample struct {
	Profile tuning.Profile
	Run     string // job id
	Kind    string // what was run, such as tuning.JobKind prints it; may be empty
}

// Fit learns classes from samples, the oldest first, but for those whose profile has few
// samples or was contended: they show noise, or others' work. Without samples the model
// knows nothing and says so. The order matters only to strata of more than 400 runs,
// which are learned from the newest of each kind.
func Fit(samples []Sample, cfg Config) (*Model, error) {
	return Refit(nil, samples, nil, cfg)
}

// Refit learns from further samples: it fits anew the strata that they belong to and
// leaves the others as they are. It returns old itself where they teach nothing new. The
// work is bounded, however many runs were learned before: a stratum keeps at most 400 of
// them, the newest of each class, and recall returns the samples of such a run, none
// where the run is lost.
//
// Each class gets the id of the nearest class of the old model that lies within its
// radius, so that ids keep their meaning as knowledge grows. Each id is given once;
// other classes get ids that were never used. old may be nil, and so may recall: then
// every run learned before is lost. Equal arguments give an equal model.
func Refit(old *Model, samples []Sample, recall func(run string) ([]Sample, error), cfg Config) (*Model, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	m := &Model{Version: version, Confidence: cfg.Confidence, PriorRuns: cfg.PriorRuns, Strata: []Stratum{}}
	if old != nil {
		m.ID, m.Generation, m.Issued, m.Strata = old.ID, old.Generation, old.Issued, slices.Clone(old.Strata)
	}
	fresh, err := gather(samples)
	if err != nil {
		return nil, err
	}
	var fitted []Stratum
	for _, key := range slices.SortedFunc(maps.Keys(fresh), compareKeys) {
		before, _ := old.stratum(key)
		unknown := slices.DeleteFunc(fresh[key], func(r run) bool { return old.settled(before, r) })
		if len(unknown) == 0 {
			continue
		}
		runs, start, err := before.recalled(unknown, recall)
		if err != nil {
			return nil, fmt.Errorf("stratum %v: %w", key, err)
		}
		s, err := learn(key, runs, start, cfg)
		if err != nil {
			return nil, fmt.Errorf("stratum %v: %w", key, err)
		}
		m.giveIDs(&s, old)
		fitted = append(fitted, s)
		i, found := slices.BinarySearchFunc(m.Strata, s, func(a, b Stratum) int { return compareKeys(a.Key, b.Key) })
		if found {
			m.Strata[i] = s
		} else {
			m.Strata = slices.Insert(m.Strata, i, s)
		}
	}
	if old != nil && len(fitted) == 0 {
		return old, nil
	}
	m.Generation++
	if m.ID, err = m.name(fitted); err != nil {
		return nil, err
	}
	m.prepare()
	return m, nil
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Settings, b.Settings))
}

// run is the mean profile of one run.
type run struct {
	id, kind string
	features map[string]float64
	age      int       // its place among the runs, the oldest first
	row      []float64 // see Stratum.row
}

// gather sorts samples into strata and takes the median over the profiles of
// each run. The runs come in the order of their first samples.
func gather(samples []Sample) (map[Key][]run, error) {
	type member struct {
		key Key
		run string
	}
	profiles := map[member][]Sample{}
	var order []member
	for i, s := range samples {
		if s.Run == "" {
			return nil, fmt.Errorf("%w: sample %d names no run", ErrSample, i)
		}
		if slices.ContainsFunc(s.Profile.Flags, spoils) {
			continue
		}
		at := member{KeyOf(s.Profile), s.Run}
		if profiles[at] == nil {
			order = append(order, at)
		}
		profiles[at] = append(profiles[at], s)
	}
	out := map[Key][]run{}
	for _, at := range order {
		r := run{id: at.run, features: make(map[string]float64, len(profiles[at][0].Profile.Features))}
		values := map[string][]float64{}
		for _, s := range profiles[at] {
			r.kind = max(r.kind, s.Kind)
			for f, v := range s.Profile.Features {
				if !usable(v) {
					continue
				}
				r.features[f] = v
				if len(profiles[at]) > 1 {
					values[f] = append(values[f], v)
				}
			}
		}
		for f, v := range values {
			r.features[f] = quantile(v, 0.5)
		}
		if len(r.features) > 0 {
			out[at.key] = append(out[at.key], r)
		}
	}
	return out, nil
}

// spoils reports whether a profile that has this flag is not learned from. Counters
// that were multiplexed are scaled up by the time they ran: right on average.
func spoils(f tuning.Flag) bool {
	return f == tuning.FlagFewSamples || f == tuning.FlagContended
}

// settled reports whether a class knows enough runs like this one.
func (m *Model) settled(s Stratum, r run) bool {
	near := m.candidates(s, r.features)
	return len(near) > 0 && near[0].depth() <= 1 && alike(near[0], near[1:]) == "" && len(near[0].group.Runs) >= settled
}

// recalled joins the runs that a stratum was learned from and fresh ones. start is the
// class that each was in, by its index; -1 = none.
func (s Stratum) recalled(fresh []run, recall func(run string) ([]Sample, error)) (runs []run, start []int, err error) {
	is := map[string]bool{}
	kinds := map[string][]run{}
	for _, r := range fresh {
		is[r.id] = true
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	if len(fresh) > most { // of one kind, where there are too many kinds
		lists := slices.Collect(maps.Values(kinds))
		if len(lists) > most {
			lists = [][]run{fresh}
		}
		keep := map[string]bool{}
		for _, r := range slices.Concat(newest(lists, most)...) {
			keep[r.id] = true
		}
		fresh = slices.DeleteFunc(fresh, func(r run) bool { return !keep[r.id] })
	}
	classes := make([][]string, len(s.Groups))
	for i, g := range s.Groups {
		classes[i] = slices.DeleteFunc(slices.Clone(g.Runs), func(id string) bool { return is[id] })
	}
	if recall == nil {
		classes = nil
	}
	for c, ids := range newest(classes, most-len(fresh)) {
		for _, id := range ids {
			samples, err := recall(id)
			if err != nil {
				return nil, nil, fmt.Errorf("recall run %s: %w", id, err)
			}
			strata, err := gather(samples)
			if err != nil {
				return nil, nil, err
			}
			for _, r := range strata[s.Key] {
				runs, start = append(runs, r), append(start, c)
			}
		}
	}
	return append(runs, fresh...), append(start, slices.Repeat([]int{-1}, len(fresh))...), nil
}

// newest shortens the longest lists to their ends, until they have room together.
func newest[T any](lists [][]T, room int) [][]T {
	each := max(0, room)
	for ; each > 0; each-- {
		sum := 0
		for _, l := range lists {
			sum += min(len(l), each)
		}
		if sum <= room {
			break
		}
	}
	out := make([][]T, len(lists))
	for i, l := range lists {
		out[i] = l[max(0, len(l)-each):]
	}
	return out
}

// finest is the share of the documented noise of hardware counters down to which observed
// noise may count.
const finest = 0.125

// learn makes the stratum of one key; its classes have no ids yet. start is where the
// search for them begins: the class of each run before, -1 for none. Repeats of a program
// may agree better in its hardware counters than is documented. Since inputs that were
// not run yet differ more than they do, that counts only where it tells kinds apart that
// would share a class, at least a quarter of their runs, and as little of it as does.
func learn(key Key, runs []run, start []int, cfg Config) (Stratum, error) {
	best, err := learnAt(1, key, runs, start, cfg)
	if err != nil || !strings.HasPrefix(key.Schema, hardware) {
		return best, err
	}
	for share := 0.5; share >= finest && best.mixed() > 0; share /= 2 {
		s, err := learnAt(share, key, runs, start, cfg)
		if err != nil {
			return s, err
		}
		if 4*s.mixed() <= 3*best.mixed() {
			best = s
		}
	}
	return best, nil
}

// mixed is how many runs are in classes of several kinds.
func (s Stratum) mixed() int {
	n := 0
	for _, g := range s.Groups {
		if len(g.Kinds) > 1 {
			n += len(g.Runs)
		}
	}
	return n
}

// learnAt learns with noise of at least a share of what is documented, which weighs as
// much less.
func learnAt(share float64, key Key, runs []run, start []int, cfg Config) (Stratum, error) {
	s := Stratum{Key: key, Axes: axes(key.Schema, runs, share, cfg), Runs: len(runs)}
	s.Merge = mergeDistance(freedom(s.Axes), unexplained)
	for i := range runs {
		runs[i].age, runs[i].row = i, s.row(runs[i].features)
	}
	clusters, silhouette, err := s.partition(runs, start, cfg)
	if err != nil {
		return s, err
	}
	s.Silhouette = silhouette
	s.Groups = s.groups(clusters, cfg)
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
		middle := center(members)
		out[i] = Group{Center: s.values(middle)}
		for _, r := range members {
			d := s.compare(r.row, middle).distance
			squares[i] += d * d
			if r.kind != "" {
				out[i].Kinds = append(out[i].Kinds, r.kind)
			}
		}
		slices.Sort(out[i].Kinds)
		out[i].Kinds = slices.Compact(out[i].Kinds)
		for _, r := range slices.SortedFunc(slices.Values(members), func(a, b run) int { return cmp.Compare(a.age, b.age) }) {
			out[i].Runs = append(out[i].Runs, r.id)
		}
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

func compareRuns(a, b run) int { return cmp.Compare(a.id, b.id) }
