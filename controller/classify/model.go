package classify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

const version = 1

// ErrModel: a text is not a model of this version.
var ErrModel = errors.New("not a model of classes")

// Model is what one fit has learned. It is never changed after the fit, so that
// any number of goroutines may classify with it.
type Model struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`         // of this fit
	Generation int       `json:"generation"` // fits before it, and itself
	Issued     int       `json:"issued"`     // class numbers given out so far; none is used twice
	Confidence float64   `json:"confidence"`
	PriorRuns  float64   `json:"prior_runs"`
	Strata     []Stratum `json:"strata"` // sorted by key
}

// Key says which profiles may be compared with each other.
type Key struct {
	Schema   string `json:"schema"`
	Machine  string `json:"machine"`
	Settings string `json:"settings"` // cores and threads, as tuning.Settings.Key prints them
}

// KeyOf is the stratum that a profile belongs to.
func KeyOf(p tuning.Profile) Key {
	return Key{p.Schema, p.Machine, p.Settings.Shape().Key()}
}

// Stratum is the model of the profiles of one key.
type Stratum struct {
	Key        Key     `json:"key"`
	Axes       []Axis  `json:"axes"` // sorted by feature
	Groups     []Group `json:"groups"`
	Runs       int     `json:"runs"`       // that it was learned from
	Merge      float64 `json:"merge"`      // two single runs nearer than this were taken for one
	Silhouette float64 `json:"silhouette"` // of the runs in their classes, 0 with fewer than two classes

	// What is asked again and again of each class, see prepare.
	rows  [][]float64 // its centre
	free  []float64   // freedom of the features of its centre
	reach []float64   // radius for a profile that has all of them
}

// stratum finds the stratum of a key; a nil model has none.
func (m *Model) stratum(key Key) (Stratum, bool) {
	if m == nil {
		return Stratum{}, false
	}
	return tuning.First(m.Strata, func(s Stratum) bool { return s.Key == key })
}

// Changed returns the strata that only one of two models has, or that they have
// otherwise. Either may be nil.
func (m *Model) Changed(other *Model) []Key {
	var out []Key
	for _, pair := range [][2]*Model{{m, other}, {other, m}} {
		if pair[0] == nil {
			continue
		}
		for _, a := range pair[0].Strata {
			b, ok := pair[1].stratum(a.Key)
			if !ok || !slices.Equal(a.Axes, b.Axes) || !reflect.DeepEqual(a.Groups, b.Groups) {
				out = append(out, a.Key)
			}
		}
	}
	return out
}

// prepare computes what questions need of classes that were not asked yet.
func (m *Model) prepare() {
	for i := range m.Strata {
		s := &m.Strata[i]
		if s.rows != nil {
			continue
		}
		for _, g := range s.Groups {
			row := s.row(g.Center)
			free := s.compare(row, row).freedom
			s.rows, s.free, s.reach = append(s.rows, row), append(s.free, free), append(s.reach, radius(g, free))
		}
	}
}

// Group is one class.
type Group struct {
	ID     string             `json:"id"`
	Center map[string]float64 `json:"center"` // mean of its runs, unscaled; a feature that none has is missing
	Spread float64            `json:"spread"` // expected squared distance of its runs from their true centre, in units of noise
	Runs   []string           `json:"runs"`   // that it was learned from, the oldest first
	Kinds  []string           `json:"kinds"`  // of these runs, sorted
}

// Encode writes the model as JSON.
func (m *Model) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.ID, err)
	}
	return append(b, '\n'), nil
}

// Decode reads what Encode writes, and refuses with ErrModel what a fit cannot
// have made.
func Decode(b []byte) (*Model, error) {
	m := &Model{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows it", ErrModel)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m.prepare()
	return m, nil
}

func (m *Model) check() error {
	if m.Version != version {
		return fmt.Errorf("version %d, this program reads %d", m.Version, version)
	}
	if m.Confidence != confidence || m.PriorRuns != priorRuns || m.Issued < 0 || m.Generation < 1 {
		return fmt.Errorf("confidence %v, prior runs %v, issued %d, generation %d", m.Confidence, m.PriorRuns, m.Issued, m.Generation)
	}
	keys, ids := map[Key]bool{}, map[string]bool{}
	for _, s := range m.Strata {
		if keys[s.Key] {
			return fmt.Errorf("stratum %v stands twice", s.Key)
		}
		keys[s.Key] = true
		if err := s.check(ids, m.Issued); err != nil {
			return fmt.Errorf("stratum %v: %w", s.Key, err)
		}
	}
	return nil
}

func (s Stratum) check(ids map[string]bool, issued int) error {
	axes := map[string]bool{}
	for _, a := range s.Axes {
		if a.Feature == "" || axes[a.Feature] || !positive(a.Scale) || !positive(a.Weight) || !usable(a.Median) || a.Floor != 0 && !positive(a.Floor) {
			return fmt.Errorf("axis %+v", a)
		}
		axes[a.Feature] = true
	}
	for _, g := range s.Groups {
		number, err := strconv.Atoi(strings.TrimPrefix(g.ID, "c"))
		if err != nil || classID(number) != g.ID || number < 1 || number > issued || ids[g.ID] {
			return fmt.Errorf("class %q of %d", g.ID, issued)
		}
		ids[g.ID] = true
		if len(g.Center) == 0 || len(g.Runs) == 0 || !positive(g.Spread) {
			return fmt.Errorf("class %s: %d features, %d runs, spread %v", g.ID, len(g.Center), len(g.Runs), g.Spread)
		}
		for f, v := range g.Center {
			if !axes[f] || !usable(v) {
				return fmt.Errorf("class %s: feature %q is %v", g.ID, f, v)
			}
		}
	}
	return nil
}

func classID(number int) string { return "c" + strconv.Itoa(number) }

// name identifies a fit: which it is in the row, and by what it learned and knew before.
func (m *Model) name(fitted []Stratum) (string, error) {
	b, err := json.Marshal(fitted)
	if err != nil {
		return "", fmt.Errorf("model: %w", err)
	}
	h := fnv.New32a()
	_, _ = h.Write(append([]byte(m.ID), b...)) // documented never to fail
	return fmt.Sprintf("m%d-%08x", m.Generation, h.Sum32()), nil
}

// positive reports whether a number can be a scale, a weight or a variance; beyond
// these bounds, as beyond those of usable, results would overflow.
func positive(v float64) bool { return v >= 1e-9 && v <= 1e9 }

// usable reports whether a number can be a feature: they are logarithms and shares.
func usable(v float64) bool { return math.Abs(v) <= 1e9 }
