package daemon

import (
	"context"
	"errors"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/exporter/api"
)

// allowed is what an exporter was told last about one attempt.
type allowed struct {
	budget api.Budget
	at     time.Time
	failed string // why it did not take it, as it was told in the log
}

// allowAgain is how soon an exporter is told again that did not take a budget, or has
// lost it.
const allowAgain = 10 * time.Second

// allow tells the node's exporter what an attempt that runs may use, when that changed
// or the exporter does not know it. An exporter that does not take it, as one of another
// version or one of which the controller is no reader, keeps nobody from measuring.
func (r *rooms) allow(ctx context.Context, told allowed, q reconcile.MeasureRequest, name string, attempt int, job api.Job) allowed {
	want := api.Budget{
		Joules: float64(q.Allowed.Energy), Used: float64(q.Allowed.Used), Seconds: q.Allowed.Time.Seconds(), Modelled: q.Allowed.Modelled,
	}
	now := time.Now()
	lost := want.Joules > 0 && job.Budget == nil // it was restarted without its state
	switch {
	case job.Ended, want == (api.Budget{}) && told.budget == (api.Budget{}):
		return told
	case want == told.budget && told.failed == "" && !lost:
		return told
	case (told.failed != "" || want == told.budget) && now.Sub(told.at) < allowAgain:
		return told
	}
	told.at = now
	err := r.nodes.SetBudget(ctx, q.Node, name, attempt, want)
	if err == nil {
		told.budget, told.failed = want, ""
		return told
	}
	if text := err.Error(); text != told.failed && !errors.Is(err, context.Canceled) {
		told.failed = text
		r.log.Warn("the exporter does not take a job's budget; nobody is alerted when it is used up", "job", q.Job, "error", err)
	}
	return told
}
