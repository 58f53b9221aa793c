package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// services connects the stages of the pipeline. It holds what they share: the knowledge,
// the newest model of classes, and the windows of samples.
type services struct {
	driver    driver.Driver
	parse     detect.Parser
	nodes     *nodes.Exporters
	store     *knowledge.Store
	site      *config.SitePolicy
	pauses    *pauses
	audit     *durable.Log // lines of JSON, each on disk before the effect that it announces
	candidate *Candidate   // nil: this controller is alone
	log       *slog.Logger

	refitting sync.Mutex
	mu        sync.Mutex
	windows   map[windowKey]*attemptWindow
	model     atomic.Pointer[classify.Model] // changed under mu, with judged; nil: none was fitted
	judged    map[string]judged              // by observation id
	billings  map[string]billed              // by partition
}

func (r *services) bind() reconcile.Services {
	s := reconcile.Services{
		Read: r.read, Site: r.siteFor, Measure: r.measure, Classify: r.classify, Recall: r.recall, Past: r.past, Curves: r.curves,
		Step: r.step, Learn: r.learn, Gate: r.pauses.gate, Outlook: r.driver.Outlook, Pause: r.pause, Cleared: r.pauses.clearedAt,
		Audit: r.note, Offers: offers{r.store},
	}
	if l, ok := r.driver.(driver.Releaser); ok {
		s.Release = l.Release
	}
	if l, ok := r.driver.(driver.Listener); ok {
		s.Listen = func(ctx context.Context, id driver.JobID, attempt int, p tuning.Progress) error {
			if err := r.candidate.Leads(ctx); err != nil {
				return err
			}
			return l.Listen(ctx, id, attempt, progress(p))
		}
	}
	if l, ok := r.driver.(driver.Adapter); ok {
		s.Adapt = func(ctx context.Context, id driver.JobID, settings map[string]string) error {
			if err := r.candidate.Leads(ctx); err != nil {
				return err
			}
			return l.Adapt(ctx, id, settings)
		}
	}
	return s
}

func (r *services) read(ctx context.Context, job driver.Job) reconcile.Reading {
	reading := r.readFile(job)
	reading.Policy.Tariff = r.tariff(ctx, job, reading.Own)
	return reading
}

func (r *services) readFile(job driver.Job) reconcile.Reading {
	file, err := r.parse(job.Filename, job.Source, job.Variables)
	reading := reconcile.Reading{Kind: tuning.JobKind{Owner: job.Owner, Name: job.Name, Fingerprint: job.Resources.Command}}
	if err != nil {
		reading.Reason, reading.Detail = tuning.ReasonBadStanza, err.Error()
		return reading
	}
	policy, err := stanza.Policy(file)
	reading.Detail = file.Warnings.Error()
	switch {
	case errors.Is(err, stanza.ErrNone):
		reading.Reason = tuning.ReasonNoStanza
		return reading
	case err != nil:
		reading.Reason, reading.Detail = tuning.ReasonBadStanza, err.Error()
		return reading
	}
	reading.Own = own(job, file, policy)
	if id := trials.SearchOf(job); id != "" && policy.Search != nil {
		policy = policy.Trial()
		policy.TrialOf.ID = id
	}
	policy.Sources = stanza.Places(file)
	reading.Policy = policy.Carried(verdict.Reach(r.driver.Name(), r.driver.Capabilities()))
	if limits := reading.Policy.Limits; len(limits) > 0 {
		reading.Detail = strings.TrimPrefix(reading.Detail+"\n", "\n") + "The driver for " + r.driver.Name() + " cannot set these knobs of the job: " +
			strings.Join(tuning.Each(limits, func(l tuning.Limit) string { return l.Knob }), ", ")
	}
	return reading
}

// own are the owner's settings: those of the job file and the environment of the
// submission. The scheduler's record overrides the file, since it has the options of the
// command line and later changes.
func own(job driver.Job, file *jobfile.Job, p tuning.Policy) tuning.Settings {
	shown := *file
	if asked := job.Resources; file.Cores > 0 && asked.Cores > 0 {
		shown.Cores, shown.MemoryBytes = asked.Cores, asked.MemoryBytes
	}
	shown.Env = map[string]string{}
	maps.Copy(shown.Env, job.Resources.Env)
	for name, v := range file.Env {
		_, given := shown.Env[name]
		if _, fixed := file.Fixed[name]; fixed || !given {
			shown.Env[name] = v // the script's own assignments override the submission's
		}
	}
	out := stanza.Own(&shown, p)
	// What the scheduler gave counts where the file says nothing.
	for name, n := range map[string]int{tuning.Cores: job.Resources.Cores, tuning.GPUs: job.Resources.GPUs} {
		if _, known := out[name]; !known && n > 0 {
			out[name] = tuning.Number(float64(n))
		}
	}
	return out
}

