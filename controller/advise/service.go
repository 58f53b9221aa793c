package advise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Given is the durable intent of one job.
type Given struct {
	Intent    string        `json:"intent"`
	Job       driver.JobID  `json:"job"`
	Owner     string        `json:"owner"`
	Submitted time.Time     `json:"submitted"`
	From      time.Duration `json:"from"` // the time limit before
	Own       time.Duration `json:"own"`  // the owner's time limit; 0 = none
	Advice    driver.Advice `json:"advice"`
	Action    string        `json:"action"` // advise, extend, withdraw
	Made      time.Time     `json:"made"`
	State     State         `json:"state"`
	Detail    string        `json:"detail,omitempty"`
	Items     []Item        `json:"items"`

	// Lowered is the shorter time limit that the job was given; 0 = none was.
	Lowered time.Duration `json:"lowered,omitempty"`
}

// Config is what a Service needs.
type Config struct {
	Scheduler driver.Adviser
	Learn     func(ended []driver.Job)         // how long jobs run
	Forecast  func(driver.Job) Forecast        // by what was learned
	All       func() (map[string]Given, error) // that are kept, by job
	Save      func(Given) error                // it is durable when this returns
	Forget    func(job string) error
	Site      func(driver.Job) tuning.Site
	Gate      func(driver.Job) tuning.Reason // why a job may not be changed now
	Tuned     func(driver.Job) bool          // the tuner changes it
	Leads     func(context.Context) error    // nil where this controller may act
	Audit     func(context.Context, Given) error
	Every     time.Duration // between two rounds
	Log       *slog.Logger
	Now       func() time.Time
}

// Service takes rounds. Use New.
type Service struct {
	cfg     Config
	given   map[string]Given // of a round
	learned map[string]bool  // runs that ended and were in the last queue

	mu   sync.RWMutex
	rows []Item
	live []Job // of the last round; replaced, never changed
}

const (
	// remembered is how far back the accounting is asked, and how long an intent stays: the
	// accounting shows the limit that it gave, and forecasts go by the owner's.
	remembered = 30 * 24 * time.Hour
	// most is how many waiting jobs a round changes: each costs the scheduler some calls.
	most = 50
)

// New makes a Service; it does nothing before Run.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Rows returns the items of the last round.
func (s *Service) Rows() []Item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.rows)
}

// Job is a job that the last round saw and that the tuner leaves alone.
func (s *Service) Job(id driver.JobID) (driver.Job, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if k := slices.IndexFunc(s.live, func(j Job) bool { return j.ID == id }); k >= 0 {
		return s.live[k].Job, true
	}
	return driver.Job{}, false
}

// Run takes rounds until the context ends.
func (s *Service) Run(ctx context.Context) error {
	for {
		if err := s.Round(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a round of advice ends early", "error", err)
		}
		if err := driver.Pause(ctx, s.cfg.Every); err != nil {
			return err //nolint:wrapcheck // the caller ended it
		}
	}
}

// begin reads what the last process left, and learns from the past.
func (s *Service) begin(ctx context.Context) (err error) {
	if s.given, err = s.cfg.All(); err != nil {
		return fmt.Errorf("advice: %w", err)
	}
	now := s.cfg.Now()
	past, err := s.cfg.Scheduler.Past(ctx, now.Add(-remembered), now)
	if err != nil {
		s.cfg.Log.Warn("forecasts of durations lack jobs of the past", "error", err)
	}
	s.learn(past)
	return nil
}

// Round looks, learns, decides and acts once.
func (s *Service) Round(ctx context.Context) error {
	if s.given == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	queue, err := s.cfg.Scheduler.Queue(ctx)
	if err != nil {
		return fmt.Errorf("advice: %w", err)
	}
	s.learn(queue)
	var jobs []Job
	for _, j := range queue {
		if !j.State.Ended() && !s.cfg.Tuned(j) {
			jobs = append(jobs, s.view(j))
		}
	}
	if err := s.forget(jobs); err != nil {
		return err
	}
	todo, acted := map[driver.JobID][]Item{}, map[driver.JobID]bool{}
	for _, i := range For(jobs) {
		todo[i.Job] = append(todo[i.Job], i)
	}
	for _, j := range jobs {
		if g, ok := s.intent(j, todo[j.ID]); ok && (j.running() || len(acted) < most) {
			acted[j.ID] = true
			err = errors.Join(err, s.act(ctx, g))
		}
	}
	s.show(jobs, todo, acted)
	return err
}

// learn teaches the forecasts by jobs that ended and ran for a known time, each run of them once.
func (s *Service) learn(queue []driver.Job) {
	var fresh []driver.Job
	runs := map[string]bool{}
	for _, j := range queue {
		run := fmt.Sprint(j.ID, j.Started.Unix())
		known := j.State == driver.Succeeded || j.State == driver.Failed || j.State == driver.TimeExceeded
		if !known || j.Started.IsZero() || j.Ended.Before(j.Started) {
			continue
		}
		if runs[run] = true; s.learned[run] {
			continue
		}
		if g, ok := s.known(j); ok && g.Own > 0 {
			j.Resources.TimeLimit = g.Own
		}
		fresh = append(fresh, j)
	}
	if s.learned = runs; len(fresh) > 0 {
		s.cfg.Learn(fresh)
	}
}

