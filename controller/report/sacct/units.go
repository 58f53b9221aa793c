package sacct

import (
	"math"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// clock reads [days-][hours:]minutes:seconds[.fraction].
func clock(text string) (time.Duration, bool) {
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	if len(parts) < 2 || len(parts) > 3 || hasDays && len(parts) != 3 {
		return 0, false
	}
	whole, fraction, hasFraction := strings.Cut(parts[len(parts)-1], ".")
	parts[len(parts)-1] = whole
	total, ok := digits(days, 5)
	for i, p := range parts {
		n, good := digits(p, 5)
		ok = ok && good
		base := 60
		if i == 0 && len(parts) == 3 {
			base = 24
		} else if i == 0 {
			base = 24 * 60 // no hours
		}
		total = total*base + n
	}
	d := time.Duration(total) * time.Second
	if hasFraction {
		n, good := digits(fraction, 9)
		ok = ok && good
		d += time.Duration(float64(n) / math.Pow10(len(fraction)) * float64(time.Second))
	}
	return d, ok
}

func digits(s string, most int) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32) // it takes digits alone
	return int(n), err == nil && len(s) <= most
}

// amount reads what sacct prints of memory; without a unit it is in the given one; empty: bytes.
func amount(text, unit string) (tuning.Bytes, bool) {
	if peta, ok := strings.CutSuffix(text, "P"); ok {
		b, ok := amount(peta+"T", unit)
		if !ok || b > math.MaxInt64/2048 {
			return 0, false
		}
		return b * 1024, true
	}
	if text == "" || strings.ContainsAny(text, "iBb eE") || !strings.ContainsAny(text[len(text)-1:], "KMGT0123456789") {
		return 0, false
	}
	if last := text[len(text)-1]; last <= '9' {
		text += unit
	}
	b, err := tuning.ParseBytes(text)
	return b, err == nil
}
