package collector

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"pitchpipe/exporter/api"
)

// Values holds readings by column (api.Col…): counters since the attempt began,
// and gauges. NaN is a column that is measured and not known at this moment.
type Values map[string]float64

// Bridge is the longest gap between two readings over which power, or how busy something is, is
// integrated. What passed in a longer one is unknown, and a sum lacks it for good.
const Bridge = 5 * time.Second

// Target is the job that a reader is opened for.
type Target struct {
	Dirs    map[string]string // cgroup directory by hierarchy; hostfs.Unified for v2; nil = none
	CPUs    []int             // that the job may use, as far as known
	PerfDir string            // a cgroup in perf's hierarchy that holds its processes and limits nothing, where Dirs has none
}

// Moment is the time of a reading, and the processes that it is taken of.
type Moment struct {
	Time time.Time
	Pids []int
	// Idle means that nothing of the job ran since the reading before.
	Idle bool
	// Unlisted means that its processes are unknown at this moment; Pids is empty.
	Unlisted bool
}

// Cached is something that seldom changes.
type Cached[T any] struct {
	at time.Time
	v  T
}

// Get returns it as of less than age before now, or as find finds it; always the latter if now
// is zero.
func (c *Cached[T]) Get(now time.Time, age time.Duration, find func() T) T {
	if old := now.Sub(c.at); now.IsZero() || c.at.IsZero() || old < 0 || old >= age {
		c.at, c.v = now, find()
	}
	return c.v
}

// Collector is one source of a job's counters.
type Collector interface {
	// Name is the first part of its sources' names.
	Name() string
	// Probe reports what it can measure on this machine.
	Probe(ctx context.Context) []api.Source
	// Open begins to measure a job. An error says why this job cannot be measured;
	// the others still can.
	Open(ctx context.Context, t Target) (Reader, error)
}

// Reader measures one job.
type Reader interface {
	// Read adds the columns that it can read to out. An error concerns what is
	// missing from out; what is there is good.
	Read(ctx context.Context, m Moment, out Values) error
	// Close releases what Open took.
	Close() error
}

// Follower is a reader that stays open when the job's cgroups or CPUs change.
type Follower interface {
	// Follow goes on with the target as it is now; counters go on from where they
	// are. An error says what is not counted from now on; what was is kept.
	Follow(ctx context.Context, t Target) error
}

// Static is a part of readers that hold nothing open and do not depend on cgroups or CPUs.
type Static struct{}

// Follow has nothing to do.
func (Static) Follow(context.Context, Target) error { return nil }

// Close has nothing to release.
func (Static) Close() error { return nil }

// Selective is a reader that counts a choice of events.
type Selective interface {
	// Events are those that it counts of the ones that api.SchemaWith names, and as
	// sources those that it was to count and cannot for this job, with the reason.
	Events() (counted []string, absent []api.Source)
}

// Placed is a reader that knows where on the machine its job worked.
type Placed interface {
	// Places reports what the job did on each package since Open, by the number of the
	// socket and as of the last Read.
	Places() map[int]Place
}

// Place is what a job did on one package. What is not counted is 0, and so is what is
// not known at this moment.
type Place struct {
	CPUSeconds float64
	Cycles     float64
	Misses     float64 // of the last cache
}

// ErrUnsupported means that there is nothing to measure with: no file, no event,
// no cgroup in the right hierarchy.
var ErrUnsupported = errors.New("not supported here")

// Source builds a probe's answer from an error, by whose kind denied differs from
// unsupported; means says by what it measures without one. What does not answer is supported
// and silent.
func Source(name, means string, err error) api.Source {
	s := api.Source{Name: name, Support: api.Supported, Reason: means}
	if err == nil {
		return s
	}
	s.Reason = err.Error()
	switch {
	case errors.Is(err, ErrSilent): // it is there, as far as is known
		s.Silent = true
	case errors.Is(err, fs.ErrPermission): // EACCES and EPERM
		s.Support = api.Denied
	default:
		s.Support = api.Unsupported
	}
	return s
}