// known is the intent of this job, and not of one that had its number before.
func (s *Service) known(j driver.Job) (Given, bool) {
	g, ok := s.given[string(j.ID)]
	return g, ok && g.Owner == j.Owner && !j.Submitted.Before(g.Submitted)
}

// view adds to a job of the queue what advice is based on.
func (s *Service) view(j driver.Job) Job {
	job := Job{Job: j, Own: j.Resources.TimeLimit, Site: s.cfg.Site(j)}
	if g, ok := s.known(j); ok && job.Own == g.Lowered && job.Own > 0 {
		job.Own = g.Own // any other limit is its owner's new word
	}
	if job.running() {
		job.Ran = s.cfg.Now().Sub(j.Started)
	}
	j.Resources.TimeLimit = job.Own
	job.Forecast = s.cfg.Forecast(j)
	return job
}

// intent returns the advice to send for a job now; not ok: nothing to send.
func (s *Service) intent(j Job, items []Item) (Given, bool) {
	g, known := s.known(j.Job)
	now, waits, has := s.cfg.Now(), j.State == driver.Pending, j.Resources.TimeLimit
	free := j.Site.Advice == tuning.AdviceApply && !j.Site.DryRun && s.cfg.Gate(j.Job) == tuning.ReasonNone
	next := Given{
		Intent: fmt.Sprintf("%s/advice/%d", j.ID, now.UnixMicro()), Job: j.ID, Owner: j.Owner, Submitted: j.Submitted, Made: now, State: Intended,
		From: has, Own: j.Own, Advice: driver.Advice{Job: j.ID}, Action: "advise",
	}
	lowered := has < j.Own
	if lowered {
		next.Lowered, next.Items = g.Lowered, g.Items
	}
	switch {
	case !waits && lowered && slices.ContainsFunc(items, func(i Item) bool { return i.What == TimeLimit && i.To > i.From }):
		if next.Action = "extend"; g.Action != next.Action {
			return next, true
		}
	case waits && !free && known && g.Action == "advise" && (g.State == Applied || g.State == Intended):
		next.Action, next.Items = "withdraw", g.Items
		return next, true
	}
	if known && g.State == Intended {
		return g, true // once more: its outcome is unknown
	}
	if !waits || !free || known && g.State != Withdrawn {
		return next, false
	}
	next.Items = nil
	for _, i := range items {
		switch {
		case i.State == Held || i.What == Packing:
			continue
		case i.What == TimeLimit:
			next.Advice.TimeLimit = time.Duration(i.To) * time.Second
			next.Lowered = next.Advice.TimeLimit
		case i.What == Nice:
			next.Advice.Nice = int(i.To)
		case i.What == Affinity:
			next.Advice.Class = i.Class
		}
		next.Items = append(next.Items, i)
	}
	return next, next.Advice != driver.Advice{Job: j.ID}
}

// act carries out an intent: audited and durable first, and durable again when it was answered.
func (s *Service) act(ctx context.Context, g Given) error {
	if err := s.cfg.Leads(ctx); err != nil {
		return err
	}
	if s.given[string(g.Job)].Intent != g.Intent {
		if err := s.cfg.Audit(ctx, g); err != nil {
			return err
		}
		if err := s.save(g); err != nil {
			return err
		}
	}
	err := s.cfg.Scheduler.Advise(ctx, g.Advice)
	switch {
	case err == nil:
		g.State = map[string]State{"advise": Applied, "extend": Extended, "withdraw": Withdrawn}[g.Action]
	case errors.Is(err, driver.ErrTransient), errors.Is(err, driver.ErrUnknown):
		return fmt.Errorf("advice: %w", err) // it stays intended
	default:
		g.State, g.Detail = Refused, err.Error()
	}
	return s.save(g)
}

func (s *Service) save(g Given) error {
	err := s.cfg.Save(g)
	if err == nil {
		s.given[string(g.Job)] = g
	}
	return err //nolint:wrapcheck // the store's names the job
}

func (s *Service) forget(live []Job) (err error) {
	for id, g := range s.given {
		if s.cfg.Now().Sub(g.Made) > remembered && !slices.ContainsFunc(live, func(j Job) bool { return j.ID == g.Job }) {
			err = errors.Join(err, s.cfg.Forget(id))
			delete(s.given, id)
		}
	}
	return err
}

// show keeps what the round found for queries: what a job was given, else what it would get.
func (s *Service) show(jobs []Job, found map[driver.JobID][]Item, acted map[driver.JobID]bool) {
	var rows []Item
	for _, j := range jobs {
		g, ok := s.known(j.Job)
		if ok = ok && g.State != Withdrawn; ok {
			if g.State == Applied && !acted[j.ID] && g.Lowered > 0 && j.Resources.TimeLimit > g.Lowered {
				g.State = Extended // by the scheduler's side
			}
			for _, i := range g.Items {
				i.State, i.Detail = g.State, g.Detail
				rows = append(rows, i)
			}
		}
		for _, i := range found[j.ID] {
			if !ok || i.State == Held || i.What == Packing {
				rows = append(rows, i)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.live = rows, jobs
}
