package energy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/hostfs"
)

// counter is one counter of a meter.
type counter struct {
	id, name  string
	component Component // empty = only shown
	pkg       int
	total     float64 // joules since the meter was opened; never falls
}

// reader keeps counters up to date.
type reader interface {
	// read brings the counters that can be read up to date; elapsed is the time since
	// the last call. An error concerns counters that count and stand still, or have no
	// first reading yet: what they miss comes with the next reading.
	read(ctx context.Context, elapsed time.Duration) error
	counters() []counter
	// within is how often it has to be read; 0 = at any time.
	within() time.Duration
}

// file is a counter that a file of the kernel shows.
type file struct {
	counter
	path  string
	parse func(data []byte) (uint64, error)
	sum   accumulator
}

// accumulator makes a sum that never falls of what a counter shows.
type accumulator interface {
	// pass says that time went by, whether the counter is then read or not.
	pass(elapsed time.Duration)
	// add takes a reading and returns the joules since the first.
	add(now uint64) float64
	// within is how often it needs a reading; 0 = at any time.
	within() time.Duration
}

// files is a reader of counters in files.
type files struct {
	of  string // the source, for errors
	all []*file
}

func (f *file) now() (uint64, error) {
	data, err := hostfs.Read(f.path)
	if err != nil {
		return 0, err
	}
	return f.parse(data)
}

