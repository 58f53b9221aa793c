package tuning_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// quantity is a text and what it means.
type quantity[T comparable] struct {
	name, text string
	want       T
	bad        bool
}

func parsed[T comparable](t *testing.T, parse func(string) (T, error), rows []quantity[T]) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(c.text)
			if c.bad != errors.Is(err, tuning.ErrUnit) || c.bad != (err != nil) || got != c.want {
				t.Errorf("%q is %v, %v; want %v, bad %v", c.text, got, err, c.want, c.bad)
			}
		})
	}
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	parsed(t, tuning.ParseBytes, []quantity[tuning.Bytes]{
		{"a plain number is bytes", "4096", 4096, false},
		{"binary units are powers of 1024", "256MiB", 256 << 20, false},
		{"one letter is binary, as schedulers mean it", "16G", 16 << 30, false},
		{"decimal units are powers of 1000", "1.5GB", 1_500_000_000, false},
		{"both spellings of the kilobyte", "2kB", 2000, false},
		{"both spellings of the kilobyte again", "2KB", 2000, false},
		{"the largest unit", "1TiB", 1 << 40, false},
		{"a space before the unit", " 1 KiB ", 1024, false},
		{"bytes named", "17B", 17, false},
		{"a fraction is rounded to whole bytes", "0.0003KiB", 0, false},
		{"an exponent", "1e3", 1000, false},
		{"every bit of a large whole number", "9007199254740993B", 9007199254740993, false},
		{"nothing", "", 0, true},
		{"a unit alone", "MiB", 0, true},
		{"a negative amount", "-1GiB", 0, true},
		{"a unit of energy", "2MJ", 0, true},
		{"a unit that is spelt wrong", "2mib", 0, true},
		{"a hexadecimal number", "0x10", 0, true},
		{"underscores", "1_000", 0, true},
		{"infinity", "inf", 0, true},
		{"not a number", "NaN", 0, true},
		{"more than any machine has", "9e18", 0, true},
		{"more than any machine has, whole", "8388608TiB", 0, true},
	})
}

func TestParseJoules(t *testing.T) {
	t.Parallel()
	parsed(t, tuning.ParseJoules, []quantity[tuning.Joules]{
		{"a plain number is joules", "250", 250, false},
		{"joules named", "250J", 250, false},
		{"kilojoules in both spellings", "1.5kJ", 1500, false},
		{"kilojoules in both spellings again", "1.5KJ", 1500, false},
		{"megajoules", "2MJ", 2e6, false},
		{"gigajoules", "3GJ", 3e9, false},
		{"watt-hours", "2Wh", 7200, false},
		{"kilowatt-hours", "0.5kWh", 1.8e6, false},
		{"megawatt-hours", "1MWh", 3.6e9, false},
		{"nothing", "", 0, true},
		{"a negative amount", "-2MJ", 0, true},
		{"a unit of memory", "2MiB", 0, true},
		{"power is not energy", "2W", 0, true},
		{"a product beyond all numbers", "1e300GJ", 0, true},
	})
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	parsed(t, tuning.ParseDuration, []quantity[time.Duration]{
		{"Go's own form", "1h30m", 90 * time.Minute, false},
		{"minutes beyond the hour", "90m", 90 * time.Minute, false},
		{"plain seconds", "60", time.Minute, false},
		{"a fraction of a second to the nanosecond", "0.29", 290 * time.Millisecond, false},
		{"days", "2d", 48 * time.Hour, false},
		{"half a day", "0.5d", 12 * time.Hour, false},
		{"nothing at all", "0", 0, false},
		{"nothing", "", 0, true},
		{"a unit alone", "d", 0, true},
		{"a negative time", "-5s", 0, true},
		{"a negative number of seconds", "-5", 0, true},
		{"a number far below zero", "-1e300", 0, true},
		{"longer than a time can be", "1e10", 0, true},
		{"longer than a time can be, in days", "60000d", 0, true},
		{"not a number", "NaN", 0, true},
		{"infinity", "Inf", 0, true},
		{"a hexadecimal number", "0x1p4", 0, true},
		{"a word", "soon", 0, true},
	})
}

func TestPrintedQuantities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, got, want string }{
		{"bytes in the largest unit that divides them", tuning.Bytes(4 << 30).String(), "4GiB"},
		{"bytes that no unit divides", tuning.Bytes(1025).String(), "1025B"},
		{"no bytes", tuning.Bytes(0).String(), "0B"},
		{"bytes for reading", tuning.Bytes(1503238554).Human(), "1.4 GiB"},
		{"few bytes for reading", tuning.Bytes(1023).Human(), "1023 B"},
		{"just below the next unit for reading", tuning.Bytes(1023 << 20).Human(), "1023 MiB"},
		{"a round thousand for reading", tuning.Bytes(1000 << 20).Human(), "1000 MiB"},
		{"beyond the last unit for reading", tuning.Bytes(5000 << 40).Human(), "5000 TiB"},
		{"joules in the largest unit", tuning.Joules(2.5e6).String(), "2.5MJ"},
		{"few joules", tuning.Joules(0.25).String(), "0.25J"},
		{"gigajoules", tuning.Joules(3e9).String(), "3GJ"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestPrintedQuantitiesReadBackEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := tuning.Bytes(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "bytes"))
		if got, err := tuning.ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("%d bytes print as %q and read back as %d (%v)", int64(b), b, int64(got), err)
		}
		j := tuning.Joules(rapid.Float64Range(0, 1e18).Draw(t, "joules"))
		if got, err := tuning.ParseJoules(j.String()); err != nil || got != j {
			t.Fatalf("%v joules print as %q and read back as %v (%v)", float64(j), j, float64(got), err)
		}
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "duration"))
		if got, err := tuning.ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("%d ns print as %q and read back as %d (%v)", int64(d), d, int64(got), err)
		}
	})
}

// Whatever a parser accepts prints as something that it accepts as the same.
func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"256MiB", "16G", "1.5GB", "-1", "0x1p4", "9e18", "9007199254740993B", " 1 K "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := tuning.ParseBytes(s)
		if err != nil {
			return
		}
		if v < 0 {
			t.Fatalf("%q is %d bytes", s, int64(v))
		}
		if back, err := tuning.ParseBytes(v.String()); err != nil || back != v {
			t.Fatalf("%q is %q, which reads back as %d (%v)", s, v, int64(back), err)
		}
	})
}

func FuzzParseJoules(f *testing.F) {
	for _, s := range []string{"2MJ", "0.5kWh", "1234.567", "1e300GJ", "-1", "5e-324J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := tuning.ParseJoules(s)
		if err != nil {
			return
		}
		if !(v >= 0) || math.IsInf(float64(v), 0) {
			t.Fatalf("%q is %g joules", s, float64(v))
		}
		if back, err := tuning.ParseJoules(v.String()); err != nil || back != v {
			t.Fatalf("%q is %q, which reads back as %g (%v)", s, v, float64(back), err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"60", "1h30m", "2d", "0.29", "-1e300", "1e10", "0x1p4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := tuning.ParseDuration(s)
		if err != nil {
			return
		}
		if v < 0 {
			t.Fatalf("%q is %s", s, v)
		}
		if back, err := tuning.ParseDuration(v.String()); err != nil || back != v {
			t.Fatalf("%q is %q, which reads back as %s (%v)", s, v, back, err)
		}
	})
}
