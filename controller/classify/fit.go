package classify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// ErrSample: a sample cannot be learned from.
var ErrSample = errors.New("not a sample to learn from")

const (
	// maxClasses is how many classes a stratum has at most.
	maxClasses = 64
	// confidence is the share of the runs of a class that should lie within its radius, if
	// noise is as assumed. In the simulation of this package's tests 0.98 recognises two or
	// three more of 100 second runs than 0.95, and takes half as many strangers again for
	// something known.
	confidence = 0.95
	// priorRuns is how many runs the documented noise is worth against what is observed.
	priorRuns = 4
	// most is how many runs a stratum is learned from. Work grows with the square of
	// what is looked at, and thousands of runs of few kinds say no more.
	most = 400
	// settled is from how many runs on a class learns nothing from a further run that it
	// recognises: its centre, its radius and the noise hardly change.
	settled = 16
	// finest is the share of the documented noise of hardware counters down to which
	// observed noise may count.
	finest = 0.125
)

// Sample is one profile to learn from. Profiles of one run are not independent:
// together they count as one.
type Sample struct {
	Profile tuning.Profile
	Run     string // job id
	Kind    string // what was run, such as tuning.JobKind prints it; may be empty
}

// Fit learns classes from samples, the oldest first, except those whose profile has few samples
// or was contended: they show noise, or others' work. Without samples the model knows nothing and
// says so. The order matters only to strata of more than 400 runs, which are learned from the
// newest of each kind.
//
// One run makes a class: it gets a name and the widest radius, and
// tuning.Class.Support says how thin it is. To ask for two would leave 11 more of 100
// second runs unknown, without a single one fewer in a wrong class.
func Fit(samples []Sample) (*Model, error) {
	return Refit(nil, samples, nil)
}

// Refit learns from further samples: it fits again the strata that they belong to and
// leaves the others as they are. It returns old itself where they teach nothing new. The
// work is bounded, however many runs were learned before: a stratum keeps at most 400 of
// them, the newest of each class, and recall returns the samples of such a run, none where
// the run is lost.
//
// Each class gets the id of the nearest class of the old model that lies within its
// radius, so that ids keep their meaning as knowledge grows. Each id is given once;
// other classes get ids that were never used. old may be nil. Equal arguments give an
// equal model.
func Refit(old *Model, samples []Sample, recall func(run string) ([]Sample, error)) (*Model, error) {
	m := &Model{Version: version, Confidence: confidence, PriorRuns: priorRuns, Strata: []Stratum{}}
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
		unknown := slices.DeleteFunc(fresh[key], before.settled)
		if len(unknown) == 0 {
			continue
		}
		runs, err := before.recalled(unknown, recall)
		if err != nil {
			return nil, fmt.Errorf("stratum %v: %w", key, err)
		}
		learned := learn(key, runs)
		m.giveIDs(&learned, before)
		fitted = append(fitted, learned)
		m.Strata = append(slices.DeleteFunc(m.Strata, func(s Stratum) bool { return s.Key == key }), learned)
	}
	slices.SortFunc(m.Strata, func(a, b Stratum) int { return compareKeys(a.Key, b.Key) })
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

type run struct {
	id, kind string
	features map[string]float64
	before   int       // class that it was in, by its index; -1 = none
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
		if s.Profile.Poor() {
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
		r := run{id: at.run, features: map[string]float64{}, before: -1}
		values := map[string][]float64{}
		for _, s := range profiles[at] {
			r.kind = max(r.kind, s.Kind)
			for f, v := range s.Profile.Features {
				if usable(v) {
					values[f] = append(values[f], v)
				}
			}
		}
		for f, v := range values {
			r.features[f] = tuning.Quantile(v, 0.5)
		}
		if len(r.features) > 0 {
			out[at.key] = append(out[at.key], r)
		}
	}
	return out, nil
}

// settled reports whether a class knows enough runs like this one.
func (s Stratum) settled(r run) bool {
	near := s.candidates(r.features)
	return len(near) > 0 && near[0].depth() <= 1 && alike(near[0], near[1:]) == "" && len(near[0].group.Runs) >= settled
}

