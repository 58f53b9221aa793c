package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
)

// Scheduler reads jobs.
type Scheduler interface {
	Get(ctx context.Context, id driver.JobID) (driver.Job, error)
}

// Queue hands out the ids of jobs to reconcile.
type Queue interface {
	Get(ctx context.Context) (driver.JobID, error)
	Done(id driver.JobID)
	AddAfter(id driver.JobID, d time.Duration)
}

// Config is what a Loop needs.
type Config struct {
	Scheduler   Scheduler
	Records     Records
	Queue       Queue
	Services    Services
	Stages      Stages // DefaultStages outside of tests and comparisons
	Log         *slog.Logger
	Tick        time.Duration // how often a running job is measured, default 500 ms
	Step        time.Duration // how often an intent is advanced, default 100 ms
	RestartCost time.Duration // assumed until one was measured; default 3 s
	// Now is the clock; nil = time.Now. A replay of recorded jobs has another.
	Now func() time.Time

	// AfterSave is called after each durable write. It is nil outside of crash tests.
	AfterSave func(r *Record)
}

const workerCount = 4

// Loop reconciles jobs. Use New.
type Loop struct {
	cfg      Config
	services Services
	stages   Stages
	mu       sync.Mutex
	failures map[driver.JobID]int
	jobs     map[driver.JobID]*inMemory
	caps     caps
}

// inMemory is what is kept of a live job only in memory. One worker at a time uses it.
type inMemory struct {
	seen      bool           // its scheduler showed it since this controller began
	outlook   driver.Outlook // as the scheduler last said
	outlookAt time.Time
	listening int       // the attempt whose listener was last checked
	listenAt  time.Time // when to check it again

	known   Recollection // as last recalled, at knownAt, of the job as it was then
	knownAt time.Time
	knownOf recalled
}

// recalled is what a question to the knowledge depends on most.
type recalled struct {
	phase           Phase
	attempt, epochs int
	class           string // and the fit of the model that named it
	measure         tuning.Measure
}

// recallTicks is how many ticks the knowledge about a running job counts as new: many jobs of one kind
// ask the same question.
const recallTicks = 10

func (l *Loop) inMemory(id driver.JobID) *inMemory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[id] == nil {
		l.jobs[id] = &inMemory{}
	}
	return l.jobs[id]
}

