package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

var errInjected = errors.New("injected")

// memory keeps records as JSON, so that no one shares a pointer with the past.
type memory struct {
	saved   map[driver.JobID][]byte
	decoded map[driver.JobID]*reconcile.Record // of what is saved now
	saves   int
	// before and after are asked around each save; an error of before is what the
	// caller gets, and nothing is kept.
	before, after func(r *reconcile.Record) error
	failNext      bool // the next save fails
}

func newMemory() *memory {
	return &memory{saved: map[driver.JobID][]byte{}, decoded: map[driver.JobID]*reconcile.Record{}}
}

func (m *memory) Load(_ context.Context, id driver.JobID) (*reconcile.Record, error) {
	raw, ok := m.saved[id]
	if !ok {
		return nil, reconcile.ErrNoRecord
	}
	if r := m.decoded[id]; r != nil {
		return r.Clone(), nil
	}
	var r reconcile.Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	m.decoded[id] = &r
	return r.Clone(), nil
}

func (m *memory) Save(_ context.Context, r *reconcile.Record) error {
	if m.failNext {
		m.failNext = false
		return errInjected
	}
	if m.before != nil {
		if err := m.before(r); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	m.saved[r.Job] = raw
	delete(m.decoded, r.Job)
	m.saves++
	if m.after != nil {
		return m.after(r)
	}
	return nil
}

func (m *memory) All(ctx context.Context) ([]*reconcile.Record, error) {
	var out []*reconcile.Record
	for id := range m.saved {
		r, err := m.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *reconcile.Record) int { return a.Submitted.Compare(b.Submitted) })
	return out, nil
}

// idle is an empty queue: these tests call Reconcile themselves.
type idle struct{}

func (idle) Get(ctx context.Context) (driver.JobID, error) { <-ctx.Done(); return "", ctx.Err() }
func (idle) Done(driver.JobID)                             {}
func (idle) AddAfter(driver.JobID, time.Duration)          {}

// world is a simulated cluster, durable records, and rooms that do as they are
// told. All of it outlives a loop. It is used by one goroutine inside a bubble.
type world struct {
	ctx     context.Context //nolint:containedctx // a world lives no longer than its bubble
	cluster *sim.Cluster
	records *memory
	loop    *reconcile.Loop

	// scheduler is asked in the cluster's place; nil: the cluster.
	scheduler reconcile.Scheduler

	mu     sync.Mutex // for faults, which the cluster asks for
	faults map[string]error

	policy  tuning.Policy
	site    tuning.Site
	gate    tuning.Reason
	decide  func(tuning.State) tuning.Decision
	compare func(verify.Input) tuning.Outcome
	read    func(driver.Job) reconcile.Reading

	// release ends the wait of held jobs; nil: it goes on.
	release func(context.Context, driver.JobID) error
	// listen starts listeners; nil: the scheduler does so itself.
	listen func(id driver.JobID, attempt int) error
	// outlook answers in the scheduler's place; nil asks the cluster.
	outlook func(driver.JobID) (driver.Outlook, error)
	recall  func(reconcile.Question) reconcile.Recollection
	shares  func() tuning.Share // of the trials of a search
	past    []tuning.PastRun
	returns func(search.Returning) tuning.Returns
	breaks  func(search.Returning, tuning.Settings) bool
	stands  func(search.Returning, tuning.Settings) (tuning.Outcome, bool)
	refused func(tuning.Policy, []tuning.Trial, tuning.Settings) tuning.Reason
	cleared time.Time // durable, as the controller's pauses are
	epoch   func(e *tuning.Epoch)
	profile func(m *reconcile.Measurement) // of usable ones
	asked   map[int]int                    // measurements by attempt

	// foresee, teach and curves are joined as they are, at the next restart; nil: no one
	// forecasts.
	foresee func(forecast.Work) tuning.Forecast
	teach   func(forecast.Work) []tuning.CurveLesson
	curves  func(context.Context, tuning.JobKind) ([]tuning.CurveLesson, error)

	adapt func(settings map[string]string) error // nil: the scheduler cannot

	auditFails bool
	pauseFails bool    // once
	offers     *offers // nil: jobs begin as they are

	audits  []reconcile.Audit
	lessons []knowledge.Observation
	pauses  []string
	// trace is what happened in order: "audit ID", "save ID", "advance ID STATE",
	// and "gated advance ID STATE" while a gate was closed.
	trace []string
}

func newWorld(ctx context.Context, cfg sim.Config) (*world, error) {
	w := &world{
		ctx: ctx, records: newMemory(), faults: map[string]error{},
		policy: policy(), site: tuning.DefaultSite(),
	}
	w.site.MaxMode, w.site.Control = tuning.Apply, 0
	w.records.before = func(r *reconcile.Record) error {
		if r.Move != nil {
			w.note("save %s", r.Move.Driver.ID)
		}
		return nil
	}
	cfg.Faults = func(op string, _ driver.JobID) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.faults[op]
	}
	var err error
	w.cluster, err = sim.New(cfg)
	w.restart()
	return w, err
}

