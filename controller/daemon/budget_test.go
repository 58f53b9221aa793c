package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/reconcile"
	"pitchpipe/exporter/api"
)

// keeper is an exporter with one job that remembers the budgets that it got.
type keeper struct {
	nodes.Meter // of what it is not asked here

	job     api.Job
	err     error
	budgets []api.Budget
}

func (k *keeper) Node(context.Context) (api.Node, error) {
	return api.Node{MachineKind: "m", Cores: 2}, nil
}

func (k *keeper) Window(context.Context, string, int, uint64) (api.Window, error) {
	return api.Window{Job: k.job}, nil
}

func (k *keeper) SetBudget(_ context.Context, job string, attempt int, b api.Budget) error {
	if job != "slurm/42" || attempt != 1 {
		return api.ErrNotFound
	}
	k.budgets = append(k.budgets, b)
	if k.err == nil {
		k.job.Budget = &b
	}
	return k.err
}

func TestABudgetIsSentOnceAndAgainWhenTheExporterLostIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		var said strings.Builder
		r := &services{nodes: nodes.One(k, nil), log: slog.New(slog.NewTextHandler(&said, nil))}
		q := reconcile.MeasureRequest{Job: "42", Attempt: 1}
		var sent sentBudget
		ask := func() { sent = r.sendBudget(t.Context(), sent, q, "slurm/42", 1, k.job) }
		steps := []struct {
			name   string
			change func()
			want   []api.Budget
		}{
			{"a job without one", func() {}, nil},
			{"it has one", func() {
				q.Allowed = reconcile.Allowance{Energy: 2e6, Time: time.Hour, Modelled: true}
			}, []api.Budget{{Joules: 2e6, Seconds: 3600, Modelled: true}}},
			{"nothing changed", func() {}, nil},
			{"an earlier attempt is known to have used some", func() { q.Allowed.Used = 5 }, []api.Budget{{Joules: 2e6, Used: 5, Seconds: 3600, Modelled: true}}},
			{"it forgot, as after a restart", func() { k.job.Budget = nil; time.Sleep(budgetRetry) }, []api.Budget{{Joules: 2e6, Used: 5, Seconds: 3600, Modelled: true}}},
			{"it refuses", func() { k.err = api.ErrDenied; q.Allowed.Energy = 3e6 }, []api.Budget{{Joules: 3e6, Used: 5, Seconds: 3600, Modelled: true}}},
			{"it is left alone for a while", func() {}, nil},
			{"it takes it later", func() { k.err = nil; time.Sleep(budgetRetry) }, []api.Budget{{Joules: 3e6, Used: 5, Seconds: 3600, Modelled: true}}},
			{"the owner took his budget back", func() { q.Allowed = reconcile.Allowance{} }, []api.Budget{{}}},
			{"and has none", func() { k.job.Budget = nil; time.Sleep(budgetRetry) }, nil},
			{"a job that ended", func() { q.Allowed.Energy = 1; k.job.Ended = true }, nil},
		}
		for _, s := range steps {
			k.budgets = nil
			s.change()
			ask()
			if diff := cmp.Diff(s.want, k.budgets); diff != "" {
				t.Errorf("%s: sent (-want +got):\n%s", s.name, diff)
			}
		}
		if n := strings.Count(said.String(), "does not take"); n != 1 {
			t.Errorf("the refusal was logged %d times:\n%s", n, said.String())
		}
	})
}
