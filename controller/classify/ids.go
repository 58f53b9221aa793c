package classify

import (
	"cmp"
	"slices"
)

// giveIDs gives the classes of a stratum their ids, nearest pairs of old and new
// first.
func (m *Model) giveIDs(s *Stratum, old *Model) {
	type pair struct {
		group    int
		id       string
		distance float64
	}
	var pairs []pair
	if before, ok := old.stratum(s.Key); ok {
		rows := make([][]float64, len(s.Groups))
		for i, g := range s.Groups {
			rows[i] = s.row(g.Center)
		}
		for _, o := range before.Groups {
			row, reach := s.row(o.Center), radius(old, o, freedom(s.Axes))
			for i := range rows {
				if c := s.compare(rows[i], row); c.share >= enoughShare && c.distance <= reach {
					pairs = append(pairs, pair{i, o.ID, c.distance})
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Compare(a.distance, b.distance)
	})
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

// stratum finds the stratum of a key; a nil model has none.
func (m *Model) stratum(key Key) (Stratum, bool) {
	if m == nil {
		return Stratum{}, false
	}
	i := slices.IndexFunc(m.Strata, func(s Stratum) bool { return s.Key == key })
	if i < 0 {
		return Stratum{}, false
	}
	return m.Strata[i], true
}
