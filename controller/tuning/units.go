package tuning

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrUnit is what every unit parser wraps: the text is not a quantity of the
// asked kind.
var ErrUnit = errors.New("not a quantity")

// Joules is an amount of energy.
type Joules float64

// Watts is power.
type Watts float64

// Bytes is an amount of memory or data.
type Bytes int64

type unit struct {
	name   string
	factor float64
}

// Longer names stand first, so that "MiB" is not read as "B".
func byteUnits() []unit {
	return []unit{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"K", 1 << 10},
		{"M", 1 << 20},
		{"G", 1 << 30},
		{"T", 1 << 40},
		{"B", 1},
		{"", 1},
	}
}

func energyUnits() []unit {
	return []unit{
		{"MWh", 3.6e9},
		{"kWh", 3.6e6},
		{"Wh", 3600},
		{"GJ", 1e9},
		{"MJ", 1e6},
		{"kJ", 1e3},
		{"KJ", 1e3},
		{"J", 1},
		{"", 1},
	}
}

// ParseBytes reads "256MiB", "4GiB", "16G" (binary, as schedulers mean it),
// "1.5GB" (decimal) or a plain number of bytes.
func ParseBytes(s string) (Bytes, error) {
	if b, ok := wholeBytes(strings.TrimSpace(s)); ok {
		return b, nil
	}
	v, err := parseQuantity(s, byteUnits())
	if err != nil {
		return 0, fmt.Errorf("%w: want an amount of memory such as 256MiB or 4GiB", err)
	}
	if v > maxBytes {
		return 0, fmt.Errorf("%w: %q is more memory than any machine has", ErrUnit, s)
	}
	return Bytes(math.Round(v)), nil
}

const maxBytes = math.MaxInt64 / 2

// wholeBytes reads whole numbers without a detour through float64, which holds
// 53 bits only.
func wholeBytes(text string) (Bytes, bool) {
	for _, u := range byteUnits() {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err == nil && n >= 0 && n <= maxBytes/int64(u.factor) {
			return Bytes(n * int64(u.factor)), true
		}
	}
	return 0, false
}

// ParseJoules reads "2MJ", "500kJ", "0.5kWh" or a plain number of joules.
func ParseJoules(s string) (Joules, error) {
	v, err := parseQuantity(s, energyUnits())
	if err != nil {
		return 0, fmt.Errorf("%w: want an amount of energy such as 2MJ or 0.5kWh", err)
	}
	return Joules(v), nil
}

func parseQuantity(s string, units []unit) (float64, error) {
	text := strings.TrimSpace(s)
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.ContainsAny(number, "xXpP_") {
			continue
		}
		if v < 0 {
			return 0, fmt.Errorf("%w: %q is negative", ErrUnit, s)
		}
		if math.IsInf(v*u.factor, 0) {
			return 0, fmt.Errorf("%w: %q is too large", ErrUnit, s)
		}
		return v * u.factor, nil
	}
	return 0, fmt.Errorf("%w: %q", ErrUnit, s)
}

// ParseDuration reads Go durations ("90m", "1h30m"), days ("2d"), and plain
// seconds ("60").
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	d, err := time.ParseDuration(text)
	if err != nil {
		number, isDays := strings.CutSuffix(text, "d")
		v, ferr := strconv.ParseFloat(number, 64)
		if ferr != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.ContainsAny(number, "xXpP_") {
			return 0, fmt.Errorf("%w: %q: want a time such as 60s, 90m or 4h", ErrUnit, s)
		}
		scale := float64(time.Second)
		if isDays {
			scale = 24 * float64(time.Hour)
		}
		if v*scale > math.MaxInt64/2 {
			return 0, fmt.Errorf("%w: %q is longer than 146 years", ErrUnit, s)
		}
		d = time.Duration(math.Round(max(v, -1) * scale)) // -1 is as negative as any other
	}
	if d < 0 {
		return 0, fmt.Errorf("%w: %q is negative", ErrUnit, s)
	}
	return d, nil
}

// String prints the largest binary unit that divides the amount evenly, so that
// what is printed can be written back into a stanza.
func (b Bytes) String() string {
	for _, u := range []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n := int64(u.factor); b != 0 && int64(b)%n == 0 {
			return strconv.FormatInt(int64(b)/n, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Human prints the amount rounded for reading, "1.4 GiB": three digits, and all
// of those before the point.
func (b Bytes) Human() string {
	for _, u := range []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if float64(b) >= u.factor {
			v := float64(b) / u.factor
			if v >= 999.5 { // 'g' would print 1e+03
				return strconv.FormatFloat(v, 'f', 0, 64) + " " + u.name
			}
			return strconv.FormatFloat(v, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// String prints an amount that ParseJoules reads back, exactly: in the largest
// unit that loses nothing.
func (j Joules) String() string {
	for _, u := range []unit{{"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}} {
		v := float64(j) / u.factor
		if math.Abs(v) >= 1 && v*u.factor == float64(j) {
			return strconv.FormatFloat(v, 'g', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(float64(j), 'g', -1, 64) + "J"
}

// String prints watts with one decimal.
func (w Watts) String() string { return strconv.FormatFloat(float64(w), 'f', 1, 64) + " W" }
