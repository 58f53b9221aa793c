package recurring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// ErrSpace is wrapped by what is wrong with a space.
var ErrSpace = errors.New("not a space to search")

// Knob is one knob of a space.
type Knob struct {
	Name   string
	System bool // changes what an epoch costs, never how many there are
}

// Space holds every setting that may be chosen; combinations may be missing.
type Space struct {
	Knobs  []Knob            // in the order in which they are searched; others are the same at all points or follow one of these
	Points []tuning.Settings // unique
	Own    int               // which of Points the owner asked for
}

// CoresFirst orders knobs as they are searched: cores, other system knobs, the rest.
func CoresFirst(a, b Knob) int { return rank(a) - rank(b) }

func rank(k Knob) int {
	switch {
	case k.Name == tuning.Cores:
		return 0
	case k.System:
		return 1
	}
	return 2
}

// layout is a space by courses.
type layout struct {
	Space
	system, course []Knob
	courses        []course  // those with less first
	of             []int     // the course of each point
	cores          []float64 // of each point, 1 where no knob is called cores
	lines          [][][]int // of each point by system knob, see line
}

// course is one choice of the knobs that are not system knobs.
type course struct {
	key    string
	points []int     // ascending by system knobs
	at     []float64 // its distance from the owner's along each knob, in octaves
}

func newLayout(s Space) (layout, error) {
	l := layout{Space: s, of: make([]int, len(s.Points)), cores: make([]float64, len(s.Points))}
	if s.Own < 0 || s.Own >= len(s.Points) {
		return layout{}, fmt.Errorf("%w: the owner's settings are none of its %d points", ErrSpace, len(s.Points))
	}
	for _, k := range s.Knobs {
		if k.System {
			l.system = append(l.system, k)
		} else {
			l.course = append(l.course, k)
		}
	}
	seen, courses := map[string]bool{}, map[string]course{}
	for i, p := range s.Points {
		key := p.Only(among(s.Knobs)).Key()
		if seen[key] {
			return layout{}, fmt.Errorf("%w: %s is in it twice", ErrSpace, key)
		}
		seen[key] = true
		var at []float64
		for _, k := range l.course {
			at = append(at, octaves(p[k.Name], s.Points[s.Own][k.Name]))
		}
		key = p.Only(among(l.course)).Key()
		courses[key] = course{key, append(courses[key].points, i), at}
		l.cores[i] = 1
		if v, ok := p[tuning.Cores]; ok && v.IsNumber() {
			l.cores[i] = v.Float()
		}
	}
	l.courses = slices.SortedFunc(maps.Values(courses), func(a, b course) int {
		return cmp.Or(slices.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
	})
	for c, course := range l.courses {
		slices.SortFunc(course.points, l.compare)
		for _, p := range course.points {
			l.of[p] = c
		}
	}
	for p := range l.Points {
		var of [][]int
		for _, k := range l.system {
			of = append(of, l.line(p, k.Name))
		}
		l.lines = append(l.lines, of)
	}
	return l, nil
}

func among(knobs []Knob) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(knobs, func(k Knob) bool { return k.Name == name })
	}
}

func (l layout) compare(a, b int) int {
	for _, k := range l.system {
		v, w := l.Points[a][k.Name], l.Points[b][k.Name]
		if c := cmp.Or(cmp.Compare(v.Float(), w.Float()), cmp.Compare(v.String(), w.String())); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// line lists the points that differ from p in at most one system knob, ascending.
func (l layout) line(p int, knob string) []int {
	var out []int
	for _, q := range l.courses[l.of[p]].points {
		same := !slices.ContainsFunc(l.system, func(k Knob) bool {
			return k.Name != knob && l.Points[p][k.Name] != l.Points[q][k.Name]
		})
		if same {
			out = append(out, q)
		}
	}
	return out
}

func (l layout) apart(p, q int) float64 {
	sum := 0.0
	for _, k := range l.system {
		sum += math.Abs(octaves(l.Points[p][k.Name], l.Points[q][k.Name]))
	}
	return sum
}

// octaves is how many a number lies above another one; what else differs lies one.
func octaves(v, from tuning.Value) float64 {
	switch {
	case v == from:
		return 0
	case v.IsNumber() && from.IsNumber() && v.Float() > 0 && from.Float() > 0:
		return math.Log2(v.Float() / from.Float())
	}
	return 1
}
