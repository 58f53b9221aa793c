package advise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// world is a scheduler, a store and a forecast of ten minutes by as many jobs as were learned.
type world struct {
	jobs    []driver.Job
	asked   []driver.Advice
	fail    error // of the next advice, after its effect
	given   map[string]advise.Given
	log     []string // audits, saves and advice in their order
	learned []driver.Job
	site    tuning.Site
	gate    tuning.Reason
	now     time.Time
	runs    advise.Runs
	die     int // at the save of this number a process dies; 0 = at none
}

var errDead = errors.New("killed")

func (w *world) Queue(context.Context) ([]driver.Job, error) { return slices.Clone(w.jobs), nil }

func (w *world) Past(context.Context, time.Time, time.Time) ([]driver.Job, error) {
	return nil, driver.ErrUnsupported
}

func (w *world) Advise(_ context.Context, a driver.Advice) error {
	w.log = append(w.log, fmt.Sprintf("advise %v %d", a.TimeLimit, a.Nice))
	err := w.fail
	if w.fail = nil; err != nil && !errors.Is(err, driver.ErrUnknown) {
		return err
	}
	w.asked = append(w.asked, a)
	for i := range w.jobs {
		if w.jobs[i].ID == a.Job {
			w.jobs[i].Prefers = a.Class
			if w.jobs[i].Nice, w.jobs[i].Resources.TimeLimit = a.Nice, a.TimeLimit; a.TimeLimit == 0 {
				w.jobs[i].Resources.TimeLimit = ownLimit
			}
		}
	}
	return err
}

func (w *world) All() (map[string]advise.Given, error) { return maps.Clone(w.given), nil }

func (w *world) Save(g advise.Given) error {
	if w.die--; w.die == 0 {
		return errDead
	}
	w.log = append(w.log, "save "+string(g.State))
	w.given[string(g.Job)] = g
	return nil
}

func (w *world) Forget(job string) error { delete(w.given, job); return nil }

func (w *world) Learn(ended []driver.Job) { w.learned = append(w.learned, ended...) }

func (w *world) Forecast(driver.Job) advise.Forecast {
	return advise.Forecast{Samples: len(w.learned), Median: 600, Quantile: func(float64) float64 { return 600 }, Runs: w.runs}
}

const ownLimit = 8 * time.Hour

// newWorld has twenty ended jobs and one that waits.
func newWorld() *world {
	w := &world{given: map[string]advise.Given{}, site: tuning.DefaultSite(), now: time.Unix(1e9, 0)}
	w.site.Advice = tuning.AdviceApply
	job := driver.Job{Owner: "u", Submitted: w.now, Resources: driver.Resources{Cores: 1, TimeLimit: ownLimit}}
	for i := range advise.Enough {
		j := job
		j.ID, j.State, j.Started, j.Ended = driver.JobID(fmt.Sprint(i)), driver.Succeeded, w.now, w.now.Add(10*time.Minute)
		w.jobs = append(w.jobs, j)
	}
	job.ID, job.State = "77", driver.Pending
	w.jobs = append(w.jobs, job)
	return w
}

func (w *world) last() *driver.Job { return &w.jobs[len(w.jobs)-1] }

// service is a controller on what the last one left.
func (w *world) service(t *testing.T) *advise.Service {
	t.Helper()
	return advise.New(advise.Config{
		Scheduler: w, Learn: w.Learn, Forecast: w.Forecast, All: w.All, Save: w.Save, Forget: w.Forget, Now: func() time.Time { return w.now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Site: func(driver.Job) tuning.Site { return w.site }, Gate: func(driver.Job) tuning.Reason { return w.gate },
		Tuned: func(j driver.Job) bool { return j.Name == "tuned" }, Leads: func(context.Context) error { return nil },
		Audit: func(_ context.Context, g advise.Given) error { w.log = append(w.log, "audit "+g.Action); return nil },
	})
}

func round(t *testing.T, s *advise.Service, want error) {
	t.Helper()
	if err := s.Round(t.Context()); !errors.Is(err, want) {
		t.Fatalf("a round: %v, want %v", err, want)
	}
}

func TestAnIntentIsAuditedAndDurableBeforeItsEffectAndAJobIsAdvisedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t)
	round(t, s, nil)
	round(t, s, nil)
	round(t, w.service(t), nil)
	if want := []string{"audit advise", "save intended", "advise 15m0s 0", "save applied"}; !slices.Equal(w.log, want) {
		t.Errorf("%q, want %q", w.log, want)
	}
	if rows := s.Rows(); len(rows) != 1 || rows[0].State != advise.Applied || rows[0].From != ownLimit.Seconds() || rows[0].To != 900 {
		t.Errorf("shown: %+v", rows)
	}
}

