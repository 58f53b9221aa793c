package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/exporter/collector"
)

// errNeverRan means that the kernel opened a group and never let it count.
var errNeverRan = errors.New("never gets to count")

// How long a group may wait for its first turn: the kernel rotates groups every few
// milliseconds, and others may count too.
const (
	firstTurn = 200 * time.Millisecond
	lookEvery = time.Millisecond
)

// plan is a group as it will be opened on each CPU of each job.
type plan struct {
	name   string
	events []Event
}

func (p plan) attrs() []Attr {
	out := make([]Attr, len(p.events))
	for i, e := range p.events {
		out[i] = e.attr
	}
	return out
}

// learn divides events into groups that the kernel can count, in their order: each
// group takes events of its family until one does not fit. An event that does not even
// count alone is in no group, and why says it.
func learn(ctx context.Context, opener Opener, cpu int, events []Event) (plans []plan, why map[string]error) {
	why = map[string]error{}
	var families []string
	for _, e := range events {
		if !slices.Contains(families, e.family) {
			families = append(families, e.family)
		}
	}
	for _, family := range families {
		mine := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.family != family })
		first := len(plans)
		for len(mine) > 0 {
			n, err := width(ctx, opener, cpu, mine)
			if n == 0 {
				why[mine[0].Name] = err
				mine = mine[1:]
				continue
			}
			plans = append(plans, plan{name: fmt.Sprintf("%s-%d", family, len(plans)-first+1), events: mine[:n:n]})
			mine = mine[n:]
		}
	}
	return plans, why
}

// width is how many of the first events count as one group; where not even the first
// does the error says why.
func width(ctx context.Context, opener Opener, cpu int, events []Event) (int, error) {
	// The kernel refuses what can never fit.
	n := 0
	var refused error
	for n < len(events) {
		if refused = try(opener, plan{events: events[:n+1]}.attrs(), Where{CPU: cpu}); refused != nil {
			break
		}
		n++
	}
	// It does not see what others hold, such as a watchdog: such a group never runs.
	for ; n > 0; n-- {
		err := runs(ctx, opener, cpu, plan{events: events[:n]}.attrs())
		if err == nil {
			return n, nil
		}
		refused = err
	}
	return 0, refused
}

// try opens a group and closes it.
func try(opener Opener, attrs []Attr, on Where) error {
	g, err := opener.Open(attrs, on)
	if err != nil {
		return err
	}
	return g.Close()
}

// runs opens a group for everything on the CPU, idle time too, and waits until it counts.
func runs(ctx context.Context, opener Opener, cpu int, attrs []Attr) (err error) {
	g, err := opener.Open(attrs, Where{CPU: cpu})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var c Counts
	for waited := 0; ; waited++ {
		if err := g.Read(&c); err != nil {
			return err
		}
		switch {
		case c.Running > 0:
			return nil
		// Both clocks: on a busy machine a look may come late, and the group with it.
		case c.Enabled > uint64(firstTurn) && waited > int(firstTurn/lookEvery)/4:
			return fmt.Errorf("%w: %w: its counter is held by others, such as a watchdog (kernel.nmi_watchdog)", collector.ErrUnsupported, errNeverRan)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
