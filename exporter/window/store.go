package window

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
)

// ErrFull means that as many jobs run as the store holds.
var ErrFull = errors.New("too many jobs")

// Config bounds a store; zero fields take the defaults.
type Config struct {
	Samples int           // per attempt, default 1800; fewer where there are many attempts
	Jobs    int           // attempts in all, default 512
	Keep    time.Duration // how long an ended attempt is kept, default 15 min
}

// Store holds a ring for each attempt.
type Store struct {
	cfg Config

	mu      sync.RWMutex
	columns []string // in the order in which they were first seen
	index   map[string]int
	jobs    map[attrib.Key]*attempt
}

// Attempt is one attempt of a job without its samples, as a state file has it.
type Attempt struct {
	Job     api.Job            `json:"job"`
	Schema  string             `json:"schema"`
	Source  string             `json:"source"`          // of the joules
	Inode   uint64             `json:"inode,omitempty"` // of Job.Cgroup, or without one when its oldest process began, to recognise it; 0 = none
	Joules  energy.Joules      `json:"joules"`
	Values  map[string]float64 `json:"values"` // the last ones of an attempt that ended
	Ended   time.Time          `json:"ended,omitzero"`
	Budgets api.Budgets        `json:"budgets,omitempty"` // all that were said; Job.Budget is the one that counts
}

type attempt struct {
	Attempt
	ring     []row // grows to Store.most, then turns
	first    int   // index of the oldest row
	next     uint64
	dropped  uint64
	last     []float64 // newest value of each column, NaN = never seen
	oldest   []float64 // values before the first row, NaN = missing
	newest   []float64 // values of the last row that has some
	lastTime time.Time
}

// grow adds columns that came since, without a value.
func (s *Store) grow(values []float64) []float64 {
	values = slices.Grow(values, max(len(s.columns)-len(values), 0))
	for len(values) < len(s.columns) {
		values = append(values, math.NaN())
	}
	return values
}

func (s *Store) column(name string) int {
	i, ok := s.index[name]
	if !ok {
		i = len(s.columns)
		s.columns, s.index[name] = append(s.columns, name), i
	}
	return i
}

// New returns an empty store.
func New(cfg Config) *Store {
	return &Store{
		cfg: Config{
			Samples: cmp.Or(max(cfg.Samples, 0), 1800),
			Jobs:    cmp.Or(max(cfg.Jobs, 0), 512),
			Keep:    cmp.Or(max(cfg.Keep, 0), 15*time.Minute),
		},
		index: map[string]int{},
		jobs:  map[attrib.Key]*attempt{},
	}
}

// Begin opens the ring of an attempt. A running attempt with its key goes on, and one that
// ended is replaced. A full store forgets the attempt that ended first; if none has ended,
// Begin fails with ErrFull.
func (s *Store) Begin(began Attempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key(began.Job)
	if was := s.jobs[key]; was != nil && !was.Job.Ended {
		return nil
	}
	delete(s.jobs, key)
	if len(s.jobs) >= s.cfg.Jobs {
		ended := slices.DeleteFunc(slices.Collect(maps.Keys(s.jobs)), func(k attrib.Key) bool { return !s.jobs[k].Job.Ended })
		if len(ended) == 0 {
			return fmt.Errorf("%w: %d run already", ErrFull, len(s.jobs))
		}
		delete(s.jobs, slices.MinFunc(ended, func(a, b attrib.Key) int { return s.jobs[a].Ended.Compare(s.jobs[b].Ended) }))
	}
	a := &attempt{Attempt: began, next: 1}
	a.Values, a.Job.Ended, a.Ended = nil, false, time.Time{}
	a.allow(began.Budgets)
	s.jobs[key] = a
	most := s.most()
	for _, other := range s.jobs {
		if len(other.ring) > most { // else it is copied for nothing
			other.shorten(most)
		}
	}
	return nil
}

// Restore puts an attempt back that ended.
func (s *Store) Restore(a Attempt) error {
	if err := s.Begin(a); err != nil {
		return err
	}
	s.End(Key(a.Job), a.Ended, a.Values)
	return nil
}

// Charge sets the joules of an attempt.
func (s *Store) Charge(key attrib.Key, joules energy.Joules) {
	s.change(key, func(a *attempt) { a.Joules = joules })
}

// Describe changes what became known after the beginning: the user, the cgroup with its inode,
// the schema, and which sources cannot measure the job.
func (s *Store) Describe(key attrib.Key, uid uint32, cgroup string, inode uint64, schema string, absent []api.Source) {
	s.change(key, func(a *attempt) {
		a.Job.UID, a.Job.Cgroup, a.Inode, a.Schema, a.Job.Absent = uid, cgroup, inode, schema, absent
	})
}

// Renumber gives an attempt the number that it turned out to have. It goes on with one that
// ended under that number, but for the samples; one that runs keeps it, and false is returned.
func (s *Store) Renumber(key attrib.Key, attempt int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	to := attrib.Key{Manager: key.Manager, ID: key.ID, Attempt: attempt}
	other := s.jobs[to]
	if a == nil || other != nil && !other.Job.Ended {
		return false
	}
	delete(s.jobs, key)
	a.Job.Attempt = attempt
	s.jobs[to] = a
	if other != nil {
		was, all := other.Job, other.Budgets
		a.Job.First, a.Job.Saves = was.First, a.Job.Saves+was.Saves
		a.Job.Saved, a.Job.Heard = cmp.Or(a.Job.Saved, was.Saved), cmp.Or(a.Job.Heard, was.Heard)
		for by, b := range a.Budgets {
			all = all.With(by, b)
		}
		a.allow(all)
	}
	return true
}