func (s files) read(_ context.Context, elapsed time.Duration) error {
	var errs []error
	for _, f := range s.all {
		f.sum.pass(elapsed)
		now, err := f.now()
		if err == nil {
			f.total = f.sum.add(now)
		} else if f.component != "" {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", s.of, err)
	}
	return nil
}

func (s files) counters() []counter {
	out := make([]counter, 0, len(s.all))
	for _, f := range s.all {
		out = append(out, f.counter)
	}
	return out
}

func (s files) within() time.Duration {
	shortest := time.Duration(0)
	for _, f := range s.all {
		if w := f.sum.within(); f.component != "" && w > 0 && (shortest == 0 || w < shortest) {
			shortest = w
		}
	}
	return shortest
}

// growing is a counter of joules or microjoules without an end, which begins anew from 0
// where what keeps it was restarted.
type growing struct {
	unit  float64 // joules of one count
	last  uint64
	seen  bool
	total float64
}

func (g *growing) pass(time.Duration)    {}
func (g *growing) within() time.Duration { return 0 }

func (g *growing) add(now uint64) float64 {
	switch {
	case !g.seen:
	case now >= g.last:
		g.total += float64(now-g.last) * g.unit
	default:
		g.total += float64(now) * g.unit
	}
	g.last, g.seen = now, true
	return g.total
}

// Measured is a meter that reads counters. It belongs to one goroutine.
type Measured struct {
	source  string
	reader  reader
	cards   *cards // nil: no counter counts the graphics cards too
	idle    map[string]*idle
	settled map[string]float64 // joules that Settle last saw; nil = it was not called
	model   Model
	unread  []string // parts that could not be read when the meter was opened, and why
}

// errTwice means that two counters have one name, so that one would be taken for the other.
var errTwice = errors.New("two counters of one name")

var _ Meter = (*Measured)(nil)

// measured builds a meter. The model's idle power is shared evenly by the packages, or
// is that of the whole machine, until something better is known; of DRAM nothing is.
// Counters are distinguished by their ids: two of one id are an error.
func measured(source string, r reader, model Model) (*Measured, error) {
	m := &Measured{source: source, reader: r, model: model, idle: map[string]*idle{}}
	var parts []string
	seen := map[string]bool{}
	for _, c := range r.counters() {
		if seen[c.id] {
			return nil, fmt.Errorf("%s: %w: %s", source, errTwice, c.id)
		}
		seen[c.id] = true
		if c.component == "" {
			continue
		}
		m.idle[c.id] = &idle{}
		if c.component != DRAM {
			parts = append(parts, c.id)
		}
	}
	for _, id := range parts {
		m.idle[id].model = model.Idle / float64(len(parts))
	}
	return m, nil
}

// Source names what is read.
func (m *Measured) Source() string { return m.source }

// Base is the machine where that is what is counted, else its packages.
func (m *Measured) Base() Component {
	for _, c := range m.reader.counters() {
		if c.component == Node {
			return Node
		}
	}
	return Package
}

// Within is a quarter of the shortest time in which a counter begins anew.
func (m *Measured) Within() time.Duration { return m.reader.within() }

// Read reads the counters. Where one that counts cannot be read that is an error.
func (m *Measured) Read(ctx context.Context, elapsed time.Duration) error {
	return m.reader.read(ctx, elapsed)
}

// IdleWatts is the sum over what counts, with the weakest basis of a part.
func (m *Measured) IdleWatts() (watts float64, basis string) {
	for _, c := range m.reader.counters() {
		i := m.idle[c.id]
		if i == nil || !i.known && i.model == 0 { // of which nothing is taken
			continue
		}
		w, b := i.now()
		watts, basis = watts+w, weaker(basis, b)
	}
	return watts, cmp.Or(basis, basisModelled)
}

// Settle returns what the counters grew by.
func (m *Measured) Settle(a Activity) (Split, bool) {
	first := m.settled == nil
	if !first && a.Elapsed <= 0 {
		return Split{}, false
	}
	if !first {
		m.cards.begin(a)
	}
	now := map[string]float64{}
	var parts []Part
	for _, c := range m.reader.counters() {
		now[c.id] = c.total
		if c.component == "" || first {
			continue
		}
		p := Part{Component: c.component, Package: c.pkg, Total: c.total - m.settled[c.id]}
		i := m.idle[c.id]
		m.learn(i, &p, a)
		watts, _ := i.now()
		p.Idle = min(watts*a.Elapsed.Seconds(), p.Total)
		parts = append(parts, p)
	}
	m.settled = now
	if first {
		return Split{}, false
	}
	s := split(parts)
	if s.WithGPUs = m.cards != nil; s.WithGPUs {
		m.cards.end()
	}
	return s, true
}

// learn takes the graphics cards out of a part that counts them, and what is left of it as
// what the part took.
func (m *Measured) learn(i *idle, p *Part, a Activity) {
	if m.cards != nil && p.Component == Node {
		p.Total -= m.cards.take(p.Total)
		if !m.cards.rest() {
			i.stir()
			return
		}
	}
	i.add(p.Total, a.share(a.of(p.Package)), a)
}

// Zones lists what each counter counted.
func (m *Measured) Zones() []Zone {
	cs := m.reader.counters()
	out := make([]Zone, 0, len(cs))
	for _, c := range cs {
		out = append(out, Zone{ID: c.id, Name: c.name, Counted: c.component != "", Joules: c.total})
	}
	return out
}

// Calibrations lists what is known of the parts without work.
func (m *Measured) Calibrations() []Calibration {
	var out []Calibration
	for _, c := range m.reader.counters() {
		if i := m.idle[c.id]; i != nil && i.known {
			out = append(out, Calibration{ID: c.id, Watts: i.watts, At: i.at})
		}
	}
	return out
}

// Recall takes what an earlier exporter measured of the same counters.
func (m *Measured) Recall(known []Calibration) {
	for _, k := range known {
		if i := m.idle[k.ID]; i != nil && !i.known && k.Watts > 0 {
			i.known, i.watts, i.at = true, k.Watts, k.At
		}
	}
}

// means names what counts, and behind a semicolon what is only shown.
func (m *Measured) means() string {
	var counted, shown []string
	for _, c := range m.reader.counters() {
		if c.component != "" {
			counted = append(counted, c.name)
		} else {
			shown = append(shown, c.name)
		}
	}
	slices.Sort(counted)
	slices.Sort(shown)
	text := strings.Join(counted, " ")
	if len(shown) > 0 {
		text += "; shown: " + strings.Join(shown, " ")
	}
	if len(m.unread) > 0 {
		text += "; missing: " + strings.Join(m.unread, ", ")
	}
	return text
}

// parts counts the components of packages that count.
func (m *Measured) parts() int {
	n := 0
	for _, c := range m.reader.counters() {
		if c.component != "" {
			n++
		}
	}
	return n
}

// Close lets go of what the reader holds.
func (m *Measured) Close() error {
	if c, ok := m.reader.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}
