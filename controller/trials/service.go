package trials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Service runs searches. Use New.
type Service struct {
	cfg  Config
	wake chan struct{}

	work     sync.Mutex // a scheduler may take long, and readers do not wait for it
	searches map[string]*search
	started  time.Time // when a job was started last, of any search
	last     string    // search that it was of

	mu     sync.RWMutex
	shown  map[string]State // as they were last stored
	shares map[string]tuning.Share
}

type search struct {
	Search
	brain *searcher.Searcher
	jobs  []Trial // by number, without the searcher's part
	saved []stamp // of each trial, as it was last stored
	head  *Course // as it was last stored; nil: more than it changed
	tried int     // number of the trial that was started last
	crowd crowd

	refused time.Time // when its owner might have no more jobs
	room    time.Time // when that was otherwise, or it had a job that could end; zero: it was not asked yet
}

// stamp changes with everything that is stored of a trial.
type stamp [13]any

// New makes a Service; it does nothing before Run.
func New(cfg Config) *Service {
	if cfg.Tick <= 0 {
		cfg.Tick = 500 * time.Millisecond
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Took == nil {
		cfg.Took = func(Work, time.Duration) {}
	}
	return &Service{cfg: cfg, wake: make(chan struct{}, 1), searches: map[string]*search{}, shown: map[string]State{}, shares: map[string]tuning.Share{}}
}

// Load reads what is stored, in place of what is in memory.
func (s *Service) Load(ctx context.Context) error {
	s.work.Lock() // a search may begin meanwhile
	defer s.work.Unlock()
	all, err := s.cfg.Store.All(ctx)
	if err != nil {
		return fmt.Errorf("read the searches: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.searches)
	clear(s.shown)
	clear(s.shares)
	for _, x := range all {
		one := &search{Search: x.Search, head: &x.Course, brain: x.Searcher(), jobs: slices.Clone(x.Trials)}
		for i := range one.jobs {
			one.saved = append(one.saved, one.stamp(i))
		}
		s.searches[x.ID], s.shown[x.ID], s.shares[x.ID] = one, x, one.share(s.cfg.Now())
	}
	return nil
}

// Run works until ctx ends. Jobs that run then go on running.
func (s *Service) Run(ctx context.Context) error {
	if err := s.Load(ctx); err != nil {
		return err
	}
	for {
		began := time.Now()
		s.round(ctx)
		s.cfg.Took(Round, time.Since(began))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		case <-time.After(s.cfg.Tick):
		}
	}
}

// round looks at every search once, that first which comes after the one that started a job last. One that
// fails does not stop the others.
func (s *Service) round(ctx context.Context) {
	s.work.Lock()
	defer s.work.Unlock()
	ids := slices.Sorted(maps.Keys(s.searches))
	next, found := slices.BinarySearch(ids, s.last)
	if found {
		next++
	}
	for _, id := range slices.Concat(ids[next:], ids[:next]) {
		one := s.searches[id]
		if one.settled() {
			continue
		}
		if err := s.step(ctx, one); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a search will be looked at again", "search", id, "error", err)
		}
	}
}

func (x *search) settled() bool { return State{x.Search, x.jobs}.Settled() }

// Begin stores a new search; the restart of a job costs so much: queue, start and load. Nothing runs before
// the next look.
func (s *Service) Begin(ctx context.Context, x Search, restart time.Duration) (State, error) {
	s.work.Lock()
	defer s.work.Unlock()
	if old, err := s.Get(x.ID); err == nil { // a repeated request
		if file := old.Job; old.Owner == x.Owner && driver.Fingerprint(file.Source, file.Variables) != driver.Fingerprint(x.Job.Source, x.Job.Variables) {
			return State{}, fmt.Errorf("%w: the request id %s was used for another job file, %s", ErrConflict, x.ID, old.Name)
		}
		return old, nil
	}
	one := &search{Search: x, brain: searcher.New(x.Plan, searcher.Snapshot{})}
	if err := s.handle(one, searcher.Event{Kind: searcher.Opened, Cost: restart.Seconds()}); err != nil {
		return State{}, err
	}
	if err := s.save(ctx, one); err != nil {
		return State{}, err
	}
	s.searches[x.ID] = one
	s.nudge()
	return s.Get(x.ID)
}

// Stop ends a search: its jobs are ended, and nothing begins any more.
func (s *Service) Stop(ctx context.Context, id, by string) error {
	return s.change(ctx, id, func(one *search) error {
		return s.handle(one, searcher.Event{Kind: searcher.Closed, Reason: "stopped by " + by})
	})
}

// Resume goes on with a search that is over, unless a bound would end it at once; trials above 0 is how many it has
// in all from now on.
func (s *Service) Resume(ctx context.Context, id string, trials int) error {
	return s.change(ctx, id, func(one *search) error {
		search := one.Plan.Search
		if n := len(one.Plan.Settings); trials > n {
			return fmt.Errorf("%w: %d settings were drawn when it began; begin a new search for more", ErrConflict, n)
		}
		if trials > 0 {
			search.Trials = trials
		}
		actions, err := one.brain.Reopen(search, s.since(one))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
		one.Plan, one.Ended, one.head, one.Room, one.crowd = one.brain.Plan, time.Time{}, nil, 0, crowd{}
		s.note(one, actions)
		return nil
	})
}

func (s *Service) change(ctx context.Context, id string, do func(*search) error) error {
	s.work.Lock()
	defer s.work.Unlock()
	one, ok := s.searches[id]
	if !ok {
		return ErrNotFound
	}
	if err := do(one); err != nil {
		return err
	}
	s.nudge()
	return s.save(ctx, one)
}

func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Prune forgets the searches that ended before a time, and returns how many there were.
func (s *Service) Prune(ctx context.Context, before time.Time) (n int, err error) {
	s.work.Lock()
	defer s.work.Unlock()
	for id, one := range s.searches {
		if !one.settled() || one.Ended.IsZero() || !one.Ended.Before(before) {
			continue
		}
		x, err := s.Get(id)
		if err == nil {
			err = s.cfg.Store.Delete(ctx, x)
		}
		if err != nil {
			return n, fmt.Errorf("forget the search %s: %w", id, err)
		}
		delete(s.searches, id)
		s.mu.Lock()
		delete(s.shown, id)
		delete(s.shares, id)
		s.mu.Unlock()
		n++
	}
	return n, nil
}

// Get is one search as it was last stored. Its trials are not to be changed.
func (s *Service) Get(id string) (State, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if x, ok := s.shown[id]; ok {
		return x, nil
	}
	return State{}, ErrNotFound
}

// Share is what the trials of a search share from now on.
func (s *Service) Share(id string) tuning.Share {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shares[id]
}

func (x *search) share(now time.Time) (out tuning.Share) {
	if begun := len(x.brain.Trials); x.brain.Closing == "" {
		out.Next = int(max(0, min(float64(x.brain.Search.Trials-begun), x.allows(x.brain, now, float64(begun)))))
	}
	if x.Room <= 0 {
		return out
	}
	serial := func(without func(int) bool) float64 {
		if epochs, path := x.brain.Left(without); epochs > 0 {
			return math.Ceil(20*path/epochs) / 20 // a finer one would change with every epoch
		}
		return 1
	}
	out.Cores, out.Trials = x.Room, float64(max(1, min(x.brain.Busy()+out.Next, x.brain.Parallel)))
	out.Serial, out.Late = serial(func(int) bool { return false }), serial(func(trial int) bool { return x.crowd.runs[trial] })
	return out
}

// List are the searches that the caller may see, the oldest first; see Get.
func (s *Service) List(may func(owner string) bool) []State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []State{}
	for _, x := range s.shown {
		if may(x.Owner) {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b State) int { return a.Created.Compare(b.Created) })
	return out
}

