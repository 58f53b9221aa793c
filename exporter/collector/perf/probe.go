package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

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
	answers := map[string]error{}
	ask := func(e resolved) error {
		if err != nil {
			return err
		}
		return c.explain(e, c.ask(e, root.Dir, cpu))
	}
	// 1. Which events are there at all? The software events are opened for each job,
	// whatever is said of them here: another cgroup may answer otherwise.
	first := plan{name: software}
	for _, e := range always() {
		r := resolved{Event: e, attr: e.attr, family: software}
		first.events = append(first.events, r)
		answers[e.Name] = ask(r)
	}
	var there []resolved
	for _, e := range c.chosen {
		r, missing := resolve(c.root, e)
		if missing == nil {
			missing = ask(r)
		}
		switch answers[e.Name] = missing; {
		case missing != nil:
		case r.family == software:
			first.events = append(first.events, r)
		default:
			there = append(there, r)
		}
	}
	// 2. Which count together?
	more, why := learn(ctx, c.opener, cpu, there)
	for _, e := range there {
		if why[e.Name] != nil {
			answers[e.Name] = c.explain(e, why[e.Name])
		}
	}
	c.plans = append([]plan{first}, more...)
	// 3. What is to be said of it.
	groups := map[string]string{}
	for _, p := range c.plans {
		for _, e := range p.events {
			groups[e.Name] = p.name
		}
	}
	c.sources = nil
	for _, e := range append(always(), c.chosen...) {
		s := collector.Source("perf/"+e.Name, "cgroup mode on "+root.Name, answers[e.Name])
		if s.Support == api.Supported {
			s.Group = groups[e.Name]
			s.Reason += ", group " + s.Group
		}
		c.sources = append(c.sources, s)
	}
}

// ask opens an event on a cgroup and closes it.
func (c *Collector) ask(e resolved, dir string, cpu int) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only used as a name
	return try(c.opener, []Attr{e.attr}, Where{Cgroup: f, CPU: cpu})
}

// explain says what an error of the kernel means for an event on this machine.
func (c *Collector) explain(e resolved, err error) error {
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

// Denial says what is missing to be let, where the kernel refused with an error of
// permission.
func Denial(root hostfs.Root, refused error) string {
	level := "?"
	if data, err := hostfs.Read(root.Proc("sys", "kernel", "perf_event_paranoid")); err == nil {
		level = strings.TrimSpace(string(data))
	}
	held := root.Capabilities()
	perfmon, admin := held&(1<<unix.CAP_PERFMON) != 0, held&(1<<unix.CAP_SYS_ADMIN) != 0
	if !knowsPerfmon(root) {
		perfmon = false
	}
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
	case !knowsPerfmon(root):
		return "needs CAP_SYS_ADMIN, since this kernel has no CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is " + level
	}
	return "needs CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is " + level
}

// mainline is the highest level of kernel.perf_event_paranoid that the kernel itself knows.
// Debian and Ubuntu ship kernels that know another one above it, at which many of them
// require CAP_SYS_ADMIN, whatever else a process may.
const mainline = 2

// knowsPerfmon reports whether the kernel has CAP_PERFMON, which came with Linux 5.8.
func knowsPerfmon(root hostfs.Root) bool {
	data, err := hostfs.Read(root.Proc("sys", "kernel", "cap_last_cap"))
	if err != nil {
		return true
	}
	last, err := hostfs.Number(data)
	return err != nil || last >= unix.CAP_PERFMON
}

// virtual reports whether the machine says that a hypervisor runs it.
func (c *Collector) virtual() bool {
	data, err := hostfs.Read(c.root.Proc("cpuinfo"))
	if err != nil {
		return false
	}
	flags, _ := hostfs.Value(data, "flags") // the first CPU's
	return slices.Contains(strings.Fields(flags), "hypervisor")
}
