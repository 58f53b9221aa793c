package window

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// Key is the key of a job's attempt.
func Key(j api.Job) attrib.Key {
	return attrib.Key{Manager: j.Manager, ID: j.ID, Attempt: j.Attempt}
}

// find returns the newest attempt of a job that matches. The name is an id, such as 42, or a
// manager and an id, such as slurm/42, since no id has a slash. Number 0 is any attempt.
func (s *Store) find(name string, number int, match func(api.Job) bool) (found *attempt) {
	for _, a := range s.jobs {
		if name != a.Job.ID && name != a.Job.Manager+"/"+a.Job.ID || number > 0 && a.Job.Attempt != number || !match(a.Job) {
			continue
		}
		if found == nil || cmp.Or(a.Job.Started.Compare(found.Job.Started), a.Job.Attempt-found.Job.Attempt) > 0 {
			found = a
		}
	}
	return found
}

// Find returns the newest attempt that matches, as Window does.
func (s *Store) Find(name string, number int, match func(api.Job) bool) (api.Job, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.find(name, number, match); a != nil {
		return a.Job, true
	}
	return api.Job{}, false
}

// Allow sets what an origin lets an attempt use.
func (s *Store) Allow(key attrib.Key, by api.Origin, b api.Budget) {
	s.change(key, func(a *attempt) { a.allow(a.Budgets.With(by, b)) })
}

func (s *Store) change(key attrib.Key, how func(*attempt)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.jobs[key]; a != nil {
		how(a)
	}
}

// Attempt returns an attempt without its values. Its maps never change.
func (s *Store) Attempt(key attrib.Key) (Attempt, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.jobs[key]; a != nil {
		return a.Attempt, true
	}
	return Attempt{}, false
}

func (a *attempt) allow(all api.Budgets) { a.Budgets, a.Job.Budget = all, all.Lowest() }

// row is one sample. Of its values it holds those that differ from the row before, which
// are few where a job sleeps: each as the number of its column and the bits of the value,
// NaN = missing. nil = it has no values at all.
type row struct {
	seq    uint64
	time   time.Time
	values []byte
	mark   *api.Report
	ended  bool
}

// pack turns values into what a row holds.
func (a *attempt) pack(values []float64) []byte {
	out := make([]byte, 0, 64)
	for i, v := range values {
		if bits := math.Float64bits(v); bits != math.Float64bits(a.newest[i]) {
			out = binary.NativeEndian.AppendUint64(binary.AppendUvarint(out, uint64(i)), bits)
			a.newest[i] = v
		}
	}
	return append(make([]byte, 0, len(out)), out...)
}

// unpack turns the values of the row before into those of this one.
func (r row) unpack(values []float64) {
	for b := r.values; len(b) > 0; {
		i, n := binary.Uvarint(b)
		values[i] = math.Float64frombits(binary.NativeEndian.Uint64(b[n:]))
		b = b[n+8:]
	}
}

// wholeRings is how many attempts may have Config.Samples each. Of busy jobs with a PMU these
// take some 60 MB.
const wholeRings = 128

// most is how many samples an attempt may have now, so that memory is bounded.
func (s *Store) most() int {
	most := s.cfg.Samples
	for most > 1 && most*len(s.jobs) > s.cfg.Samples*wholeRings {
		most /= 2 // seldom another number, since all rings are copied then
	}
	return most
}

// shorten puts the oldest row first and drops those above most.
func (a *attempt) shorten(most int) {
	if a.first == 0 && len(a.ring) <= most {
		return
	}
	all := slices.Concat(a.ring[a.first:], a.ring[:a.first])
	over := max(len(all)-most, 0)
	for _, r := range all[:over] {
		r.unpack(a.oldest)
	}
	a.ring, a.first, a.dropped = slices.Clone(all[over:]), 0, a.dropped+uint64(over)
}

func (s *Store) push(a *attempt, r row) {
	r.seq = a.next
	a.next++
	if len(a.ring) < s.most() {
		a.shorten(len(a.ring))
		a.ring = append(a.ring, r)
		return
	}
	a.ring[a.first].unpack(a.oldest)
	a.ring[a.first] = r
	a.first = (a.first + 1) % len(a.ring)
	a.dropped++
}
