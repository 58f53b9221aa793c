package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"pitchpipe/controller/tuning"
)

// Columns aligns the cells of rows.
func Columns(rows ...[]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a Builder takes everything
	return b.String()
}

// List aligns the cells of each item of a list below a head.
func List[T any](head []string, items []T, cells func(T) []string) string {
	return Columns(append([][]string{head}, tuning.Each(items, cells)...)...)
}

// Count is a number of what a noun names.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Duration prints a time for reading: "250 ms", "4.2 s", "3 min 20 s", "2 h 5 min".
func Duration(seconds float64) string {
	d := time.Duration(math.Abs(seconds) * float64(time.Second))
	sign := ""
	if seconds < 0 {
		sign = "-"
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", sign, d.Milliseconds())
	case d < 100*time.Second:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%s%d min%s", sign, int(d.Minutes()), rest(int(d.Seconds())%60, "s"))
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%s%d h%s", sign, int(d.Hours()), rest(int(d.Minutes())%60, "min"))
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%s%d days%s", sign, int(d.Hours())/24, rest(int(d.Hours())%24, "h"))
}

func rest(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %d %s", n, unit)
}

// Joules prints joules for reading: three digits and a unit.
func Joules(j float64) string {
	for _, u := range []struct {
		name   string
		factor float64
	}{{"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}} {
		if math.Abs(j) >= u.factor {
			return digits(j/u.factor) + " " + u.name
		}
	}
	return digits(j) + " J"
}

func digits(v float64) string {
	decimals := 2
	for limit := 10.0; decimals > 0 && math.Abs(v) >= limit; limit *= 10 {
		decimals--
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
