package gpu

import (
	"math"
	"slices"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/gpu/card"
)

// Account is what one GPU has used since the book was opened.
type Account struct {
	card.Device         // as the last reading had it
	Used        float64 // joules, of Covered
	// Covered are the seconds that Used is the energy of; less than the time since the
	// first reading if readings were missing.
	Covered     float64
	BusySeconds float64 // the time for which a kernel ran, by the same readings

	told   card.Device // the last that showed what the GPU takes
	since  time.Time   // when it did
	looked time.Time   // when one last showed how busy it is
	gone   int         // readings since the last that it was in
	users  []int       // processes that were on it then, sorted
	mixed  bool        // others were on it between since and then
}

// Charge is what one process was charged with since the book was opened: the joules and
// busy seconds of the GPUs that it is on.
type Charge struct {
	Joules, BusySeconds float64
	Memory              float64 // now; NaN = unknown
	Devices             int     // that it is on now
	Unknown             bool    // one of them shows neither energy nor power now
	Veiled              bool    // one of them does not show how busy it is
	Partial             bool    // Joules lack what one took in a time of which nothing is known
	Gapped              bool    // BusySeconds lack such a time

	gone int // readings since it was on one
}

// remember is for how many readings the book keeps a process that is on no GPU any more, so
// that a slower reader still learns what it used last; and misses a GPU that is not there
// any more.
const remember = 60

// Book adds up readings. It belongs to one goroutine.
type Book struct {
	at       time.Time
	accounts map[string]*Account
	charges  map[int]*Charge
	order    []string
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{accounts: map[string]*Account{}, charges: map[int]*Charge{}}
}

// Add takes the next reading, unless it is not younger than the last.
func (b *Book) Add(r card.Reading) {
	if !r.At.After(b.at) && !b.at.IsZero() {
		return
	}
	b.at, b.order = r.At, b.order[:0]
	for _, a := range b.accounts {
		a.gone++
	}
	for pid, c := range b.charges {
		c.Memory, c.Devices, c.Unknown, c.Veiled = 0, 0, false, false
		if c.gone++; c.gone > remember {
			delete(b.charges, pid)
		}
	}
	for _, d := range r.Devices {
		b.order = append(b.order, d.UUID)
		a, now := b.accounts[d.UUID], users(d)
		used, busy, partial, gapped := 0.0, 0.0, false, false
		if a == nil {
			a = &Account{}
			b.accounts[d.UUID] = a
		} else {
			a.mixed = a.mixed || !slices.Equal(a.users, now)
			used, partial = a.took(d, r.At)
			busy, gapped = a.worked(d, r.At)
		}
		before := a.users
		a.Device, a.gone, a.users = d, 0, now
		if d.Joules != nil || d.Watts != nil {
			a.told, a.since, a.mixed = d, r.At, false
		}
		if d.Busy != nil {
			a.looked = r.At
		}
		b.charge(a, used, busy)
		hidden := slices.ContainsFunc(instances(d), func(i card.Instance) bool { return i.Processes == nil })
		for _, pid := range append(before, a.users...) {
			if c := b.charges[pid]; c != nil {
				c.Partial, c.Gapped = c.Partial || partial || hidden, c.Gapped || gapped || hidden
			}
		}
	}
	for _, a := range b.accounts {
		for _, pid := range a.users {
			if c := b.charges[pid]; c != nil && a.missed() { // what it does for them is unknown now
				c.Unknown, c.Veiled = true, true
			}
		}
	}
}

// missed reports whether the GPU is not there, and was not long ago.
func (a *Account) missed() bool { return a.gone > 0 && a.gone <= remember }

// all is what every GPU used that ever was there, and whether one is missed.
func (b *Book) all() (joules float64, lost bool) {
	for _, a := range b.accounts {
		joules += a.Used
		lost = lost || a.missed()
	}
	return joules, lost
}

// took adds the joules since the last reading that showed some and returns those that the
// processes are charged with; partial means that they lack some for good: nothing is known of
// them, or in a long gap not whose they are. A counter that fell began again from 0 with the driver.
func (a *Account) took(d card.Device, at time.Time) (joules float64, partial bool) {
	since := at.Sub(a.since)
	switch {
	case d.Joules == nil && d.Watts == nil: // a later reading may show what passed
		return 0, false
	case d.Joules != nil && a.told.Joules != nil:
		if joules = *d.Joules - *a.told.Joules; joules < 0 {
			joules = *d.Joules
		}
	case since <= collector.Bridge && d.Watts != nil && a.told.Watts != nil:
		joules = (*d.Watts + *a.told.Watts) / 2 * since.Seconds()
	default:
		return 0, true
	}
	a.Used += joules
	a.Covered += since.Seconds()
	if a.mixed && since > collector.Bridge {
		return 0, true
	}
	return joules, false
}

// worked does the same with the busy seconds.
func (a *Account) worked(d card.Device, at time.Time) (busy float64, gapped bool) {
	since := at.Sub(a.looked)
	if d.Busy == nil || since > collector.Bridge {
		return 0, d.Busy != nil
	}
	busy = *d.Busy * since.Seconds()
	a.BusySeconds += busy
	return busy, false
}

// instances are the parts of a GPU that have processes of their own: itself where it is not split.
func instances(d card.Device) []card.Instance {
	if len(d.Instances) > 0 {
		return d.Instances
	}
	return []card.Instance{{Processes: d.Processes}}
}

// users are the processes on a GPU, sorted.
func users(d card.Device) (pids []int) {
	for _, i := range instances(d) {
		if i.Processes != nil {
			for _, p := range *i.Processes {
				pids = append(pids, p.Pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// charge gives each process on a GPU its share: of a split GPU by the multiprocessors of the
// instances that have processes, then equally.
func (b *Book) charge(a *Account, joules, busy float64) {
	all := 0.0
	weight := func(i card.Instance) float64 {
		if i.Processes == nil || len(*i.Processes) == 0 {
			return 0
		}
		return float64(max(i.SMs, 1))
	}
	for _, i := range instances(a.Device) {
		all += weight(i)
	}
	for _, i := range instances(a.Device) {
		if weight(i) == 0 {
			continue
		}
		for _, p := range *i.Processes {
			c := b.charges[p.Pid]
			if c == nil {
				c = &Charge{}
				b.charges[p.Pid] = c
			}
			share := weight(i) / all / float64(len(*i.Processes))
			c.Joules += joules * share
			c.BusySeconds += busy * share
			c.gone = 0
			c.Devices++
			c.Unknown = c.Unknown || a.Joules == nil && a.Watts == nil
			c.Veiled = c.Veiled || a.Busy == nil
			memory := math.NaN()
			if p.Memory != nil {
				memory = float64(*p.Memory)
			}
			c.Memory += memory
		}
	}
}

// Accounts are those of the GPUs of the last reading, in its order.
func (b *Book) Accounts() []Account {
	out := make([]Account, 0, len(b.order))
	for _, id := range b.order {
		out = append(out, *b.accounts[id])
	}
	return out
}

// Charges are those of the processes that one of the last readings saw.
func (b *Book) Charges() map[int]Charge {
	out := make(map[int]Charge, len(b.charges))
	for pid, c := range b.charges {
		out[pid] = *c
	}
	return out
}
