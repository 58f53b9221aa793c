package gpu

import (
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// Account is what one GPU has used since the book was opened.
type Account struct {
	card.Device         // as the last reading had it
	Used        float64 // joules, of Covered
	// Covered are the seconds that Used is the energy of; less than the time since the
	// first reading where readings were missing.
	Covered     float64
	BusySeconds float64 // the time for which a kernel ran, by the same readings
	Counted     bool    // by the driver's counter, else integrated from its power

	at    time.Time // of the last reading that it was in
	gone  int       // readings since
	users []int     // processes that were on it then
}

// Charge is what one process was charged with since the book was opened: the joules and
// busy seconds of the GPUs that it is on.
type Charge struct {
	Joules, BusySeconds float64
	Memory              int64 // now
	Devices             int   // that it is on now
	Unknown             bool  // one of them shows neither energy nor power now

	gone int // readings since it was on one
}

// remember is for how many readings a process that is on no GPU any more is kept, so
// that whoever looks less often still learns what it used last; and a GPU that is not there
// any more is missed.
const remember = 60

// Book adds up readings. It belongs to one goroutine.
type Book struct {
	bridge   time.Duration
	at       time.Time
	accounts map[string]*Account
	charges  map[int]*Charge
	order    []string
}

// NewBook returns an empty book; power is integrated between readings that are at most
// bridge apart.
func NewBook(bridge time.Duration) *Book {
	return &Book{bridge: bridge, accounts: map[string]*Account{}, charges: map[int]*Charge{}}
}

// Add takes the next reading. One that is not younger than the last is dropped.
func (b *Book) Add(r card.Reading) {
	if !r.At.After(b.at) && !b.at.IsZero() {
		return
	}
	b.at = r.At
	b.order = b.order[:0]
	present, there := map[int]bool{}, map[string]bool{}
	for _, d := range r.Devices {
		b.order = append(b.order, d.UUID)
		there[d.UUID] = true
		a := b.accounts[d.UUID]
		var used, busy float64
		if a == nil {
			a = &Account{}
			b.accounts[d.UUID] = a
		} else {
			used, busy = a.step(d, r.At.Sub(a.at), b.bridge)
		}
		a.Device, a.at, a.gone = d, r.At, 0
		a.users = b.charge(d, used, busy, present)
	}
	for pid, c := range b.charges {
		if present[pid] {
			continue
		}
		c.Memory, c.Devices, c.Unknown = 0, 0, false
		if c.gone++; c.gone > remember {
			delete(b.charges, pid)
		}
	}
	for id, a := range b.accounts {
		if there[id] {
			continue
		}
		if a.gone++; a.missed() {
			for _, pid := range a.users { // what it takes for them is unknown now
				if c := b.charges[pid]; c != nil {
					c.Unknown = true
				}
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

// step adds what passed between two readings and returns it.
func (a *Account) step(d card.Device, apart, bridge time.Duration) (joules, busy float64) {
	near := apart <= bridge
	switch {
	case d.Joules != nil && a.Joules != nil:
		if joules = *d.Joules - *a.Joules; joules < 0 {
			joules = *d.Joules
		}
		a.Counted, a.Covered = true, a.Covered+apart.Seconds()
	case near && d.Watts != nil && a.Watts != nil:
		joules = (*d.Watts + *a.Watts) / 2 * apart.Seconds()
		a.Covered += apart.Seconds()
	}
	if near && d.Busy != nil {
		busy = *d.Busy * apart.Seconds()
	}
	a.Used += joules
	a.BusySeconds += busy
	return joules, busy
}

// charge gives each process on a GPU its share, and returns them.
func (b *Book) charge(d card.Device, joules, busy float64, present map[int]bool) (pids []int) {
	one := func(ps []card.Process, share float64) {
		for _, p := range ps {
			pids = append(pids, p.Pid)
			c := b.charges[p.Pid]
			if c == nil {
				c = &Charge{}
				b.charges[p.Pid] = c
			}
			if !present[p.Pid] {
				present[p.Pid], c.Memory, c.Devices, c.gone, c.Unknown = true, 0, 0, 0, false
			}
			c.Unknown = c.Unknown || d.Joules == nil && d.Watts == nil
			c.Joules += joules * share / float64(len(ps))
			c.BusySeconds += busy * share / float64(len(ps))
			c.Devices++
			if p.Memory != nil {
				c.Memory += *p.Memory
			}
		}
	}
	if len(d.Instances) == 0 {
		if d.Processes != nil {
			one(*d.Processes, 1)
		}
		return pids
	}
	all := 0
	for _, i := range d.Instances {
		if i.Processes != nil && len(*i.Processes) > 0 {
			all += max(i.SMs, 1)
		}
	}
	for _, i := range d.Instances {
		if i.Processes != nil && len(*i.Processes) > 0 {
			one(*i.Processes, float64(max(i.SMs, 1))/float64(all))
		}
	}
	return pids
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
