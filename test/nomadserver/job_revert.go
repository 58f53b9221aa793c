package nomadserver

import (
	"fmt"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobcheck"
	"pitchpipe/test/nomadserver/state"
)

func revertJob(c *call) error {
	if err := c.need("submit-job", "revert-job"); err != nil {
		return err
	}
	var req api.JobRevertRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	id := c.id()
	var now, then *api.Job
	c.s.store.Read(func(t *state.Tables) { now, then = t.Job(id), t.Version(id, req.JobVersion) })
	switch {
	case now == nil:
		return fmt.Errorf("job %q not found", c.name)
	case *now.Version == req.JobVersion:
		return fmt.Errorf("can't revert to current version")
	case then == nil:
		return fmt.Errorf("job %q in namespace %q at version %d not found", c.name, id.Namespace, req.JobVersion)
	}
	job := *then
	job.VersionTag, job.Stable = nil, new(false)
	reg := &api.JobRegisterRequest{}
	if v := req.EnforcePriorVersion; v != nil {
		if *v != *now.Version {
			return fmt.Errorf("Current job has version %d; enforcing version %d", *now.Version, *v) //nolint:staticcheck // Nomad's text
		}
		reg.EnforceIndex, reg.JobModifyIndex = true, *now.JobModifyIndex
	}
	return c.register(jobcheck.Copy(&job), reg)
}

func stableJob(c *call) error {
	if err := c.need("submit-job"); err != nil {
		return err
	}
	var req api.JobStabilityRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	id := c.id()
	index, err := c.s.store.Write("", func(tx *state.Tx) error {
		old := tx.Version(id, req.JobVersion)
		if old == nil {
			return fmt.Errorf("job %q in namespace %q at version %d not found", c.name, id.Namespace, req.JobVersion)
		}
		j := *old
		j.Stable = new(req.Stable)
		tx.AmendVersion(&j)
		return nil
	})
	if err != nil {
		return err
	}
	return c.reply(map[string]any{"JobModifyIndex": index, "Index": index}, index)
}
