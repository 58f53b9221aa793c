package energy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/collector"
)

// Measured is a meter that reads counters. It belongs to one goroutine.
type Measured struct {
	source   string
	counters []*counter
	counted  []*counter // those of them that have a component
	cards    *cards     // nil = no counter includes the graphics cards
	settled  bool       // Settle was called
	unread   []string   // parts that could not be read at the start, and why
}

// errTwice means that two counters have one name: one would be taken for the other.
var errTwice = errors.New("two counters of one name")

// measured builds a meter. The model's idle power is split evenly over the packages until
// something better is known; of DRAM nothing is assumed. DRAM that cannot be read is named as
// missing. A package that cannot be read is an error: without it the sum would be that of
// another machine. none says what is missing if no package and no machine is counted.
func measured(source string, counters []*counter, model Model, none string) (*Measured, error) {
	m := &Measured{source: source, counters: counters}
	seen := map[string]bool{}
	var base []*counter // what counts besides DRAM
	for _, c := range counters {
		if seen[c.id] {
			return nil, fmt.Errorf("%s: %w: %s", source, errTwice, c.id)
		}
		seen[c.id] = true
		if c.component == "" {
			continue
		}
		_, err := c.read()
		if err != nil && c.component == DRAM {
			c.component = ""
			m.unread = append(m.unread, fmt.Sprintf("%s of package %d: %v", c.name, c.pkg, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		m.counted = append(m.counted, c)
		if c.component != DRAM {
			base = append(base, c)
		}
	}
	if len(base) == 0 {
		return nil, fmt.Errorf("%w: %s", collector.ErrUnsupported, none)
	}
	for _, c := range base {
		c.idle.model = model.Idle / float64(len(base))
		if c.component == Node {
			m.cards = &cards{} // what counts the whole machine counts its cards too
		}
	}
	return m, nil
}

// Source names what is read.
func (m *Measured) Source() string { return m.source }

func (m *Measured) has(what Component) bool {
	return slices.ContainsFunc(m.counted, func(c *counter) bool { return c.component == what })
}

// Base is the machine if that is what is counted, else its packages.
func (m *Measured) Base() Component {
	if m.has(Node) {
		return Node
	}
	return Package
}

// Within is a quarter of the shortest time in which a counter wraps.
func (m *Measured) Within() time.Duration {
	shortest := time.Duration(0)
	for _, c := range m.counted {
		if c.every > 0 && (shortest == 0 || c.every < shortest) {
			shortest = c.every
		}
	}
	return shortest
}

// Read reads the counters. An error concerns those that count.
func (m *Measured) Read(_ context.Context, elapsed time.Duration) error {
	var errs []error
	for _, c := range m.counters {
		if err := c.update(elapsed); c.component != "" {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", m.source, err)
	}
	return nil
}

// IdleWatts is the sum over what counts, with the weakest basis of a part.
func (m *Measured) IdleWatts() (watts float64, basis string) {
	known := map[string]bool{}
	for _, c := range m.counted {
		if !c.idle.known && c.idle.model == 0 { // nothing is assumed of it
			continue
		}
		w, b := c.idle.now()
		watts += w
		known[b] = true
	}
	for _, weakest := range []string{basisModelled, basisObserved, basisCalibrated} {
		if known[weakest] {
			return watts, weakest
		}
	}
	return watts, basisModelled // nothing is assumed of any
}

// Settle returns what the counters grew by.
func (m *Measured) Settle(a Activity) (Split, bool) {
	if !m.settled {
		m.settled = true
		for _, c := range m.counted {
			c.settled, c.lacks = c.joules, false
		}
		return Split{}, false
	}
	if a.Elapsed <= 0 {
		return Split{}, false
	}
	lacks := slices.ContainsFunc(m.counted, func(c *counter) bool { return c.lacks })
	if lacks {
		a.GPUs, a.Guessed = 0, true // what the cards took in that time the meter will not show
	}
	if m.cards != nil {
		m.cards.begin(a)
	}
	var parts []Part
	for _, c := range m.counted {
		p := Part{Component: c.component, Package: c.pkg, Total: c.joules - c.settled}
		m.learn(c, &p, a)
		c.settled, c.lacks = c.joules, false
		watts, _ := c.idle.now()
		p.Idle = min(watts*a.Elapsed.Seconds(), p.Total)
		parts = append(parts, p)
	}
	s := split(parts)
	s.Lacks = lacks
	if s.WithGPUs = m.cards != nil; s.WithGPUs {
		m.cards.end()
	}
	return s, true
}

// learn takes the graphics cards out of a part that includes them, and learns from the rest.
func (m *Measured) learn(c *counter, p *Part, a Activity) {
	withCards := m.cards != nil && p.Component == Node
	if withCards {
		p.Total -= m.cards.take(p.Total)
	}
	if c.lacks || withCards && !m.cards.rest() {
		c.idle.stir()
		return
	}
	c.idle.add(p.Total, a.share(a.of(p.Package)), a)
}

// Zones lists what each counter counted.
func (m *Measured) Zones() []Zone {
	out := make([]Zone, 0, len(m.counters))
	for _, c := range m.counters {
		out = append(out, Zone{ID: c.id, Name: c.name, Counted: c.component != "", Joules: c.joules})
	}
	return out
}

// Calibrations lists what was measured of the parts without work.
func (m *Measured) Calibrations() []Calibration {
	var out []Calibration
	for _, c := range m.counters {
		if c.idle.known {
			out = append(out, Calibration{ID: c.id, Watts: c.idle.watts, At: c.idle.at})
		}
	}
	return out
}

// Recall takes what an earlier exporter measured of the same counters.
func (m *Measured) Recall(known []Calibration) {
	for _, c := range m.counted {
		i := slices.IndexFunc(known, func(k Calibration) bool { return k.ID == c.id && k.Watts > 0 })
		if i >= 0 && !c.idle.known {
			c.idle.known, c.idle.watts, c.idle.at = true, known[i].Watts, known[i].At
		}
	}
}

// means names what counts, and after a semicolon what is only shown.
func (m *Measured) means() string {
	parts := map[bool][]string{} // of those that count, and of those that are only shown
	for _, c := range m.counters {
		parts[c.component != ""] = append(parts[c.component != ""], c.name)
	}
	slices.Sort(parts[true])
	slices.Sort(parts[false])
	text := strings.Join(parts[true], " ")
	if shown := parts[false]; len(shown) > 0 {
		text += "; shown: " + strings.Join(shown, " ")
	}
	if len(m.unread) > 0 {
		text += "; missing: " + strings.Join(m.unread, ", ")
	}
	return text
}

// Close closes what the meter holds open.
func (m *Measured) Close() error {
	var errs []error
	for _, c := range m.counters {
		if c.close != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}