func (x *search) trial(i int) Trial {
	t := x.jobs[i]
	t.Trial = x.brain.Trials[i]
	return t
}

// step looks at the jobs of a search, decides, and does what was decided. What fails with one trial holds up no other.
func (s *Service) step(ctx context.Context, one *search) error {
	seen, err := s.look(ctx, one)
	if t := one.Plan.Time; t > 0 && one.Closing == "" && s.since(one) >= t.Seconds() {
		seen = append(seen, searcher.Event{Kind: searcher.Waited, Report: searcher.Report{At: s.since(one)}})
	}
	for _, e := range seen {
		err = errors.Join(err, s.handle(one, e))
	}
	if failed := s.save(ctx, one); failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, s.act(ctx, one), s.save(ctx, one))
}

func (s *Service) since(one *search) float64 { return s.cfg.Now().Sub(one.Created).Seconds() }

// handle gives an event to the searcher and notes what is to be done.
func (s *Service) handle(one *search, e searcher.Event) error {
	began := time.Now()
	actions, err := one.brain.Handle(e)
	s.cfg.Took(Decision, time.Since(began))
	s.note(one, actions)
	return err
}

func (s *Service) note(one *search, actions []searcher.Action) {
	for len(one.jobs) < len(one.brain.Trials) {
		one.jobs = append(one.jobs, Trial{})
	}
	for _, a := range actions {
		if a.Kind != searcher.Finish {
			one.jobs[a.Trial-1].Todo = a.Kind
		}
	}
	one.Head = one.brain.Head
	if one.Over && one.Ended.IsZero() {
		one.Ended = s.cfg.Now()
	}
}

func (s *Service) save(ctx context.Context, one *search) error {
	var changed []Trial
	for i := range one.jobs {
		if i >= len(one.saved) || one.stamp(i) != one.saved[i] {
			changed = append(changed, one.trial(i))
		}
	}
	if len(changed) == 0 && one.head != nil && one.head.Seq == one.Seq && one.head.Room == one.Room && one.head.Ended.Equal(one.Ended) {
		return nil
	}
	if err := s.cfg.Store.Save(ctx, one.Search, one.head == nil, changed); err != nil {
		return fmt.Errorf("save the search %s: %w", one.ID, err)
	}
	one.head = new(one.Course)
	one.saved = append(one.saved, make([]stamp, len(one.jobs)-len(one.saved))...)
	s.mu.Lock()
	shown := make([]Trial, len(one.jobs))
	copy(shown, s.shown[one.ID].Trials)
	for _, t := range changed {
		one.saved[t.Number-1], shown[t.Number-1] = one.stamp(t.Number-1), t
	}
	s.shown[one.ID], s.shares[one.ID] = State{one.Search, shown}, one.share(s.cfg.Now())
	s.mu.Unlock()
	if s.cfg.AfterSave != nil {
		s.cfg.AfterSave()
	}
	return nil
}

func (x *search) stamp(i int) stamp {
	t, j := &x.brain.Trials[i], &x.jobs[i]
	return stamp{
		t.State, t.Busy, j.Renewed, j.Cleaned, t.Attempt, t.Passed, len(t.Reports), len(j.Jobs), len(t.Log),
		j.Todo, j.Base.Seconds, t.Reason, j.Trouble,
	}
}
