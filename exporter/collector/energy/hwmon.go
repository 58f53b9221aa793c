package energy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/hostfs"
)

// ErrSensor means that a rule about sensors cannot be read.
var ErrSensor = errors.New("sensor rule")

// Sensors are rules about the board's sensors of power or energy, in the form
// CHIP[/LABEL]=node|package|package:N|ignore. The first that fits applies. In CHIP and LABEL *
// stands for anything, and {n} in LABEL is the number of the socket. LABEL is the sensor's
// label, or the first part of its file's name, such as power1.
type Sensors []SensorRule

// SensorRule is one of Sensors.
type SensorRule struct {
	Chip, Label string
	As          Component // empty = ignored
	Package     int       // Whole: {n} in Label has it
}

// ParseSensors reads rules and puts those of KnownSensors after them. Every error is ErrSensor.
func ParseSensors(rules ...string) (Sensors, error) {
	for _, k := range KnownSensors() {
		rules = append(rules, k.Rule)
	}
	var out Sensors
	for _, text := range rules {
		where, as, ok := strings.Cut(text, "=")
		r := SensorRule{Package: Whole}
		r.Chip, r.Label, _ = strings.Cut(strings.TrimSpace(where), "/")
		kind, number, numbered := strings.Cut(strings.TrimSpace(as), ":")
		switch kind {
		case string(Node), string(Package):
			r.As = Component(kind)
		case "ignore":
		default:
			ok = false
		}
		if numbered {
			n, err := strconv.ParseUint(number, 10, 16)
			r.Package, ok = int(n), ok && err == nil && r.As == Package
		}
		if !ok || r.Chip == "" {
			return nil, fmt.Errorf("%w %q: want CHIP[/LABEL]=node, package, package:N or ignore", ErrSensor, text)
		}
		out = append(out, r)
	}
	return out, nil
}

// judge returns what a sensor counts, and its socket.
func (s Sensors) judge(chip, label, file string) (Component, int) {
	for _, r := range s {
		if _, ok := fits(r.Chip, chip); !ok {
			continue
		}
		n, ok := fits(r.Label, label)
		if !ok {
			n, ok = fits(r.Label, file)
		}
		if r.Label != "" && !ok {
			continue
		}
		if r.Package != Whole {
			n = r.Package
		}
		return r.As, n
	}
	return "", Whole
}

// fits reports whether a name matches a pattern, and the number at its {n}.
func fits(pattern, name string) (number int, ok bool) {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\{n\}`, `(\d{1,4})`), `\*`, `.*`)
	m := regexp.MustCompile(`(?i)^` + text + `$`).FindStringSubmatch(name)
	if len(m) > 1 {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n, true
		}
	}
	return Whole, m != nil
}

// Known is a rule about well-known sensors.
type Known struct{ Rule, What string }

// KnownSensors are those that measure a socket or the machine. All others are ignored: rails
// of regulators, power supplies (there may be several), disks, and graphics cards, which have
// their own source.
func KnownSensors() []Known {
	return []Known{
		{"amd_energy/Esocket{n}=package", "energy of AMD EPYC's sockets"},
		{"power_meter/Grace Power Socket {n}=package", "NVIDIA Grace: cores and memory of a socket"},
		{"power_meter/Module Power Socket *=ignore", "the same with its graphics card"},
		{"power_meter/CPU Power Socket *=ignore", "a part of it"},
		{"power_meter/SysIO Power Socket *=ignore", "a part of it"},
		{"power_meter=node", "ACPI's meter of the machine, graphics cards included"},
		{"occ/system=node", "POWER9 and POWER10: the machine"},
		{"ibmpowernv/System*=node", "POWER8: the machine"},
		{"fam15h_power=package", "AMD before Zen"},
		{"apm_xgene/CPU power=package", "X-Gene"},
	}
}

// NewHWMon returns a meter of the board's sensors that count. If one counts the whole machine,
// only that counts.
func NewHWMon(root hostfs.Root, sensors Sensors, model Model) (*Measured, error) {
	top := root.Sys("class", "hwmon")
	chips, err := names(top, "no sensors")
	if err != nil {
		return nil, err
	}
	var found []*counter
	for _, chip := range chips {
		found = append(found, sensorsOf(filepath.Join(top, chip), sensors)...)
	}
	if slices.ContainsFunc(found, func(c *counter) bool { return c.component == Node }) {
		for _, c := range found {
			if c.component != Node {
				c.component = "" // a part of it
			}
		}
	}
	return measured(HWMon, found, model, "no sensor below "+top+" is known to count a socket or the machine; see --energy.hwmon")
}

// sensorsOf lists a chip's sensors that a rule lets count, in the order of their ids. It reads
// average power rather than the power of a moment.
func sensorsOf(dir string, rules Sensors) []*counter {
	line := func(file string) string { return hostfs.Text(filepath.Join(dir, file)) }
	chip := line("name")
	entries, err := names(dir, "")
	if err != nil || chip == "" {
		return nil
	}
	pattern := regexp.MustCompile(`^((?:energy|power)\d{1,4})_(input|average)$`)
	files := map[string]string{} // by sensor, such as power1
	for _, name := range entries {
		if m := pattern.FindStringSubmatch(name); m != nil && (files[m[1]] == "" || m[2] == "average") {
			files[m[1]] = name
		}
	}
	var out []*counter
	for _, sensor := range slices.Sorted(maps.Keys(files)) {
		label := cmp.Or(line(sensor+"_label"), line(sensor+"_oem_info"), sensor)
		c := &counter{
			id: filepath.Base(dir) + ":" + sensor, name: chip, read: fromFile(filepath.Join(dir, files[sensor]), hostfs.Number),
			grew: integrated, every: time.Second, // how far power is integrated at once
		}
		if strings.HasPrefix(sensor, "energy") {
			c.grew, c.every = growing(1e-6), 0
		}
		if label != sensor {
			c.name += " " + label
		}
		if c.component, c.pkg = rules.judge(chip, label, sensor); c.component != "" {
			out = append(out, c)
		}
	}
	return out
}