// TestAControllerThatDiesGoesOnWhereItWas kills it at each save, and after an answer that was lost.
func TestAControllerThatDiesGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		die   int
		fail  error
		first error
	}{
		{"before the intent is durable", 1, nil, errDead},
		{"before the answer is durable", 2, nil, errDead},
		{"while the outcome is unknown", 0, driver.ErrUnknown, driver.ErrUnknown},
		{"while the scheduler is away", 0, driver.ErrTransient, driver.ErrTransient},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.die, w.fail = c.die, c.fail
			round(t, w.service(t), c.first)
			w.die = 0
			round(t, w.service(t), nil)
			if got := w.last().Resources.TimeLimit; got != 15*time.Minute || w.given["77"].State != advise.Applied {
				t.Errorf("it has %v, and is %s", got, w.given["77"].State)
			}
		})
	}
}

func TestWhatBecomesOfAnAdvisedJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   advise.State
		limit  time.Duration
	}{
		{"it keeps the limit while it waits", func(*world) {}, advise.Applied, 15 * time.Minute},
		{"it keeps the limit while that is far", func(w *world) { w.run(time.Minute) }, advise.Applied, 15 * time.Minute},
		{"it gets its owner's before it meets it", func(w *world) { w.run(13 * time.Minute) }, advise.Extended, ownLimit},
		{"it gets its owner's before it meets it, when it is paused, too", func(w *world) { w.run(13 * time.Minute); w.gate = tuning.ReasonPaused }, advise.Extended, ownLimit},
		{"it gets its owner's before it meets it, when the site wants no advice any more", func(w *world) { w.run(13 * time.Minute); w.site.Advice = tuning.AdviceOff }, advise.Extended, ownLimit},
		{"its owner switches it off", func(w *world) { w.gate = tuning.ReasonOff }, advise.Withdrawn, ownLimit},
		{"the site changes its mind", func(w *world) { w.site.Advice = tuning.AdviceRecommend }, advise.Withdrawn, ownLimit},
		{"it runs when the site changes its mind", func(w *world) { w.run(time.Minute); w.site.Advice = tuning.AdviceRecommend }, advise.Applied, 15 * time.Minute},
		{"its owner sets another limit", func(w *world) { w.last().Resources.TimeLimit = time.Hour }, advise.Applied, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			s := w.service(t)
			round(t, s, nil)
			c.change(w)
			round(t, s, nil)
			round(t, w.service(t), nil)
			if g := w.given["77"]; g.State != c.want || w.last().Resources.TimeLimit != c.limit {
				t.Errorf("%s with %v, want %s with %v; %q", g.State, w.last().Resources.TimeLimit, c.want, c.limit, w.log)
			}
		})
	}
}

// run lets the job run for a time.
func (w *world) run(ran time.Duration) {
	w.last().State, w.last().Started, w.now = driver.Running, w.now, w.now.Add(ran)
}

func TestAJobThatPrefersNodesByAdviceHasItsOwnersAgainWhereThatIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.runs = advise.Runs{"new": {4, 4, 4, 4, 4}, "old": {5, 5, 5, 5, 5}}
	s := w.service(t)
	for range 2 {
		round(t, s, nil)
		if rows := s.Rows(); w.last().Prefers != "new" || len(rows) != 2 || rows[1].What != advise.Affinity || rows[1].State != advise.Applied {
			t.Fatalf("it prefers %q; shown: %+v", w.last().Prefers, rows)
		}
	}
	w.gate = tuning.ReasonOff
	round(t, s, nil)
	if w.last().Prefers != "" || w.given["77"].State != advise.Withdrawn {
		t.Errorf("it prefers %q, and its advice is %s", w.last().Prefers, w.given["77"].State)
	}
}

func TestWhoIsNotAdvised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   advise.State // that is shown; empty: nothing
	}{
		{"a site that recommends changes nothing", func(w *world) { w.site.Advice = tuning.AdviceRecommend }, advise.Recommended},
		{"a dry run changes nothing", func(w *world) { w.site.DryRun = true }, advise.Recommended},
		{"a paused job is left alone", func(w *world) { w.gate = tuning.ReasonPaused }, advise.Recommended},
		{"a job that the tuner changes is the tuner's", func(w *world) { w.last().Name = "tuned" }, ""},
		{"too few ended jobs are known", func(w *world) { w.jobs = w.jobs[1:] }, advise.Held},
		{"a cancelled job teaches nothing", func(w *world) { w.jobs[0].State = driver.Cancelled }, advise.Held},
		{"a refusal is for good", func(w *world) { w.fail = driver.ErrDenied }, advise.Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			s := w.service(t)
			round(t, s, nil)
			round(t, s, nil)
			var state advise.State
			if rows := s.Rows(); len(rows) > 0 {
				state = rows[0].State
			}
			if len(w.asked) > 0 || state != c.want {
				t.Errorf("asked %v, shown %q, want %q", w.asked, state, c.want)
			}
		})
	}
}

func TestForecastsLearnUnderTheOwnersLimitAndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t)
	round(t, s, nil)
	w.run(10 * time.Minute)
	w.last().State, w.last().Ended = driver.Succeeded, w.now
	round(t, s, nil)
	round(t, s, nil)
	if n := len(w.learned); n != advise.Enough+1 || w.learned[n-1].Resources.TimeLimit != ownLimit {
		t.Errorf("learned %d jobs, the last under %v", n, w.learned[n-1].Resources.TimeLimit)
	}
}
