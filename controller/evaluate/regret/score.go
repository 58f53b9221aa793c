package regret

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// mean of ln costs of a setting over repeats; false: one of them was not made.
func (s *subject) mean(key string, repeats []int) (float64, bool) {
	sum := 0.0
	for _, r := range repeats {
		v, ok := s.logs[key][r]
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum / float64(len(repeats)), len(repeats) > 0
}

// cheapest is the setting with the least mean over the repeats, of those that were made
// in all of them and that may be taken; of equals the first by name. Empty: none.
func (s *subject) cheapest(repeats []int, may func(key string) bool) string {
	best, least := "", math.Inf(1)
	for _, key := range s.keys() {
		if v, ok := s.mean(key, repeats); ok && may(key) && v < least {
			best, least = key, v
		}
	}
	return best
}

// whole are the repeats in which every setting was measured that was measured twice, and
// those settings.
func (s *subject) whole() (repeats []int, keys []string) {
	for _, key := range s.keys() {
		if len(s.cells[key]) >= 2 {
			keys = append(keys, key)
		}
	}
	for _, r := range s.repeats() {
		if !slices.ContainsFunc(keys, func(key string) bool { _, ok := s.logs[key][r]; return !ok }) {
			repeats = append(repeats, r)
		}
	}
	return repeats, keys
}

// probe is the setting that came out cheapest when each was tried once, in one repeat;
// what was not tried is not taken.
func (s *subject) probe(repeat int, otherwise string) string {
	if best := s.cheapest([]int{repeat}, func(string) bool { return true }); best != "" {
		return best
	}
	return otherwise
}

// regret of a setting in one repeat: ln of its cost over that of the setting that was
// cheapest in the others. False: not measured.
func (s *subject) regret(key string, judge int) (float64, bool) {
	var others []int
	repeats, keys := s.whole()
	for _, r := range repeats {
		if r != judge {
			others = append(others, r)
		}
	}
	best := s.cheapest(others, func(k string) bool { _, ok := s.logs[k][judge]; return ok && slices.Contains(keys, k) })
	own, ok := s.logs[key][judge]
	if best == "" || !ok {
		return 0, false
	}
	return own - s.logs[best][judge], true
}

// hindsight is ln of the mean cost of a setting over that of the cheapest, both in all
// repeats.
func (s *subject) hindsight(key string) (float64, bool) {
	repeats, keys := s.whole()
	best := s.cheapest(repeats, func(k string) bool { return slices.Contains(keys, k) })
	if best == "" {
		return 0, false
	}
	least, _ := s.mean(best, repeats)
	own, ok := s.mean(key, repeats)
	return own - least, ok
}

// single is the setting that is cheapest for subjects together, each measured against
// its own mean, so that all count alike; of equals the first by name. Empty: they have
// none in common.
func single(subjects []*subject) string {
	sums, counts := map[string]float64{}, map[string]int{}
	for _, s := range subjects {
		repeats, keys := s.whole()
		level := 0.0
		for _, key := range keys {
			v, _ := s.mean(key, repeats)
			level += v / float64(len(keys))
		}
		for _, key := range keys {
			if v, ok := s.mean(key, repeats); ok {
				sums[key] += v - level
				counts[key]++
			}
		}
	}
	best, least := "", math.Inf(1)
	for key, v := range sums {
		if counts[key] == len(subjects) && (v < least || v == least && key < best) {
			best, least = key, v
		}
	}
	return best
}

// spread sums the squared deviations of ln costs from their setting's mean, and how many
// of them are free.
func (s *subject) spread() (squares, free float64) {
	for _, cells := range s.logs {
		var all []float64
		for _, v := range cells {
			all = append(all, v)
		}
		slices.Sort(all)
		m := 0.0
		for _, v := range all {
			m += v / float64(len(all))
		}
		for _, v := range all {
			squares += (v - m) * (v - m)
		}
		free += float64(len(all) - 1)
	}
	return squares, free
}

// logs gathers natural logarithms of ratios.
type logs []float64

func (l *logs) add(v float64, ok bool) {
	if ok {
		*l = append(*l, v)
	}
}

// geometric is the geometric mean of what they stand for; nil: there are none.
func (l logs) geometric() *float64 {
	if m := l.mean(); m != nil {
		v := math.Exp(*m)
		return &v
	}
	return nil
}

func (l logs) mean() *float64 {
	if len(l) == 0 {
		return nil
	}
	m := 0.0
	for _, v := range l {
		m += v / float64(len(l))
	}
	return &m
}

func worst(all []*float64) *float64 {
	var out *float64
	for _, v := range all {
		if v != nil && (out == nil || *v > *out) {
			out = v
		}
	}
	return out
}

func share(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	v := float64(part) / float64(whole)
	return &v
}

// knobs are what the settings name, with every value that was measured.
func knobs(subjects []*subject) []tuning.Knob {
	var out []tuning.Knob
	for _, s := range subjects {
		for _, key := range s.keys() {
			for _, m := range s.cells[key] {
				out = allow(out, m.settings)
				break
			}
		}
	}
	return out
}
