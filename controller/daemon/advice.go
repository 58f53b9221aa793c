package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/durations"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const bucketAdvice = "advice"

// newAdvisor is nil where the scheduler takes no advice.
func (d *Daemon) newAdvisor() *advise.Service {
	scheduler, ok := d.driver.(driver.Adviser)
	if !ok {
		return nil
	}
	f := &forecasts{}
	return advise.New(advise.Config{
		Scheduler: scheduler, Learn: f.Learn, Forecast: f.Forecast,
		All:    func() (map[string]advise.Given, error) { return readAll[advise.Given](d.store, bucketAdvice) },
		Save:   func(g advise.Given) error { return d.store.PutJSON(bucketAdvice, string(g.Job), g) },
		Forget: func(job string) error { return d.store.Delete(bucketAdvice, job) },
		Gate: func(j driver.Job) tuning.Reason {
			j.Submitted = d.records.digest(j.ID).submitted
			return d.pauses.gate(j)
		},
		Site: d.siteFor, Tuned: d.tuned, Leads: d.candidate.Leads, Audit: d.auditAdvice,
		Every: d.cfg.Resync, Now: time.Now, Log: d.log.With("service", "advice"),
	})
}

// tuned reports whether a job has a stanza that lets the tuner change it, or may have one.
func (d *Daemon) tuned(job driver.Job) bool {
	rec, err := d.records.Load(context.Background(), job.ID)
	if err != nil {
		return !errors.Is(err, reconcile.ErrNoRecord)
	}
	return rec.Phase != reconcile.Ignored && rec.Policy.Mode == tuning.Apply
}

func (d *Daemon) auditAdvice(ctx context.Context, g advise.Given) error {
	before, after := tuning.Settings{}, tuning.Settings{"nice_above_owner": tuning.Number(float64(g.Advice.Nice))}
	if g.Own > 0 {
		before["time_limit"], after["time_limit"] = tuning.Number(g.From.Seconds()), tuning.Number(cmp.Or(g.Advice.TimeLimit, g.Own).Seconds())
	}
	if g.Advice.Class != "" {
		after["prefers_class"] = tuning.Word(g.Advice.Class)
	}
	return d.note(ctx, reconcile.Audit{
		At: g.Made, Actor: "tuner", Job: string(g.Job), Action: g.Action, Intent: g.Intent, Before: before, After: after,
	})
}

// forecasts are those of package durations. The rounds of advice alone use them.
type forecasts struct {
	model *durations.Model                      // nil: no job has ended
	busy  durations.Latest[string, [2]float64]  // CPU seconds that jobs used, and that their cores had, by owner and name
	runs  durations.Latest[string, advise.Runs] // by owner, name and cores
}

func features(j driver.Job) durations.Features {
	return durations.Features{
		User: j.Owner, Group: j.Partition, Account: j.Account, Name: j.Name, CPUs: j.Resources.Cores, GPUs: j.Resources.GPUs, Nodes: max(j.Nodes, 1),
		Limit: j.Resources.TimeLimit.Seconds(), Submit: float64(j.Submitted.Unix()),
	}
}

func sized(j driver.Job) string { return fmt.Sprint(j.Owner, "/", j.Name, "/", j.Resources.Cores) }

func (f *forecasts) Learn(ended []driver.Job) {
	var all []durations.Ended
	for _, j := range ended {
		ran := j.Ended.Sub(j.Started).Seconds()
		if j.Used > 0 {
			b := f.busy.Use(j.Owner + "/" + j.Name)
			b[0], b[1] = b[0]+j.Used.Seconds(), b[1]+ran*float64(j.Resources.Cores)
		}
		if j.State == driver.Succeeded && j.Class != "" && ran > 0 {
			runs := f.runs.Use(sized(j))
			if *runs == nil {
				*runs = advise.Runs{}
			}
			runs.Add(j.Class, ran)
		}
		all = append(all, durations.Ended{Features: features(j), Duration: ran, End: float64(j.Ended.Unix())})
	}
	if f.model == nil { // the past, as a whole
		f.model = durations.Fit(all)
		return
	}
	for _, e := range all {
		f.model.Learn(e)
	}
}

func (f *forecasts) Forecast(j driver.Job) advise.Forecast {
	if f.model == nil {
		return advise.Forecast{}
	}
	var out advise.Forecast
	if runs := f.runs.Get(sized(j)); runs != nil {
		out.Runs = *runs
	}
	p := f.model.Predict(features(j))
	if !p.Known() {
		return out
	}
	out.Samples, out.Median, out.Quantile = p.Samples, p.Median, p.Quantile
	if b := f.busy.Get(j.Owner + "/" + j.Name); b != nil && b[1] > 0 {
		out.Busy = b[0] / b[1]
	}
	return out
}

func (r request) advice() (any, error) {
	if r.d.advisor == nil {
		return nil, fmt.Errorf("%w: the scheduler takes no advice", errInput)
	}
	return slices.DeleteFunc(append([]advise.Item{}, r.d.advisor.Rows()...), func(row advise.Item) bool { return !r.who.May(row.Owner) }), nil
}