// policy allows everything that these tests do.
func policy() tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Mode = tuning.Apply
	p.Knobs = []tuning.Knob{{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4)}}}
	p.Progress = tuning.Progress{Pattern: pattern}
	p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1", Grace: 10 * time.Second, Exit: 85}
	p.Budget = tuning.Budget{Restarts: 10, Probes: 10}
	return p
}

const pattern = `^epoch (?P<epoch>\d+)/(?P<total>\d+)`

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// restart is a crash: a new loop over what was durable.
func (w *world) restart() {
	var scheduler reconcile.Scheduler = w.cluster
	if w.scheduler != nil {
		scheduler = w.scheduler
	}
	w.loop = reconcile.New(reconcile.Config{
		Scheduler: scheduler, Records: w.records, Queue: idle{}, Services: w.services(), Stages: w.stages(), Log: slog.New(slog.DiscardHandler),
		Tick: time.Second, Step: 200 * time.Millisecond,
	})
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	_ = w.loop.Run(ended) // restores what counts across jobs, and ends
}

// stages are the default ones where the test does not script them.
func (w *world) stages() reconcile.Stages {
	s := reconcile.DefaultStages()
	s.Choose = w.deciding
	s.Explain = func(_ tuning.State, d tuning.Decision) tuning.Decision { return d }
	s.Refused = func(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason {
		if w.refused == nil {
			return tuning.ReasonNone
		}
		return w.refused(p, trials, s)
	}
	s.Propose = func(search.Study) tuning.Proposal { return tuning.Proposal{NextReason: tuning.ReasonProbesDone} }
	s.Return = func(r search.Returning) tuning.Returns {
		if w.returns == nil {
			return tuning.Returns{}
		}
		return w.returns(r)
	}
	s.Breaks = func(r search.Returning, s tuning.Settings) bool { return w.breaks != nil && w.breaks(r, s) }
	s.Stands = func(r search.Returning, s tuning.Settings) (tuning.Outcome, bool) {
		if w.stands == nil {
			return tuning.Outcome{}, false
		}
		return w.stands(r, s)
	}
	s.Compare = func(in verify.Input) tuning.Outcome {
		if w.compare == nil {
			return tuning.Outcome{Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive}
		}
		return w.compare(in)
	}
	if w.foresee != nil {
		s.Forecast = w.foresee
	}
	if w.teach != nil {
		s.Teach = w.teach
	}
	return s
}

func (w *world) services() reconcile.Services {
	s := reconcile.Services{
		Curves: w.curves,
		Listen: func(_ context.Context, id driver.JobID, attempt int, _ tuning.Progress) error {
			if w.listen == nil {
				return nil
			}
			return w.listen(id, attempt)
		},
		Release:  w.release,
		Read:     w.reading,
		Site:     func(driver.Job) tuning.Site { return w.site },
		Measure:  w.measure,
		Classify: func(tuning.Profile) tuning.Class { return tuning.Class{Reason: tuning.ReasonNoModel} },
		Recall: func(_ context.Context, q reconcile.Question) (reconcile.Recollection, error) {
			if w.recall == nil {
				return reconcile.Recollection{}, nil
			}
			return w.recall(q), nil
		},
		Past: func(context.Context, tuning.JobKind) ([]tuning.PastRun, error) { return w.past, nil },
		Step: w.step,
		Learn: func(_ context.Context, o knowledge.Observation, _ string) error {
			w.lessons = append(w.lessons, o)
			return nil
		},
		Gate: func(driver.Job) tuning.Reason { return w.gate },
		Outlook: func(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
			if w.outlook == nil {
				return w.cluster.Outlook(ctx, id)
			}
			return w.outlook(id)
		},
		Pause: func(_ context.Context, why string) error {
			if w.pauseFails {
				w.pauseFails = false
				return errInjected
			}
			w.pauses, w.cleared = append(w.pauses, why), time.Now()
			return nil
		},
		Cleared: func() time.Time { return w.cleared },
		Audit: func(_ context.Context, a reconcile.Audit) error {
			if w.auditFails {
				return errInjected
			}
			w.audits = append(w.audits, a)
			if a.Actor == "tuner" { // what the scheduler did by itself has no intent
				w.note("audit %s", a.Intent)
			}
			return nil
		},
	}
	if w.shares != nil {
		s.Share = func(string) tuning.Share { return w.shares() }
	}
	if w.adapt != nil {
		s.Adapt = func(_ context.Context, _ driver.JobID, settings map[string]string) error { return w.adapt(settings) }
	}
	if w.offers != nil {
		s.Offers = w.offers
	}
	return s
}

func (w *world) reading(_ context.Context, job driver.Job) reconcile.Reading {
	if w.read != nil {
		return w.read(job)
	}
	return reconcile.Reading{
		Policy: w.policy, Own: own(job), Kind: tuning.JobKind{Owner: job.Owner, Name: job.Name},
	}
}

func own(job driver.Job) tuning.Settings {
	out := cores(job.Resources.Cores)
	if m := job.Resources.MemoryBytes; m > 0 {
		out[tuning.Memory] = tuning.Number(float64(m))
	}
	return out
}

func cores(n int) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(float64(n))} }