// New makes a Loop; it does nothing before Run.
func New(cfg Config) *Loop {
	cfg.Tick = cmp.Or(cfg.Tick, 500*time.Millisecond)
	cfg.Step = cmp.Or(cfg.Step, 100*time.Millisecond)
	cfg.RestartCost = cmp.Or(cfg.RestartCost, 3*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Loop{cfg: cfg, services: cfg.Services, stages: cfg.Stages, failures: map[driver.JobID]int{}, jobs: map[driver.JobID]*inMemory{}}
}

// Run works until ctx ends and returns its error. The next Run continues where it stopped.
func (l *Loop) Run(ctx context.Context) error {
	records, err := l.cfg.Records.All(ctx)
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	l.caps.restore(records)
	for _, r := range records {
		if !r.Phase.Over() { // its scheduler may have forgotten it, and names it no more
			l.cfg.Queue.AddAfter(r.Job, 0)
		}
	}
	var workers sync.WaitGroup
	for range workerCount {
		workers.Go(func() {
			for l.work(ctx) {
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

func (l *Loop) work(ctx context.Context) bool {
	id, err := l.cfg.Queue.Get(ctx)
	if err != nil {
		return false
	}
	defer l.cfg.Queue.Done(id)
	again, err := l.safely(ctx, id)
	l.mu.Lock()
	if err == nil {
		delete(l.failures, id)
	} else {
		l.failures[id]++
		again = backoff(l.failures[id])
	}
	l.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		l.cfg.Log.Warn("job will be reconciled again", "job", id, "after", again, "error", err)
	}
	if again > 0 {
		l.cfg.Queue.AddAfter(id, again)
	}
	return true
}

// One bad job never stops the others.
func (l *Loop) safely(ctx context.Context, id driver.JobID) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.cfg.Log.Error("panic while reconciling", "job", id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return l.Reconcile(ctx, id)
}

var errPanic = errors.New("panic")

func backoff(failures int) time.Duration {
	return min(time.Minute, 200*time.Millisecond<<min(failures, 9))
}

// patience is how long to wait until a waiting job is decided again: the longer it has waited,
// the longer. Its start is an event.
func (p *reconciliation) patience() time.Duration {
	waited := p.now.Sub(p.job.Submitted)
	return min(max(p.cfg.Tick, waited/10), max(p.cfg.Tick, time.Minute))
}

func (l *Loop) save(ctx context.Context, r *Record) error {
	if err := l.cfg.Records.Save(ctx, r); err != nil {
		return fmt.Errorf("save the record of %s: %w", r.Job, err)
	}
	if l.cfg.AfterSave != nil {
		l.cfg.AfterSave(r)
	}
	return nil
}

// ErrNoRecord means that the job is new.
var ErrNoRecord = errors.New("no record of this job")

// Records is the store of the records. Save is durable when it returns.
type Records interface {
	Load(ctx context.Context, id driver.JobID) (*Record, error) // ErrNoRecord
	Save(ctx context.Context, r *Record) error
	// All returns every record, for counts across jobs. Epochs and profiles may be left
	// out, and the caller must not change them.
	All(ctx context.Context) ([]*Record, error)
}

// Reading is what a job file says.
type Reading struct {
	Policy tuning.Policy
	Own    tuning.Settings
	Kind   tuning.JobKind
	Reason tuning.Reason // ReasonNoStanza or ReasonBadStanza where there is no policy
	Detail string        // the errors of a bad stanza
}

// Measurement is what the exporter knows about one attempt.
type Measurement struct {
	Epochs  []tuning.Epoch
	Total   int            // epochs in all, as the job says; 0 unknown
	Profile tuning.Profile // of its early epochs
	Peak    tuning.Bytes   // largest resident memory of the whole attempt; 0 unknown
	Joules  *tuning.Joules // of the whole attempt so far; nil unknown
	Source  string         // of Joules, as of an epoch's
	CPU     float64        // CPU seconds of the attempt so far
	CPUOver float64        // seconds over which it was counted
	Reason  tuning.Reason  // ReasonNone: the profile can be used
	Ended   bool           // the exporter saw its end: no more epochs follow
	Heard   time.Time      // since when ended epochs are reported; zero: some may be missing
	Fatal   bool           // the signal of its checkpoint would end it
}

// MeasureRequest names what to measure.
type MeasureRequest struct {
	Job     driver.JobID
	Attempt int
	Alias   string // the job's id at the exporters; empty = its own
	Unit    string // the attempt's id at the exporters; empty = job and number
	Node    string // where the attempt runs or ran; empty = unknown
	// From and To bound the attempt, by the node's clock: others had its id or its unit before
	// or after; zero: unbounded.
	From, To time.Time
	Still    []tuning.Span // in which it was suspended
	Siblings int           // other jobs of its kind that run on its node
	Settings tuning.Settings
	Policy   tuning.Policy
	Allowed  Allowance
}

// Question is a question to the knowledge.
type Question struct {
	Kind    tuning.JobKind
	Class   *tuning.Class // nil = not classified
	Own     tuning.Settings
	Policy  tuning.Policy
	Site    tuning.Site
	Node    string  // where the job runs; empty = not decided yet
	Seconds float64 // that its epochs take under Own; 0: not measured
	Machine string  // kind of machine that they ran on; empty = unknown

	// Live are the other jobs of the kind that have not ended, as far as they were measured.
	Live []knowledge.Observation
}

// Asker describes the job that asks the knowledge.
func (q Question) Asker() knowledge.Asker {
	known := map[string]bool{} // it is asked of each setting of each run
	learns := func(knob string) bool {
		does, ok := known[knob]
		if !ok {
			does = q.Policy.Learns(knob)
			known[knob] = does
		}
		return does
	}
	return knowledge.Asker{Kind: q.Kind, Own: q.Own, Learns: learns, Seconds: q.Seconds, Machine: q.Machine, Search: q.Policy.SearchID()}
}

// Recollection is the answer to a Question.
type Recollection struct {
	tuning.Knowledge
	Profile     *tuning.Profile // of the newest job of the kind under its owner's settings; nil: none
	RestartCost time.Duration   // as knowledge.RestartCost has it; 0 = unknown
	Restarts    int             // that it was measured in; 0: it is others', or the kind's start
	Reference   *tuning.Trial   // what the newest untuned job of the kind measured; nil: none did
}

// newest is how many of the newest observations of a kind effects are derived from. A kind whose jobs
// are the trials of searches has thousands, and each job asks several times. What does harm is recalled
// from all.
const newest = 128

// Recall is what the observations of the job's kind answer, the newest last. Its class, of
// which others' teach too, is not among it. Without usable there are no effects: nothing can
// be chosen, or they would be on computed joules.
func (q Question) Recall(obs []knowledge.Observation, usable bool, now time.Time) Recollection {
	var out Recollection
	a, m := q.Asker(), q.Policy.Measure()
	recent := obs[max(0, len(obs)-newest):]
	so := append(slices.Clip(recent), q.Live...)
	if usable {
		out.KindEffects = knowledge.Effects(so, a, m, now)
		out.Carried = knowledge.Carried(so, a, m, now)
		out.Profile = knowledge.KindProfile(so, a)
	}
	out.Regressed = knowledge.Regressions(append(slices.Clip(obs), q.Live...), q.Kind)
	out.PeakRSS, out.PeakRuns = knowledge.PeakRSS(recent, a)
	out.MemoryHeld, out.RestartsEnd = knowledge.MemoryHeld(obs, q.Kind), knowledge.RestartsEnd(obs, q.Kind)
	out.KindSeconds, out.KindRuns = knowledge.KindSeconds(so, a)
	if last, ok := knowledge.LastReference(recent, q.Kind); ok {
		out.Reference = &last
	}
	out.RestartCost, out.Restarts = knowledge.RestartCost(obs, q.Kind)
	return out
}

// Services connect the loop to job files, exporters, the knowledge, the scheduler and the
// audit.
type Services struct {
	Read    func(ctx context.Context, job driver.Job) Reading
	Site    func(job driver.Job) tuning.Site
	Measure func(ctx context.Context, r MeasureRequest) (Measurement, error)
	// Release starts a job that waits only for the tuner; nil: none waits so.
	Release func(ctx context.Context, id driver.JobID) error
	// Listen starts the listener inside a running attempt; nil: the scheduler starts it.
	// driver.ErrUnsupported: it cannot be started.
	Listen   func(ctx context.Context, id driver.JobID, attempt int, p tuning.Progress) error
	Classify func(p tuning.Profile) tuning.Class
	Recall   func(ctx context.Context, q Question) (Recollection, error)
	// Past are the earlier runs of a kind.
	Past func(ctx context.Context, kind tuning.JobKind) ([]tuning.PastRun, error)
	// Share is what the trials of a search share; nil: there are no searches.
	Share func(search string) tuning.Share
	// Curves are the errors of forecasts of ended jobs of a kind; nil: unknown.
	Curves func(ctx context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error)
	Step   func(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error)
	// Learn stores the observation of a job that last ran on the node; empty = unknown.
	Learn func(ctx context.Context, o knowledge.Observation, node string) error
	// Gate returns why a job must not be changed now, such as a pause; ReasonNone: it may. The
	// job's Submitted is its record's.
	Gate func(job driver.Job) tuning.Reason
	// Outlook is called only when a running job is about to be changed.
	Outlook func(ctx context.Context, id driver.JobID) (driver.Outlook, error)
	Pause   func(ctx context.Context, why string) error
	// Cleared is when the tuner last paused itself or was resumed: earlier regressions no
	// longer count. Zero: never.
	Cleared func() time.Time
	Audit   func(ctx context.Context, a Audit) error
	// Adapt puts settings into the settings file of a running job; nil: its scheduler cannot.
	Adapt func(ctx context.Context, id driver.JobID, settings map[string]string) error
	// Offers stores the settings offered to jobs that are about to be submitted; nil: they
	// start as their owners wrote them.
	Offers Offers
}

// Stages are the pure stages. Comparisons replace some.
type Stages struct {
	Propose  func(s search.Study) tuning.Proposal
	Refused  func(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason
	Return   func(r search.Returning) tuning.Returns
	Breaks   func(r search.Returning, s tuning.Settings) bool
	Stands   func(r search.Returning, s tuning.Settings) (tuning.Outcome, bool)
	Forecast func(w forecast.Work) tuning.Forecast
	Teach    func(w forecast.Work) []tuning.CurveLesson
	Choose   func(s tuning.State) tuning.Decision
	Explain  func(s tuning.State, d tuning.Decision) tuning.Decision
	Compare  func(in verify.Input) tuning.Outcome
}

// DefaultStages are the stages of the product.
func DefaultStages() Stages {
	return Stages{
		Propose: search.Study.Propose, Refused: search.Refused,
		Return: search.Returning.Propose, Breaks: search.Returning.Breaks, Stands: search.Returning.Stands,
		Forecast: forecast.Left, Teach: forecast.Work.Teach,
		Choose: plan.Choose, Explain: plan.Explain,
		Compare: verify.Compare,
	}
}

// Audit is one line of the append-only audit.
type Audit struct {
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"` // tuner, or the user who asked
	Job    string          `json:"job"`
	Action string          `json:"action"`
	Before tuning.Settings `json:"before,omitempty"`
	After  tuning.Settings `json:"after,omitempty"`
	Reason tuning.Reason   `json:"reason,omitempty"`
	Intent string          `json:"intent,omitempty"`
}