// recalled joins the runs that a stratum was learned from and fresh ones, the newest of
// each class and kind where they are too many.
func (s Stratum) recalled(fresh []run, recall func(run string) ([]Sample, error)) ([]run, error) {
	kept := map[string]bool{}
	kinds := map[string][]run{}
	for _, r := range fresh {
		kept[r.id] = false
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	lists := slices.Collect(maps.Values(kinds))
	if len(lists) > most {
		lists = [][]run{fresh}
	}
	for _, r := range slices.Concat(newest(lists, most)...) {
		kept[r.id] = true
	}
	fresh = slices.DeleteFunc(fresh, func(r run) bool { return !kept[r.id] })
	classes := make([][]string, len(s.Groups))
	for i, g := range s.Groups {
		classes[i] = slices.DeleteFunc(slices.Clone(g.Runs), func(id string) bool { _, again := kept[id]; return again })
	}
	var runs []run
	for c, ids := range newest(classes, most-len(fresh)) {
		for _, id := range ids {
			samples, err := recall(id)
			if err != nil {
				return nil, fmt.Errorf("recall run %s: %w", id, err)
			}
			strata, err := gather(samples)
			if err != nil {
				return nil, err
			}
			for _, r := range strata[s.Key] {
				r.before = c
				runs = append(runs, r)
			}
		}
	}
	return append(runs, fresh...), nil
}

// newest shortens the longest lists to their ends, until they have room together.
func newest[T any](lists [][]T, room int) [][]T {
	each := max(0, room)
	for ; each > 0; each-- {
		if tuning.Sum(lists, func(l []T) int { return min(len(l), each) }) <= room {
			break
		}
	}
	out := make([][]T, len(lists))
	for i, l := range lists {
		out[i] = l[max(0, len(l)-each):]
	}
	return out
}

// learn makes the stratum of one key; its classes have no ids yet. Repeats of a program
// may agree better in its hardware counters than is documented. But inputs that were not run yet
// differ more than repeats. So closer agreement counts only where it tells apart kinds that would
// share a class, in at least a quarter of their runs, and only as much of it as that takes.
func learn(key Key, runs []run) Stratum {
	best := learnAt(1, key, runs)
	if !strings.HasPrefix(key.Schema, hardware) {
		return best
	}
	for share := 0.5; share >= finest && best.mixed() > 0; share /= 2 {
		if s := learnAt(share, key, runs); 4*s.mixed() <= 3*best.mixed() {
			best = s
		}
	}
	return best
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
func learnAt(share float64, key Key, runs []run) Stratum {
	s := Stratum{Key: key, Axes: axes(key.Schema, runs, share)}
	s.Merge = mergeDistance(s.freedom(), unexplained)
	for i := range runs {
		runs[i].age, runs[i].row = i, s.row(runs[i].features)
	}
	// A run that has no feature on the axes is at no distance from anything.
	runs = slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return s.compare(r.row, r.row).share == 0 })
	s.Runs = len(runs)
	clusters, silhouette := s.partition(runs)
	s.Silhouette, s.Groups = silhouette, s.groups(clusters)
	return s
}

// groups describes clusters of runs. The dispersion within a class is drawn
// towards that of all classes, and that towards the documented noise, each worth
// priorRuns runs; it never falls under half of the documented variance, or runs
// of one input would make a class that no other input fits.
func (s Stratum) groups(clusters [][]run) []Group {
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
	pooled := (priorRuns + all) / (priorRuns + free)
	for i, members := range clusters {
		own := (priorRuns*pooled + squares[i]) / (priorRuns + float64(len(members)-1))
		out[i].Spread = max(leastSpread, own)
	}
	return out
}

func compareRuns(a, b run) int { return cmp.Compare(a.id, b.id) }

// giveIDs gives the classes of a stratum their ids, nearest pairs of old and new
// first.
func (m *Model) giveIDs(s *Stratum, before Stratum) {
	type pair struct {
		group    int
		id       string
		distance float64
	}
	var pairs []pair
	for _, o := range before.Groups {
		row, reach := s.row(o.Center), radius(o, s.freedom())
		for i, g := range s.Groups {
			if c := s.compare(s.row(g.Center), row); c.share >= enoughShare && c.distance <= reach {
				pairs = append(pairs, pair{i, o.ID, c.distance})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.distance, b.distance) })
	given := map[string]bool{}
	for _, p := range pairs {
		if s.Groups[p.group].ID == "" && !given[p.id] {
			s.Groups[p.group].ID, given[p.id] = p.id, true
		}
	}
	for i := range s.Groups {
		if s.Groups[i].ID == "" {
			m.Issued++
			s.Groups[i].ID = classID(m.Issued)
		}
	}
}
