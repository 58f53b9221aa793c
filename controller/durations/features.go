package durations

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pitchpipe/controller/joblog"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

// Features is what is known of a job when it is submitted. An empty word and a size or limit of 0 are unknown.
type Features struct {
	User, Group, Account, Name string
	CPUs, GPUs, Nodes          int
	Limit                      float64 // seconds requested
	Submit                     float64 // Unix seconds
}

// Of returns what a log knows about a job when it is submitted; origin is second 0 of the log in Unix time.
func Of(j joblog.Job, origin float64) Features {
	return Features{
		User: j.User, Group: j.Group, Account: j.Account, Name: j.Name,
		CPUs: j.CPUs, GPUs: j.GPUs, Nodes: j.Nodes, Limit: j.Limit, Submit: origin + j.Submit,
	}
}

// Ended is a job that ended.
type Ended struct {
	Features
	Duration float64 // seconds that it ran
	End      float64 // Unix seconds; 0: it started when it was submitted
}

func (e Ended) end() float64 { return max(e.End, e.Submit+e.Duration) }

func (e Ended) possible() bool {
	return e.Duration >= 0 && !math.IsInf(e.end(), 0) && !math.IsNaN(e.end())
}

// kin says by what jobs are of a kind. An empty part does not count.
type kin struct {
	user, name, group string
	cpus, gpus, nodes int
}

// named is 1 with a name and 0 without: names may be ever new ones, and the others are kept in spite of them.
func (k kin) named() int { return min(len(k.name), 1) }

// The kinds of a job, by what jobs have in common with it. What is unknown of the job makes no kind.
const (
	ofUser = iota
	ofSize // user, group and size
	ofName // user and name
	ofBoth // user, name, group and size
	kinds
)

func (f Features) kin() [kinds]kin {
	var out [kinds]kin
	if f.User == "" {
		return out
	}
	name := Stem(f.Name)
	out[ofUser] = kin{user: f.User}
	out[ofSize] = kin{user: f.User, group: f.Group, cpus: f.CPUs, gpus: f.GPUs, nodes: f.Nodes}
	if name != "" {
		out[ofName], out[ofBoth] = out[ofUser], out[ofSize]
		out[ofName].name, out[ofBoth].name = name, name
	}
	return out
}

// Stem is a name without the digits that number the runs of a user.
func Stem(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, name)
}

// terms returns one term for each feature of a row.
func terms() []*term {
	seconds := func(log float64) string { return report.Duration(math.Exp(log)) }
	return slices.Concat(
		named(nil, false, "user", "group", "account", "name"), named(count, true, "CPUs", "GPUs", "nodes"),
		named(report.Duration, false, "requested limit"), rhythm(),
		named(seconds, false, "last runs of the user", "last runs of the user and size", "last runs of the user and name", "last runs of the user, name and size"),
	)
}

// rhythm returns the terms for the hour and the weekday.
func rhythm() []*term { return append(named(count, true, "hour"), named(weekday, true, "weekday")...) }

func named(say func(float64) string, whole bool, names ...string) []*term {
	return tuning.Each(names, func(name string) *term { return &term{name: name, say: say, whole: whole} })
}

func count(v float64) string   { return strconv.FormatFloat(v, 'f', -1, 64) }
func weekday(v float64) string { return time.Weekday(int(v)).String() }

// row is a job as the additive model takes it.
func (m *Model) row(f Features) row {
	out := row{[]string{f.User, f.Group, f.Account, Stem(f.Name)}, make([]float64, 0, 10)}
	for _, v := range []float64{float64(f.CPUs), float64(f.GPUs), float64(f.Nodes), f.Limit} {
		if v <= 0 {
			v = math.NaN()
		}
		out.numbers = append(out.numbers, v)
	}
	out.numbers = append(out.numbers, clock(f.Submit)...)
	for _, k := range f.kin() {
		out.numbers = append(out.numbers, m.past[k.named()].Get(k).before(f.Submit))
	}
	return out
}

// clock is the hour and the weekday of a time, UTC.
func clock(unix float64) []float64 {
	at := time.Unix(int64(unix), 0).UTC()
	return []float64{float64(at.Hour()), float64(at.Weekday())}
}

// past is how the runs of a kind went: after each end, the mean logarithm of seconds, in which recent runs weigh
// more.
type past struct{ ends, means []float64 }

const recent = 0.3 // the weight of the latest run

func (p *past) add(end, value float64) {
	if n := len(p.means); n > 0 {
		value = p.means[n-1] + recent*(value-p.means[n-1])
		end = max(end, p.ends[n-1])
	}
	p.ends, p.means = append(p.ends, end), append(p.means, value)
	if n := sort.SearchFloat64s(p.ends, end-gone) - 1; 2*n > len(p.ends) { // no job asks for those before
		p.ends, p.means = slices.Clone(p.ends[n:]), slices.Clone(p.means[n:])
	}
}

// before returns the mean of the runs that ended before t, NaN without any.
func (p *past) before(t float64) float64 {
	if p == nil || p.ends[0] > t {
		return math.NaN()
	}
	return p.means[sort.Search(len(p.ends), func(i int) bool { return p.ends[i] > t })-1]
}
