package progress

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
)

// ErrPattern means that the pattern cannot name an epoch.
var ErrPattern = errors.New("progress pattern needs a named group (?P<epoch>…)")

// Matcher turns lines into reports.
type Matcher struct {
	pattern *regexp.Regexp
	total   int // where no line says it
}

// NewMatcher checks that the pattern has a group named epoch; total is what a
// report says where the line does not, 0 = unknown.
func NewMatcher(pattern *regexp.Regexp, total int) (*Matcher, error) {
	if pattern == nil || pattern.SubexpIndex("epoch") < 0 {
		return nil, fmt.Errorf("%w: %v", ErrPattern, pattern)
	}
	return &Matcher{pattern, max(total, 0)}, nil
}

// Match reads one line. It matches only where the epoch is a positive integer; a
// loss or quality that is absent, not a number, or not finite stays nil, and so
// does no harm to the mark. Report.Time is left to the caller.
func (m *Matcher) Match(line string) (api.Report, bool) {
	groups := m.pattern.FindStringSubmatch(line)
	if groups == nil {
		return api.Report{}, false
	}
	group := func(name string) string {
		if i := m.pattern.SubexpIndex(name); i >= 0 {
			return trim(groups[i])
		}
		return ""
	}
	epoch, ok := positive(group("epoch"))
	if !ok {
		return api.Report{}, false
	}
	r := api.Report{Epoch: epoch, Total: m.total, Loss: number(group("loss")), Quality: number(group("quality"))}
	if total, ok := positive(group("total")); ok {
		r.Total = total
	}
	return r, true
}

func positive(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n > 0
}

func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	// Go's own notations no job means.
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.ContainsAny(text, "xX_") {
		return nil
	}
	return &v
}

// trim takes off what \S+ catches beside a number: "0.31," "(0.31)" "93.1%". A
// percentage stays the number that was printed.
func trim(text string) string {
	return strings.Trim(text, " \t,;:=()[]{}%\"'")
}