// Append adds a reading, whose values may be empty, as on a mark without a snapshot, and
// reports whether the attempt took it. A report of a checkpoint only counts, and one that a
// listener begins sets Job.Heard. An attempt that has ended takes reports alone: a mark of an
// epoch is put at its end, with the values that it ended with, since the epoch cannot have
// ended later.
func (s *Store) Append(key attrib.Key, at time.Time, values map[string]float64, mark *api.Report) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	switch {
	case a == nil || a.Job.Ended && mark == nil:
		return false
	case mark != nil && mark.Begins:
		a.Job.Heard = mark.Time
	case mark != nil && mark.Saved:
		a.Job.Saves++
		if mark.Time.After(a.Job.Saved) {
			a.Job.Saved = mark.Time
		}
	case a.Job.Ended:
		r := row{time: a.lastTime, mark: mark, ended: true}
		if slices.ContainsFunc(a.newest, func(v float64) bool { return !math.IsNaN(v) }) {
			r.values = a.pack(a.newest)
		}
		s.push(a, r)
	default:
		s.append(a, row{time: at, mark: mark}, values)
	}
	return true
}

// End adds the last reading.
func (s *Store) End(key attrib.Key, at time.Time, values map[string]float64) {
	s.change(key, func(a *attempt) {
		if !a.Job.Ended {
			a.Job.Ended, a.Ended = true, at
			s.append(a, row{time: at, ended: true}, values)
		}
	})
}

func (s *Store) append(a *attempt, r row, values map[string]float64) {
	if r.time.Before(a.lastTime) {
		r.time = a.lastTime // the wall clock was set back
	}
	a.lastTime = r.time
	if len(values) > 0 {
		now := s.grow(nil)
		for column, v := range values {
			i := s.column(column)
			now, a.last = s.grow(now), s.grow(a.last)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				if slices.Contains([]string{api.ColJoules, api.ColGPUJoules, api.ColGPUBusy}, column) { // it may stay unknown until the end
					a.last[i] = math.NaN()
				}
				continue
			}
			if v < a.last[i] && !api.Gauge(column) {
				v = a.last[i]
			}
			now[i], a.last[i] = v, v
		}
		a.newest, a.oldest = s.grow(a.newest), s.grow(a.oldest)
		r.values = a.pack(now)
	}
	s.push(a, r)
}

// Prune forgets the attempts that ended long enough ago.
func (s *Store) Prune(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.jobs, func(_ attrib.Key, a *attempt) bool {
		return a.Job.Ended && now.Sub(a.Ended) > s.cfg.Keep
	})
}

// NextAttempt is the number that a new attempt of a job gets whose cgroup does not
// tell: one more than the newest that ended, the newest itself while it runs.
func (s *Store) NextAttempt(manager, id string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 1
	for k, a := range s.jobs {
		if k.Manager != manager || k.ID != id {
			continue
		}
		if n = max(n, k.Attempt); a.Job.Ended {
			n = max(n, k.Attempt+1)
		}
	}
	return n
}

// Jobs lists the attempts that are visible, oldest first.
func (s *Store) Jobs(visible func(api.Job) bool) []api.Job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]api.Job, 0, len(s.jobs))
	for _, a := range s.jobs {
		if visible(a.Job) {
			out = append(out, a.Job)
		}
	}
	slices.SortFunc(out, byStart)
	return out
}

func byStart(a, b api.Job) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.ID, b.ID), a.Attempt-b.Attempt)
}

// Window returns the oldest samples of an attempt that are newer than after, at most so many,
// 0 = all; attempt 0 means the newest. "slurm/42" is Slurm's job 42; where two managers know the
// bare id, the newer job is meant.
func (s *Store) Window(id string, number int, after uint64, most int, visible func(api.Job) bool) (api.Window, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := s.find(id, number, visible)
	if a == nil {
		return api.Window{}, false
	}
	w := api.Window{Job: a.Job, Schema: a.Schema, Source: a.Source, Samples: []api.Sample{}, Dropped: a.dropped, Now: time.Now()}
	values := s.grow(slices.Clone(a.oldest))
	for i := range a.ring {
		r := a.ring[(a.first+i)%len(a.ring)]
		r.unpack(values)
		if r.seq <= after {
			continue
		}
		sample := api.Sample{Seq: r.seq, Time: r.time, Values: map[string]float64{}, Mark: r.mark, Ended: r.ended}
		if r.values != nil {
			sample.Values = s.values(values)
		}
		if w.Samples = append(w.Samples, sample); len(w.Samples) == most {
			break
		}
	}
	return w, true
}

func (s *Store) values(row []float64) map[string]float64 {
	out := make(map[string]float64, len(row))
	for i, v := range row {
		if !math.IsNaN(v) {
			out[s.columns[i]] = v
		}
	}
	return out
}

// Columns lists the columns of all attempts so far. Only new ones are added, at the end.
func (s *Store) Columns() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clip(s.columns)
}

// Latest is the newest value of each column of an attempt.
type Latest struct {
	Attempt
	Values []float64 // in the order of Store.Columns, later ones left out; NaN = not known
}

// Latest returns the newest values of all attempts, oldest first.
func (s *Store) Latest() []Latest {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Latest, 0, len(s.jobs))
	for _, a := range s.jobs {
		out = append(out, Latest{a.Attempt, slices.Clone(a.last)})
	}
	slices.SortFunc(out, func(a, b Latest) int { return byStart(a.Job, b.Job) })
	return out
}

// Named returns an attempt's known values by the names of their columns.
func (s *Store) Named(l Latest) map[string]float64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.values(l.Values)
}
