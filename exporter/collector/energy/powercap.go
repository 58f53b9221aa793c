package energy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/exporter/hostfs"
)

// NewPowercap returns a meter of the package and DRAM zones of the powercap tree. The others
// are shown: core and uncore are part of package, psys is apart from all of them, and
// intel-rapl-mmio counts a package a second time, unless it alone counts it. The error says
// why there is none: collector.ErrUnsupported, or fs.ErrPermission if the counters are closed.
func NewPowercap(root hostfs.Root, model Model) (*Measured, error) {
	top := root.Sys("class", "powercap")
	ids, err := names(top, "no powercap tree")
	if err != nil {
		return nil, err
	}
	var zones []*counter
	for _, id := range ids {
		if z := newZone(top, id); z != nil {
			zones = append(zones, z)
		}
	}
	for _, z := range zones {
		z.pkg = socket(zones, z)
	}
	whole, counted := packageScope(root), map[string]bool{}
	for _, z := range zones {
		kind, key := kindOf(z), fmt.Sprint(kindOf(z), z.pkg)
		if isMMIO(z) && slices.ContainsFunc(zones, func(o *counter) bool {
			return !isMMIO(o) && kindOf(o) == kind && (o.pkg == z.pkg || o.pkg == Whole || z.pkg == Whole)
		}) {
			continue // of two interfaces to one counter the first counts
		}
		if whole && z.pkg != Whole && counted[key] {
			continue // the counter of the package, at another die
		}
		z.component, counted[key] = kind, true
	}
	return measured(RAPL, zones, model, "no package zone below "+top)
}

const (
	rapl, mmio = "intel-rapl:", "intel-rapl-mmio:"
	// packageName begins the name of a socket's zone: package-1, or package-1-die-0 for a
	// socket with several dies.
	packageName = "package-"
)

// newZone returns nil for what is not a zone.
func newZone(top, id string) *counter {
	name := hostfs.Text(filepath.Join(top, id, "name"))
	if name == "" || !strings.HasPrefix(id, rapl) && !strings.HasPrefix(id, mmio) {
		return nil
	}
	w := &wrapping{}
	if data, err := hostfs.Read(filepath.Join(top, id, "max_energy_range_uj")); err == nil {
		w.end, _ = hostfs.Number(data) // wrapping copes without
	}
	return &counter{
		id: id, name: name, read: fromFile(filepath.Join(top, id, "energy_uj"), hostfs.Number),
		grew: w.grew, every: w.every(),
	}
}

// socket is the number in the zone's name, or in that of the zone around it.
func socket(zones []*counter, z *counter) int {
	name := z.name
	if !strings.HasPrefix(name, packageName) {
		outer := z.id[:max(strings.LastIndexByte(z.id, ':'), 0)]
		i := slices.IndexFunc(zones, func(o *counter) bool { return o.id == outer })
		if i < 0 {
			return Whole
		}
		name = zones[i].name
	}
	text, ok := strings.CutPrefix(name, packageName)
	text, _, _ = strings.Cut(text, "-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 0 {
		return Whole
	}
	return n
}

func kindOf(z *counter) Component {
	switch {
	case strings.HasPrefix(z.name, packageName):
		return Package
	case z.name == "dram":
		return DRAM
	default:
		return ""
	}
}

// isMMIO reports whether a zone belongs to the second interface.
func isMMIO(z *counter) bool { return strings.HasPrefix(z.id, mmio) }

// packageScope reports whether RAPL counts by package even if the kernel reads it once per
// die. Intel's processors with several dies count by die. AMD's and Hygon's have one counter
// for the package, which some kernels (6.9 and a few later ones) show once per group of
// cores, as if it were a die: the sum would be several times the truth.
func packageScope(root hostfs.Root) bool {
	data, _ := hostfs.Read(root.Proc("cpuinfo")) // unreadable: of no vendor
	vendor := hostfs.Value(data, "vendor_id")
	return vendor == "AuthenticAMD" || vendor == "HygonGenuine"
}
