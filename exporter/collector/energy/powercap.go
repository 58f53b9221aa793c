package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// NewPowercap returns a meter of the package and DRAM zones of the powercap tree below
// root. It shows the others: core and uncore are part of package, psys is beside all of
// them, and intel-rapl-mmio counts a package a second time, unless it is the only one to.
// A zone of DRAM that cannot be read is named as missing, and the rest is counted: without
// a package the sum would be that of another machine, so that one is an error. The error
// says why there is none: collector.ErrUnsupported, or fs.ErrPermission where
// the counters are closed. model gives the idle power until it is measured.
func NewPowercap(root hostfs.Root, model Model) (*Measured, error) {
	zones, unread, err := zonesBelow(root.Sys("class", "powercap"), packageScope(root))
	if err != nil {
		return nil, err
	}
	m, err := measured(RAPL, files{"powercap", zones}, model)
	if err == nil {
		m.unread = unread
	}
	return m, err
}

// powercap are the zones in the order of their directories.
type powercap []*file

const mmio = "intel-rapl-mmio:"

// zonesBelow finds the zones, and says which parts cannot be read; whole says that those of
// all dies of a package show the one counter of the package.
func zonesBelow(top string, whole bool) (zones powercap, unread []string, err error) {
	entries, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: no powercap tree at %s", collector.ErrUnsupported, top)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("powercap: %w", err)
	}
	for _, e := range entries {
		if z, ok := newZone(top, e.Name()); ok {
			zones = append(zones, z)
		}
	}
	for _, z := range zones {
		z.pkg = zones.packageOf(z)
	}
	counted := map[string]bool{} // packages, where each has one counter
	for _, z := range zones {
		if z.component = zones.counts(z); z.component == "" {
			continue
		}
		one := fmt.Sprint(z.component, z.pkg)
		if whole && z.pkg != Whole && counted[one] {
			z.component = ""
			continue
		}
		counted[one] = true
		_, err := z.now()
		switch {
		case err == nil:
		case z.component == DRAM:
			z.component = ""
			unread = append(unread, fmt.Sprintf("%s of package %d: %v", z.name, z.pkg, err))
		default:
			return nil, nil, fmt.Errorf("powercap: %w", err)
		}
	}
	if !slices.ContainsFunc(zones, func(z *file) bool { return z.component == Package }) {
		return nil, nil, fmt.Errorf("%w: no package zone below %s", collector.ErrUnsupported, top)
	}
	return zones, unread, nil
}

func newZone(top, id string) (*file, bool) {
	if !strings.HasPrefix(id, "intel-rapl:") && !strings.HasPrefix(id, mmio) {
		return nil, false
	}
	dir := filepath.Join(top, id)
	data, err := hostfs.Read(filepath.Join(dir, "name"))
	if err != nil {
		return nil, false // a zone without a name is none
	}
	end := uint64(0) // one whose range is unreadable is still good: see wrapping
	if data, err := hostfs.Read(filepath.Join(dir, "max_energy_range_uj")); err == nil {
		if n, err := hostfs.Number(data); err == nil {
			end = n
		}
	}
	return &file{
		counter: counter{id: id, name: strings.TrimSpace(string(data))}, path: filepath.Join(dir, "energy_uj"),
		parse: hostfs.Number, sum: &wrapping{end: end},
	}, true
}

// packageName is how the kernel calls the zone of a socket: package-1, or package-1-die-0
// where a socket has several.
const packageName = "package-"

// packageOf is the number of the zone's socket: its own, or that of the zone around it.
func (p powercap) packageOf(z *file) int {
	name := z.name
	if !strings.HasPrefix(name, packageName) {
		around := z.id[:max(strings.LastIndexByte(z.id, ':'), 0)]
		i := slices.IndexFunc(p, func(o *file) bool { return o.id == around })
		if i < 0 {
			return Whole
		}
		name = p[i].name
	}
	text, ok := strings.CutPrefix(name, packageName)
	text, _, _ = strings.Cut(text, "-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 0 {
		return Whole
	}
	return n
}

func kindOf(z *file) Component {
	switch {
	case strings.HasPrefix(z.name, packageName):
		return Package
	case z.name == "dram":
		return DRAM
	default:
		return ""
	}
}

// counts is the component that the zone is counted as. Of two interfaces to one counter
// the first counts.
func (p powercap) counts(z *file) Component {
	kind := kindOf(z)
	if kind == "" || isMMIO(z) && slices.ContainsFunc(p, func(o *file) bool {
		return !isMMIO(o) && kindOf(o) == kind && (o.pkg == z.pkg || o.pkg == Whole || z.pkg == Whole)
	}) {
		return ""
	}
	return kind
}

// isMMIO reports whether a zone is of the second interface.
func isMMIO(z *file) bool { return strings.HasPrefix(z.id, mmio) }
