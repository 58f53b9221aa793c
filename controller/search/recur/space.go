package recur

import (
	"cmp"
	"errors"
	"fmt"
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

// Space holds every setting that may be chosen. Not every combination of values need be
// in it.
type Space struct {
	Knobs  []Knob            // in the order in which they are searched; others are the same at all points or follow one of these
	Points []tuning.Settings // unique
	Own    int               // which of Points the owner asked for
}

// layout is a space by courses.
type layout struct {
	Space
	system, course []Knob
	courses        []course
	of             []int     // the course of each point
	cores          []float64 // of each point, 1 where no knob is called cores
	lines          [][][]int // of each point by system knob, see line
}

// course is what the points of one choice of the knobs that are not system knobs have in
// common.
type course struct {
	points []int     // ascending by system knobs
	at     []float64 // coordinates, see coordinates
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
	byKey, seen := map[string]int{}, map[string]bool{}
	for i, p := range s.Points {
		key := p.Only(l.knows).Key()
		if seen[key] {
			return layout{}, fmt.Errorf("%w: %s is in it twice", ErrSpace, key)
		}
		seen[key] = true
		key = p.Only(l.isCourse).Key()
		c, ok := byKey[key]
		if !ok {
			c, byKey[key] = len(l.courses), len(l.courses)
			l.courses = append(l.courses, course{at: l.coordinates(p)})
		}
		l.of[i] = c
		l.courses[c].points = append(l.courses[c].points, i)
		l.cores[i] = 1
		if v, ok := p[tuning.Cores]; ok && v.IsNumber() {
			l.cores[i] = v.Float()
		}
	}
	for _, c := range l.courses {
		slices.SortFunc(c.points, l.compare)
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

func (l layout) knows(name string) bool {
	return slices.ContainsFunc(l.Knobs, func(k Knob) bool { return k.Name == name })
}

func (l layout) isCourse(name string) bool {
	return slices.ContainsFunc(l.course, func(k Knob) bool { return k.Name == name })
}

// coordinates places a course against the owner's: a positive number as octaves above
// the owner's, what else differs as one.
func (l layout) coordinates(p tuning.Settings) []float64 {
	own := l.Points[l.Own]
	at := make([]float64, len(l.course))
	for i, k := range l.course {
		v, o := p[k.Name], own[k.Name]
		switch {
		case v == o:
		case v.IsNumber() && o.IsNumber() && v.Float() > 0 && o.Float() > 0:
			at[i] = math.Log2(v.Float() / o.Float())
		default:
			at[i] = 1
		}
	}
	return at
}

// compare orders points by their system knobs, numbers ascending.
func (l layout) compare(a, b int) int {
	for _, k := range l.system {
		v, w := l.Points[a][k.Name], l.Points[b][k.Name]
		if c := cmp.Or(cmp.Compare(v.Float(), w.Float()), cmp.Compare(v.String(), w.String())); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// line lists the points that differ from p in one system knob alone, p among them,
// ascending.
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

// twin is the point of a course with the system settings nearest to those of p.
func (l layout) twin(p, course int) int {
	best, least := l.courses[course].points[0], math.Inf(1)
	for _, q := range l.courses[course].points {
		d := 0.0
		for _, k := range l.system {
			v, w := l.Points[p][k.Name], l.Points[q][k.Name]
			switch {
			case v == w:
			case v.IsNumber() && w.IsNumber():
				d += math.Abs(v.Float()-w.Float()) / max(math.Abs(v.Float()), math.Abs(w.Float()))
			default:
				d++
			}
		}
		if d < least {
			best, least = q, d
		}
	}
	return best
}
