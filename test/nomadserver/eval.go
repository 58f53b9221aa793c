package nomadserver

import (
	"net/http"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/filter"
	"pitchpipe/test/nomadserver/state"
)

func listEvals(c *call) error {
	keep, err := filter.Parse(c.query("filter"))
	if err != nil {
		return refuse(http.StatusBadRequest, "failed to read filter expression: %v", err)
	}
	ns, prefix, job, status := c.namespace(), c.query("prefix"), c.query("job"), c.query("status")
	if ns != "*" {
		if err := c.need("read-job"); err != nil {
			return err
		}
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.Evaluation{}
		for _, e := range t.Evals(ns) {
			if !strings.HasPrefix(e.ID, prefix) || job != "" && e.JobID != job || status != "" && e.Status != status ||
				!c.may(e.Namespace, "read-job") {
				continue
			}
			ok, err := keep.Match(e)
			if err != nil {
				return nil, 0, refuse(http.StatusBadRequest, "%v", err)
			}
			if ok {
				out = append(out, e)
			}
		}
		return out, t.Touched(state.Evals), nil
	}, state.Evals)
}

func readEval(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		e := t.Eval(c.name)
		if e == nil {
			return nil, 0, refuse(http.StatusNotFound, "eval not found")
		}
		return e, e.ModifyIndex, nil
	}, state.Key(state.Evals, "id", c.name))
}

func evalAllocs(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.AllocationListStub{}
		for _, a := range t.Allocs("*") {
			if a.EvalID == c.name {
				out = append(out, allocStub(a))
			}
		}
		return out, t.Touched(state.Allocs), nil
	}, state.Allocs)
}
