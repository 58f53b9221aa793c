package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// probe opens each event once on the root of perf's hierarchy and closes it, and
// divides those that the kernel takes into groups.
func (c *Collector) probe(ctx context.Context) {
	root, err := c.hierarchy()
	cpu := 0
	if err == nil {
		var cpus []int
		if cpus, err = c.root.OnlineCPUs(); err == nil {
			cpu = cpus[0]
		}
	}
	// 1. Which events are there at all? The software events are opened for each job,
	// whatever the answer here: another cgroup may answer otherwise.
	events := append(Catalogue()[:always:always], c.chosen...)
	answers := map[string]error{}
	first := plan{name: software}
	var there []Event
	for i, e := range events {
		e, missing := resolve(c.root, e)
		if missing == nil {
			if missing = err; err == nil {
				missing = c.explain(e, c.ask(e, root.Dir, cpu))
			}
		}
		switch answers[e.Name] = missing; {
		case missing != nil && i >= always:
		case e.family == software:
			first.events = append(first.events, e)
		default:
			there = append(there, e)
		}
	}
	// 2. Which count together?
	c.plans = append([]plan{first}, c.learn(ctx, cpu, there, answers)...)
	// 3. Say so.
	groups := map[string]string{}
	for _, p := range c.plans {
		for _, e := range p.events {
			groups[e.Name] = p.name
		}
	}
	c.sources = nil
	for _, e := range events {
		s := collector.Source("perf/"+e.Name, "cgroup mode on "+root.Name, answers[e.Name])
		if s.Support == api.Supported {
			s.Group = groups[e.Name]
			s.Reason += ", group " + s.Group
		}
		c.sources = append(c.sources, s)
	}
}

// ask opens an event on a cgroup and closes it.
func (c *Collector) ask(e Event, dir string, cpu int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only used as a name
	return try(c.opener, []Attr{e.attr}, Where{Cgroup: f, CPU: cpu})
}

// explain says what an error of the kernel means for an event on this machine.
func (c *Collector) explain(e Event, err error) error {
	hardware := e.attr.Type == unix.PERF_TYPE_HARDWARE || e.attr.Type == unix.PERF_TYPE_HW_CACHE || e.attr.Type == unix.PERF_TYPE_RAW
	text := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, collector.ErrUnsupported), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		text = Denial(c.root, err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		text = "each event takes a descriptor for each CPU of each job; raise LimitNOFILE, or count fewer events"
	case hardware && !corePMU(c.root):
		text = "no PMU on this machine"
		if c.virtual() {
			text = "no PMU: this is a virtual machine, whose hypervisor shows none"
		}
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL) && e.family == software:
		text = "not a cgroup in perf's hierarchy"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		text = "this CPU or kernel has no such event"
	case errors.Is(err, unix.EINVAL):
		text = "this CPU or kernel does not count it for a cgroup"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// Denial says what is missing after the kernel refused with an error of permission.
//
// Linux has CAP_PERFMON since 5.8, and itself knows levels of kernel.perf_event_paranoid up
// to 2. Debian and Ubuntu ship kernels with another level above it, at which many of them
// require CAP_SYS_ADMIN.
func Denial(root hostfs.Root, refused error) string {
	const mainline = 2
	kernel := func(file string) string { return hostfs.Text(root.Proc("sys", "kernel", file)) }
	last, err := strconv.Atoi(kernel("cap_last_cap"))
	knows := err != nil || last >= unix.CAP_PERFMON
	held := root.Capabilities()
	perfmon, admin := knows && held&(1<<unix.CAP_PERFMON) != 0, held&(1<<unix.CAP_SYS_ADMIN) != 0
	level := cmp.Or(kernel("perf_event_paranoid"), "?")
	n, err := strconv.Atoi(level)
	switch {
	case perfmon && !admin && err == nil && n > mainline && errors.Is(refused, unix.EACCES):
		return "kernel.perf_event_paranoid is " + level + ": this distribution asks for CAP_SYS_ADMIN above 2"
	case perfmon || admin:
		name := "CAP_PERFMON"
		if !perfmon {
			name = "CAP_SYS_ADMIN"
		}
		return "although the exporter has " + name + " (kernel.perf_event_paranoid is " + level +
			"): a container's filter of system calls or a security module refuses"
	case !knows:
		return "needs CAP_SYS_ADMIN, since this kernel has no CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is " + level
	}
	return "needs CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is " + level
}

// virtual reports whether the machine says that a hypervisor runs it.
func (c *Collector) virtual() bool {
	data, _ := hostfs.Read(c.root.Proc("cpuinfo")) // unreadable: no flags
	flags := hostfs.Value(data, "flags")           // the first CPU's
	return slices.Contains(strings.Fields(flags), "hypervisor")
}

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
// count alone is in no group, and its answer says why.
func (c *Collector) learn(ctx context.Context, cpu int, events []Event, answers map[string]error) (plans []plan) {
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
			n, err := width(ctx, c.opener, cpu, mine)
			if n == 0 {
				answers[mine[0].Name] = c.explain(mine[0], err)
				mine = mine[1:]
				continue
			}
			plans = append(plans, plan{name: fmt.Sprintf("%s-%d", family, len(plans)-first+1), events: mine[:n:n]})
			mine = mine[n:]
		}
	}
	return plans
}

// width is how many of the first events count as one group; the error says why not
// even the first does.
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
