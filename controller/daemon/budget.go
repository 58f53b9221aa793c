package daemon

import (
	"context"
	"errors"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/exporter/api"
)

type sentBudget struct {
	budget api.Budget
	at     time.Time
	failed string // the error that was logged; empty: the exporter took it
}

// budgetRetry is the pause before a budget is sent again that the exporter refused or lost.
const budgetRetry = 10 * time.Second

// sendBudget sends a running attempt's budget to the node's exporter where the budget
// changed or the exporter lost it. An exporter of another version, or one that does not
// let this controller write, refuses; measuring goes on.
func (r *services) sendBudget(ctx context.Context, sent sentBudget, q reconcile.MeasureRequest, name string, attempt int, job api.Job) sentBudget {
	want := api.Budget{
		Joules: float64(q.Allowed.Energy), Used: float64(q.Allowed.Used), Seconds: q.Allowed.Time.Seconds(), Modelled: q.Allowed.Modelled,
	}
	now := time.Now()
	lost := want.Joules > 0 && job.Budget == nil // it was restarted without its state
	none := want == (api.Budget{}) && sent.budget == (api.Budget{})
	taken := want == sent.budget && sent.failed == "" && !lost
	soon := (sent.failed != "" || want == sent.budget) && now.Sub(sent.at) < budgetRetry
	if job.Ended || none || taken || soon {
		return sent
	}
	sent.at = now
	err := r.nodes.SetBudget(ctx, q.Node, name, attempt, want)
	if err == nil {
		sent.budget, sent.failed = want, ""
		return sent
	}
	if text := err.Error(); text != sent.failed && !errors.Is(err, context.Canceled) {
		sent.failed = text
		r.log.Warn("the exporter does not take a job's budget: no alert comes when it is used up", "job", q.Job, "error", err)
	}
	return sent
}
