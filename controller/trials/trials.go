package trials

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Search is a search as it is stored, its trials apart.
type Search struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"` // of its job file
	Owner   string        `json:"owner"`
	UID     uint32        `json:"uid"`
	Created time.Time     `json:"created"`
	Policy  tuning.Policy `json:"policy"`
	Plan    searcher.Plan `json:"plan"`
	Job     JobFile       `json:"job"`
	Course
}

// Course is what changes in a search all the time: the rest is large, and stays.
type Course struct {
	searcher.Head

	Ended time.Time `json:"ended,omitzero"`
	Room  float64   `json:"room,omitzero"` // cores that its trials get together; 0: none waited for any, below 0: they wait for something else
}

// JobFile is what a user submits.
type JobFile struct {
	Filename  string            `json:"filename"`
	Source    []byte            `json:"source"`
	Variables map[string]string `json:"variables,omitempty"`
	Dir       string            `json:"dir"`
	Env       map[string]string `json:"env,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
}

// Trial is a trial with its jobs.
type Trial struct {
	searcher.Trial
	Jobs []driver.JobID `json:"jobs,omitempty"` // one per attempt; empty: it never started
	// Todo is the action that was decided and perhaps not yet carried out.
	Todo    searcher.ActionKind `json:"todo,omitempty"`
	Base    searcher.Report     `json:"base,omitzero"`     // what its earlier jobs used
	Renewed bool                `json:"renewed,omitempty"` // its job is ended before its time limit, and another goes on
	Held    string              `json:"held,omitempty"`    // why its scheduler held its job, which is ended for it
	Cleaned bool                `json:"cleaned,omitempty"` // its folder is deleted
	Trouble string              `json:"trouble,omitempty"` // why its newest start, which is tried again, failed
}

// State is a search with its trials.
type State struct {
	Search
	Trials []Trial `json:"trials"`
}

// Searcher is the searcher of a search, for questions about it.
func (s State) Searcher() *searcher.Searcher {
	trials := tuning.Each(s.Trials, func(t Trial) searcher.Trial { return t.Trial })
	return searcher.New(s.Plan, searcher.Snapshot{Head: s.Head, Trials: trials})
}

// Store keeps searches. Save is one transaction, and durable when it returns; without whole nothing of
// the search changed but its Course. Delete takes what is there.
type Store interface {
	All(ctx context.Context) ([]State, error)
	Save(ctx context.Context, s Search, whole bool, changed []Trial) error
	Delete(ctx context.Context, s State) error
}

// View is what is known about a trial's job.
type View struct {
	Epochs  []tuning.Epoch // in order; one that an attempt did again is there again
	Total   int            // epochs in all, as the job says; 0: unknown
	Cores   float64        // that it has, while it runs, or asks for, while it waits for its start; 0: neither
	Started time.Time
	Own     tuning.Settings
	Limit   time.Time        // when its scheduler ends it; zero: unknown, or never
	Held    string           // why its scheduler holds it until a person releases it; empty: it does not
	Over    bool             // and no more epochs follow
	Request driver.RequestID // that made the job which has the id now; empty: unknown
	End     searcher.End
	Detail  string
	Hours   *float64 // core-hours of a job that is over; nil: unknown
	Ran     float64  // seconds of a job that is over; 0: unknown
}

// Jobs starts, ends and looks at jobs.
type Jobs interface {
	// Start is repeatable by its request; see driver.Driver.
	Start(ctx context.Context, s Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error)
	Stop(ctx context.Context, id driver.JobID) error
	See(ctx context.Context, id driver.JobID) (View, error)
	// Find is the job of a request; driver.ErrNotFound: there is none, and none is to come.
	Find(ctx context.Context, id driver.RequestID) (driver.JobID, error)
}

// Config is what a Service needs.
type Config struct {
	Jobs  Jobs
	Store Store
	Log   *slog.Logger
	Tick  time.Duration    // between two looks, and two submissions; 0: half a second
	Now   func() time.Time // nil: time.Now

	// Took is given how long each Work took; nil: it is not asked for.
	Took func(w Work, d time.Duration)

	// AfterSave is called after each durable write. It is nil outside of crash tests.
	AfterSave func()
}

// Work is something that takes time.
type Work string

// The kinds of work.
const (
	Decision Work = "decision" // of the searcher, about one event
	Round    Work = "round"    // one look at all searches, with what follows from it
)

// Errors of a Service.
var (
	ErrNotFound = errors.New("search not found")
	ErrConflict = errors.New("not possible for this search now")
)

// Lineage says which trial of which search a job is; zero: it is not one.
type Lineage struct {
	Search string `json:"search,omitempty"`
	Trial  int    `json:"trial,omitempty"`
}

// Lineages are those of all jobs of searches.
func (s *Service) Lineages() map[driver.JobID]Lineage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[driver.JobID]Lineage{}
	for id, x := range s.shown {
		for _, t := range x.Trials {
			for _, job := range t.Jobs {
				out[job] = Lineage{id, t.Number}
			}
		}
	}
	delete(out, "") // of an attempt that never started
	return out
}

// Settled reports whether a search is over and nothing is left to be done for its trials.
func (s State) Settled() bool {
	return s.Over && !slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.Todo != "" })
}

// window is how many of the newest reports show the pace of a search.
const window = 50

// Left is about how long a search still takes at the pace of its newest epochs, its budgets included;
// false: nothing is left, or too few epochs have ended.
func (s State) Left(now time.Time) (time.Duration, bool) {
	brain := s.Searcher()
	epochs, path := brain.Left(func(int) bool { return false })
	var ends []float64
	var seconds float64
	for _, t := range s.Trials {
		ends = append(ends, tuning.Each(t.Reports, func(r searcher.Report) float64 { return r.At })...)
		seconds += t.Last().Seconds
	}
	n := len(ends)
	if epochs == 0 || n < 2 {
		return 0, false
	}
	slices.Sort(ends)
	newest := ends[max(0, n-window):]
	pace := (newest[len(newest)-1] - newest[0]) / float64(len(newest)-1)
	left := max(path*seconds/float64(n), epochs*pace)
	left = min(left, s.allows(brain, now, now.Sub(s.Created).Seconds()))
	return time.Duration(left * float64(time.Second)), true
}

// allows is how much more of something the budgets allow of which there was so much so far.
func (s Search) allows(brain *searcher.Searcher, now time.Time, so float64) float64 {
	left := math.Inf(1)
	_, hours, _ := brain.Spent()
	for _, b := range []struct{ used, most float64 }{
		{now.Sub(s.Created).Seconds(), s.Plan.Time.Seconds()}, {brain.Charged(), float64(s.Plan.Energy)}, {hours, s.Plan.CoreHours},
	} {
		if b.most > 0 && b.used > 0 {
			left = min(left, max(0, b.most-b.used)*so/b.used)
		}
	}
	return left
}
