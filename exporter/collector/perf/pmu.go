package perf

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	perfutils "github.com/hodgesds/perf-utils"
	"golang.org/x/sys/unix"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// ErrTerms means that a PMU describes an event in a way that cannot be understood.
var ErrTerms = errors.New("cannot be understood")

// resolve finds how this machine numbers an event.
func resolve(root hostfs.Root, e Event) (Event, error) {
	switch {
	case e.family == tracepoint:
		system, name, _ := strings.Cut(e.Name, ":")
		attr, err := perfutils.TracepointEventAttr(system, name)
		if err != nil {
			return e, fmt.Errorf("%w: %w", collector.ErrUnsupported, err)
		}
		e.attr = Attr{Type: attr.Type, Config: attr.Config}
	case e.pmu != "":
		attr, err := PMUEvent(root, e.pmu, strings.Trim(e.Name[len(e.pmu):], "/"))
		if err != nil {
			return e, err
		}
		e.attr, e.family = attr, e.pmu
		if attr.Type == unix.PERF_TYPE_RAW {
			e.family = cpuPMU
		}
	}
	return e, nil
}

// PMUDir is the folder in which the kernel describes a PMU.
func PMUDir(root hostfs.Root, pmu string) string {
	return root.Sys("bus", "event_source", "devices", pmu)
}

// corePMU reports whether the machine has counters of its cores at all.
func corePMU(root hostfs.Root) bool {
	entries, err := os.ReadDir(PMUDir(root, ""))
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		name := e.Name()
		return name == cpuPMU || strings.HasPrefix(name, "cpu_") || strings.HasPrefix(name, "armv") || strings.HasPrefix(name, "apple_")
	})
}

// PMUEvent reads how a PMU numbers one of its events.
func PMUEvent(root hostfs.Root, pmu, event string) (Attr, error) {
	dir := PMUDir(root, pmu)
	kind, err := hostfs.Read(filepath.Join(dir, "type"))
	if err != nil {
		return Attr{}, fmt.Errorf("%w: no PMU %s: %w", collector.ErrUnsupported, pmu, err)
	}
	number, err := hostfs.Number(kind)
	if err != nil || number > 1<<31 {
		return Attr{}, fmt.Errorf("%w: type of PMU %s is %.20q", collector.ErrUnsupported, pmu, kind)
	}
	text, err := hostfs.Read(filepath.Join(dir, "events", event))
	if err != nil {
		return Attr{}, fmt.Errorf("%w: the PMU %s of this machine has no such event", collector.ErrUnsupported, pmu)
	}
	attr, err := ParseTerms(strings.TrimSpace(string(text)), func(term string) (string, error) {
		data, err := hostfs.Read(filepath.Join(dir, "format", term))
		return strings.TrimSpace(string(data)), err
	})
	if err != nil {
		return Attr{}, fmt.Errorf("%w: %s/%s/: %w", collector.ErrUnsupported, pmu, event, err)
	}
	attr.Type = uint32(number)
	return attr, nil
}

// ParseTerms reads an event as a PMU's folder describes it, such as
// "event=0xd0,umask=0x81,cmask=1", into the fields of an Attr; format says where a
// term's bits go, such as "config:0-7,32-35". A term without a value is 1. Every error
// is ErrTerms.
func ParseTerms(text string, format func(term string) (string, error)) (Attr, error) {
	var out Attr
	for part := range strings.SplitSeq(text, ",") {
		term, value, given := strings.Cut(strings.TrimSpace(part), "=")
		if !regexp.MustCompile(`^[A-Za-z0-9_]+$`).MatchString(term) {
			return Attr{}, fmt.Errorf("%w: term %.40q", ErrTerms, part)
		}
		v := uint64(1)
		if given {
			var err error
			if v, err = strconv.ParseUint(value, 0, 64); err != nil {
				return Attr{}, fmt.Errorf("%w: value of %.40q", ErrTerms, part)
			}
		}
		spec, err := format(term)
		if err != nil {
			// Some kernels describe events by whole fields.
			spec = term + ":0-63"
		}
		if err := out.put(spec, v); err != nil {
			return Attr{}, fmt.Errorf("%.40q: %w", part, err)
		}
	}
	return out, nil
}

// put spreads v over the bits that a format names, the lowest first.
func (a *Attr) put(format string, v uint64) error {
	name, ranges, ok := strings.Cut(format, ":")
	fields := map[string]*uint64{"config": &a.Config, "config1": &a.Config1, "config2": &a.Config2}
	field := fields[name]
	if !ok || field == nil {
		return fmt.Errorf("%w: format %.40q", ErrTerms, format)
	}
	where, err := hostfs.CPUList(ranges) // bits are listed as CPUs are
	if err != nil || len(where) == 0 || where[len(where)-1] > 63 {
		return fmt.Errorf("%w: format %.40q", ErrTerms, format)
	}
	if bits.Len64(v) > len(where) {
		return fmt.Errorf("%w: %#x does not fit %.40q", ErrTerms, v, format)
	}
	for i, bit := range where {
		*field |= (v >> i & 1) << bit
	}
	return nil
}