// deciding puts the planner's first rule before whatever a test wants: a closed
// gate holds.
func (w *world) deciding(s tuning.State) tuning.Decision {
	if s.Gate != tuning.ReasonNone {
		return tuning.Decision{Action: tuning.Hold, Reason: s.Gate, At: s.Now}
	}
	return w.decide(s)
}

func (w *world) step(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error) {
	state := driver.State("unknown")
	w.mu.Lock()
	faults := w.faults
	w.faults = nil
	w.mu.Unlock()
	if job, err := w.cluster.Get(ctx, in.Job); err == nil {
		state = job.State
	}
	w.mu.Lock()
	w.faults = faults
	w.mu.Unlock()
	gated := ""
	if w.gate != tuning.ReasonNone {
		gated = "gated "
	}
	w.note("%sadvance %s %s", gated, in.ID, state)
	return reconcile.Step(ctx, w.cluster, in)
}

// measure reads the marks alone: one epoch of warm-up and one that counts make a
// profile. What a profile holds does not matter here.
func (w *world) measure(ctx context.Context, q reconcile.MeasureRequest) (reconcile.Measurement, error) {
	window, err := w.cluster.Window(ctx, string(q.Job), q.Attempt, 0)
	if err != nil {
		return reconcile.Measurement{}, err
	}
	m := reconcile.Measurement{Reason: tuning.ReasonProfiling, Heard: window.Job.Started}
	last := window.Job.Started
	for _, s := range window.Samples {
		if s.Mark == nil {
			continue
		}
		m.Total = s.Mark.Total
		m.Epochs = append(m.Epochs, tuning.Epoch{
			Number: s.Mark.Epoch, Attempt: q.Attempt, Start: last, End: s.Time, Settings: q.Settings, Warmup: len(m.Epochs) == 0,
		})
		last = s.Time
	}
	if w.asked == nil {
		w.asked = map[int]int{}
	}
	w.asked[q.Attempt]++
	if w.epoch != nil {
		for i := range m.Epochs {
			w.epoch(&m.Epochs[i])
		}
	}
	if len(m.Epochs) > 1 {
		m.Reason = tuning.ReasonNone
		m.Profile = tuning.Profile{Schema: "test/1", Settings: q.Settings, PeakRSS: 1 << 20}
		if w.profile != nil {
			w.profile(&m)
		}
	}
	return m, nil
}

// fault lets every such operation fail; nil ends that.
func (w *world) fault(op string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults == nil {
		w.faults = map[string]error{}
	}
	w.faults[op] = err
}

// submit starts a job that behaves as the #SIM words say, held for a second.
func (w *world) submit(name, behaviour string) (driver.Job, error) {
	source := fmt.Sprintf("#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=4\n#SIM %s\nexec ./%s\n", name, behaviour, name)
	return w.cluster.Start(w.ctx, driver.RequestID(name), driver.Spec{
		Owner: "alice", Filename: name + ".sbatch", Source: []byte(source), Progress: driver.Progress{Pattern: pattern},
		NotBefore: time.Now().Add(time.Second),
	})
}

// look reconciles once and lets the time pass until the next look.
func (w *world) look(id driver.JobID) error {
	again, err := w.loop.Reconcile(w.ctx, id)
	if err != nil || again == 0 { // 0: not before the job changes, which these tests do not hear of
		again = 500 * time.Millisecond
	}
	time.Sleep(min(max(again, time.Millisecond), time.Second))
	return err
}

// drive looks at a job until it is over for the tuner; an error says that it
// never was.
func (w *world) drive(id driver.JobID) error {
	var last error
	for range 2000 {
		last = w.look(id)
		if r, err := w.records.Load(w.ctx, id); err == nil && r.Phase.Over() {
			return nil
		}
	}
	job, err := w.cluster.Get(w.ctx, id)
	return fmt.Errorf("job %s is %s and never over; last error: %w", id, job.State, errors.Join(last, err))
}

// verdicts gives one after the other.
func verdicts(list []tuning.Verdict, next *int) func(verify.Input) tuning.Outcome {
	return func(c verify.Input) tuning.Outcome {
		v := list[*next%len(list)]
		*next++
		return tuning.Outcome{Verdict: v, Reason: tuning.Reason(v), Tuned: c.Tuned}
	}
}