func (r *services) siteFor(job driver.Job) tuning.Site {
	if !r.driver.Capabilities().Accounts {
		return r.site.For("", "", "", job.Owner) // a job file may claim any partition, account and QOS
	}
	return r.site.For(job.Partition, job.Account, job.QOS, job.Owner)
}

type billed struct {
	driver.Billing
	at time.Time
}

// billingAge is how long an answer of the scheduler about its billing is valid.
const billingAge = 10 * time.Minute

// tariff is what a job is charged under its owner's settings. Where the scheduler does not
// answer, its last answer is used; without one a core-hour costs 1.
func (r *services) tariff(ctx context.Context, job driver.Job, own tuning.Settings) tuning.Tariff {
	site := r.siteFor(job)
	b, known := r.billing(ctx, job.Partition)
	t := site.Tariff
	switch {
	case t.Billed && known:
		t = tuning.Tariff{CoreHour: b.Core, GiBHour: b.GiB, GPUHour: b.GPU, Dearest: b.Dearest, Unit: "billing-hours"}
	case t.Billed:
		r.log.Warn("the scheduler does not say what it bills: a core-hour costs 1", "job", job.ID, "partition", job.Partition)
		t = tuning.DefaultTariff()
	}
	t.Modelled = site.EnforceModel
	if b.Whole || job.Resources.Whole {
		return t.Fixed(own)
	}
	return t
}

func (r *services) billing(ctx context.Context, partition string) (driver.Billing, bool) {
	biller, ok := r.driver.(driver.Biller)
	if !ok {
		return driver.Billing{}, false
	}
	r.mu.Lock()
	last, known := r.billings[partition]
	r.mu.Unlock()
	if known && time.Since(last.at) < billingAge {
		return last.Billing, true
	}
	b, err := biller.Billing(ctx, partition)
	if err != nil {
		r.log.Warn("the scheduler's billing is unknown", "partition", partition, "error", err)
		return last.Billing, known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.billings == nil {
		r.billings = map[string]billed{}
	}
	r.billings[partition] = billed{b, time.Now()}
	return b, true
}

func progress(p tuning.Progress) driver.Progress {
	return driver.Progress{Pattern: p.Pattern, File: p.File, Total: p.Total}
}

func (r *services) pause(ctx context.Context, why string) error {
	r.log.Error("the tuner pauses itself", "why", why)
	now := time.Now()
	err := r.note(ctx, reconcile.Audit{
		At: now, Actor: "tuner", Job: ScopeCluster + "/", Action: "pause", Reason: tuning.ReasonPaused,
	})
	return errors.Join(err, r.pauses.put(api.Pause{Scope: ScopeCluster, By: byTuner, Why: why, At: now}))
}

// step takes a step of an intent where this controller leads: a standby's view of the job
// may be old. Any time can pass between this check and the effect, so that the driver
// checks the job's attempt as well.
func (r *services) step(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error) {
	if err := r.candidate.Leads(ctx); err != nil {
		return driver.Step{}, tuning.ReasonNone, fmt.Errorf("advance %s: %w", in.Job, err)
	}
	return reconcile.Step(ctx, r.driver, in)
}

func (r *services) classify(p tuning.Profile) tuning.Class {
	model := r.model.Load()
	if model == nil {
		return tuning.Class{Reason: tuning.ReasonNoModel}
	}
	return model.Classify(p)
}

func (r *services) past(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
	obs, err := r.store.Observations(kind)
	return knowledge.PastRuns(obs, kind, time.Now()), err
}

// curves returns how good the forecasts of earlier jobs of a kind were.
func (r *services) curves(_ context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error) {
	obs, err := r.store.Observations(kind)
	return knowledge.CurveLessons(obs, kind, forecast.Remembered), err
}

func (r *services) note(_ context.Context, entry reconcile.Audit) error {
	if err := r.audit.Append(entry, true); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}
