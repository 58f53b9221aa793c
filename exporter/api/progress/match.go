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

	epochGroup, totalGroup, lossGroup, qualityGroup int // -1 = the pattern has none
}

// NewMatcher checks that the pattern has a group named epoch; total is what a
// report says where the line does not, 0 = unknown.
func NewMatcher(pattern *regexp.Regexp, total int) (*Matcher, error) {
	if pattern == nil {
		return nil, fmt.Errorf("%w: there is no pattern", ErrPattern)
	}
	m := &Matcher{
		pattern:      pattern,
		total:        max(total, 0),
		epochGroup:   pattern.SubexpIndex("epoch"),
		totalGroup:   pattern.SubexpIndex("total"),
		lossGroup:    pattern.SubexpIndex("loss"),
		qualityGroup: pattern.SubexpIndex("quality"),
	}
	if m.epochGroup < 0 {
		return nil, fmt.Errorf("%w: %s", ErrPattern, pattern)
	}
	return m, nil
}

// Match reads one line. It matches only where the epoch is a positive integer; a
// loss or quality that is absent, not a number, or not finite stays nil, and so
// does no harm to the mark. Report.Time is left to the caller.
func (m *Matcher) Match(line string) (api.Report, bool) {
	groups := m.pattern.FindStringSubmatch(line)
	if groups == nil {
		return api.Report{}, false
	}
	epoch, ok := positive(groups[m.epochGroup])
	if !ok {
		return api.Report{}, false
	}
	r := api.Report{Epoch: epoch, Total: m.total}
	if m.totalGroup >= 0 {
		if total, ok := positive(groups[m.totalGroup]); ok {
			r.Total = total
		}
	}
	r.Loss = m.number(groups, m.lossGroup)
	r.Quality = m.number(groups, m.qualityGroup)
	return r, true
}

func positive(text string) (int, bool) {
	n, err := strconv.ParseInt(trim(text), 10, 32)
	return int(n), err == nil && n > 0
}

func (m *Matcher) number(groups []string, i int) *float64 {
	if i < 0 {
		return nil
	}
	text := trim(groups[i])
	if strings.ContainsAny(text, "xX_") {
		return nil // Go's own notations, which no job means
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// trim takes off what \S+ catches beside a number: "0.31," "(0.31)" "93.1%". A
// percentage stays the number that was printed.
func trim(text string) string {
	return strings.Trim(text, " \t,;:=()[]{}%\"'")
}
