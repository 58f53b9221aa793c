package sampler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pitchpipe/exporter/api"
)

// errSilent means that a source does not answer.
var errSilent = errors.New("does not answer")

// patience is how long a source may take before the others go on without it. A reading
// of a job of thousands of threads takes a tenth of that.
const patience = 2 * time.Second

// lane is the way to one source: one call at a time, each in a goroutine of its own,
// so that a source that hangs in the kernel holds up nobody else. Until the call that
// hangs returns nothing more is asked of that source. The sampler alone uses it.
type lane struct {
	name string

	mu    sync.Mutex
	since time.Time // when the call began that does not return; zero = there is none
	later []func()  // to be done when it does
}

// do runs a call, and returns without it where it takes too long. What the call writes
// is then its own: the caller must not look at it.
func (l *lane) do(call func()) error { return l.each(1, func(int) { call() }) }

// each runs a call for each of n things in one goroutine, since to change to another and
// back costs as much as a reading. Each may take its time; where one takes too long none
// is to be looked at.
func (l *lane) each(n int, call func(i int)) error {
	if err := l.stuck(); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	var steps atomic.Int64
	var left atomic.Bool // alone: nobody waits for what is not done yet
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			if left.Load() {
				break
			}
			call(i)
			steps.Add(1)
		}
		l.returned()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return nil
		case <-timer.C:
		}
		now := steps.Load()
		if now == last {
			break
		}
		last, began = now, time.Now()
		timer.Reset(patience)
	}
	left.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-done:
		if steps.Load() == int64(n) {
			return nil
		}
		return fmt.Errorf("%s: %w in time", l.name, errSilent)
	default:
	}
	l.since = began
	return l.silence()
}

// returned does what waited for the call.
func (l *lane) returned() {
	l.mu.Lock()
	for len(l.later) > 0 {
		f := l.later[0]
		l.later = l.later[1:]
		l.mu.Unlock()
		f()
		l.mu.Lock()
	}
	l.since = time.Time{}
	l.mu.Unlock()
}

// then runs f when no call hangs: now, or as soon as that has returned.
func (l *lane) then(f func()) {
	l.mu.Lock()
	if !l.since.IsZero() {
		l.later = append(l.later, f)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	f()
}

// stuck is an error where a call hangs.
func (l *lane) stuck() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silence()
}

func (l *lane) silence() error {
	if l.since.IsZero() {
		return nil
	}
	return fmt.Errorf("%s: %w since %s", l.name, errSilent, l.since.UTC().Format(time.RFC3339))
}

// busy is a lane on which a call hangs already, and returns when done is closed.
func busy(name string, done <-chan struct{}) *lane {
	l := &lane{name: name, since: time.Now()}
	go func() {
		<-done
		l.returned()
	}()
	return l
}

// lane is the one of a source.
func (s *Sampler) lane(name string) *lane {
	l := s.lanes[name]
	if l == nil {
		l = &lane{name: name}
		s.lanes[name] = l
	}
	return l
}

// silent lists the sources that do not answer, and says it once when one falls silent
// or answers again.
func (s *Sampler) silent() []api.Source {
	var out []api.Source
	for _, name := range slices.Sorted(maps.Keys(s.lanes)) {
		err := s.lanes[name].stuck()
		if (err != nil) != s.mute[name] {
			s.mute[name] = err != nil
			if err != nil {
				s.log.Warn("source does not answer; the others go on", "source", name, "err", err)
			} else {
				s.log.Info("source answers again", "source", name)
			}
		}
		if err != nil {
			reason := strings.TrimPrefix(err.Error(), name+": ")
			out = append(out, api.Source{Name: name, Support: api.Supported, Silent: true, Reason: reason})
		}
	}
	return out
}
