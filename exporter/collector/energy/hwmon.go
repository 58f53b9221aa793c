package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// ErrSensor means that a rule about sensors cannot be read.
var ErrSensor = errors.New("sensor rule")

// Sensors says of each power or energy sensor of the board as what it counts: rules of
// the form CHIP[/LABEL]=node|package|package:N|ignore, of which the first that fits
// holds. CHIP and LABEL may end in *; LABEL is the sensor's label, or its file's first
// part, such as power1. {n} in LABEL is the number of the socket.
type Sensors []SensorRule

// SensorRule is one of Sensors.
type SensorRule struct {
	Chip, Label string
	As          Component // empty = ignored
	Package     int       // Whole: as {n} in Label says
}

// ParseSensors reads rules. Every error is ErrSensor.
func ParseSensors(rules []string) (Sensors, error) {
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

// judge reports as what a sensor counts.
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

// fits reports whether a name is as a pattern says, and the number at its {n}.
func fits(pattern, name string) (number int, ok bool) {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\{n\}`, `(\d{1,4})`), `\*`, `.*`)
	m := regexp.MustCompile(`(?i)^` + text + `$`).FindStringSubmatch(name)
	if m == nil {
		return Whole, false
	}
	if len(m) > 1 {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n, true
		}
	}
	return Whole, true
}

// NewHWMon returns a meter of the board's sensors that count. Where one counts the whole
// machine the packages are shown only. Power is integrated over the time between two
// readings; energy is counted by the sensor itself.
func NewHWMon(root hostfs.Root, sensors Sensors, model Model) (*Measured, error) {
	top := root.Sys("class", "hwmon")
	chips, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no sensors at %s", collector.ErrUnsupported, top)
	}
	if err != nil {
		return nil, fmt.Errorf("hwmon: %w", err)
	}
	var found []*file
	for _, chip := range chips {
		found = append(found, sensorsOf(filepath.Join(top, chip.Name()), chip.Name(), sensors)...)
	}
	whole := slices.ContainsFunc(found, func(s *file) bool { return s.component == Node })
	counted := 0
	for _, s := range found {
		if whole && s.component != Node {
			s.component = ""
		}
		if s.component == "" {
			continue
		}
		counted++
		if _, err := s.now(); err != nil {
			return nil, fmt.Errorf("hwmon: %w", err)
		}
	}
	if counted == 0 {
		return nil, fmt.Errorf("%w: no sensor below %s is known to count a socket or the machine; see --energy.hwmon", collector.ErrUnsupported, top)
	}
	m, err := measured(HWMon, files{"hwmon", found}, model)
	if err == nil && whole {
		m.cards = &cards{}
	}
	return m, err
}

// integrated makes joules of the power that a sensor shows, in microwatts.
type integrated struct {
	watts float64 // at the last reading
	seen  bool
	since time.Duration
	total float64
}

func (i *integrated) pass(elapsed time.Duration) { i.since += elapsed }

// within is how far power is integrated at once.
func (i *integrated) within() time.Duration { return time.Second }

func (i *integrated) add(now uint64) float64 {
	watts := float64(now) / 1e6
	if i.seen {
		i.total += (i.watts + watts) / 2 * i.since.Seconds()
	}
	i.watts, i.seen, i.since = watts, true, 0
	return i.total
}

// sensorsOf lists a chip's sensors that fit a rule, at most one for each number: energy
// before average power before the power of a moment.
func sensorsOf(dir, id string, rules Sensors) []*file {
	data, err := hostfs.Read(filepath.Join(dir, "name"))
	if err != nil {
		return nil
	}
	chip := strings.TrimSpace(string(data))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	pattern := regexp.MustCompile(`^(energy|power)(\d{1,4})_(input|average)$`)
	best := map[string]string{} // number of the sensor → file
	for _, e := range entries {
		m := pattern.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		key := m[1] + m[2]
		if was := best[key]; was == "" || m[3] == "average" {
			best[key] = e.Name()
		}
	}
	var out []*file
	for key, name := range best {
		s := &file{path: filepath.Join(dir, name), parse: hostfs.Number, sum: &integrated{}}
		if strings.HasPrefix(name, "energy") {
			s.sum = &growing{unit: 1e-6}
		}
		label := key
		for _, text := range []string{key + "_label", key + "_oem_info"} {
			if data, err := hostfs.Read(filepath.Join(dir, text)); err == nil && strings.TrimSpace(string(data)) != "" {
				label = strings.TrimSpace(string(data))
				break
			}
		}
		s.component, s.pkg = rules.judge(chip, label, key)
		if s.component == "" {
			continue
		}
		s.id, s.name = id+":"+key, chip
		if label != key {
			s.name = chip + " " + label
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *file) int { return strings.Compare(a.id, b.id) })
	return out
}
