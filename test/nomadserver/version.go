package nomadserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobdiff"
	"pitchpipe/test/nomadserver/state"
)

func jobVersions(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	id, diffs := c.id(), c.truth("diffs")
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		versions := t.Versions(id)
		if len(versions) == 0 {
			return nil, 0, refuse(http.StatusNotFound, "job versions not found")
		}
		var index uint64
		for _, j := range versions {
			index = max(index, *j.ModifyIndex)
		}
		out := map[string]any{"Versions": versions, "Diffs": nil, "Index": index}
		if diffs {
			out["Diffs"] = versionDiffs(versions)
		}
		return out, index, nil
	}, state.Key(state.Jobs, id.Namespace, id.Job))
}

// versionDiffs compares each version with the one before it.
func versionDiffs(versions []*api.Job) []*api.JobDiff {
	out := []*api.JobDiff{}
	for i := range len(versions) - 1 {
		out = append(out, jobdiff.Jobs(versions[i+1], versions[i]))
	}
	return out
}

func jobSubmission(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	version, err := strconv.ParseUint(c.query("version"), 10, 64)
	if err != nil {
		return refuse(http.StatusBadRequest, "Unable to parse version number: %v", err)
	}
	id := c.id()
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		sub := t.Submission(id, version)
		if sub == nil {
			return nil, 0, refuse(http.StatusNotFound, "job source not found")
		}
		return sub, t.Touched(state.Key(state.Submissions, id.Namespace, id.Job)), nil
	}, state.Key(state.Submissions, id.Namespace, id.Job))
}

// tagged cuts JOB/versions/NAME, which stands before /tag.
func (c *call) tagged() (id state.ID, tag string, err error) {
	i := strings.LastIndex(c.name, "/versions/")
	if i < 0 {
		return state.ID{}, "", refuse(http.StatusNotFound, "Invalid URL path")
	}
	return state.ID{Namespace: c.namespace(), Job: c.name[:i]}, c.name[i+len("/versions/"):], nil
}

func tagVersion(c *call) error {
	if err := c.need("submit-job", "tag-job-version"); err != nil {
		return err
	}
	id, name, err := c.tagged()
	if err != nil {
		return err
	}
	var req api.TagVersionRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.Latest && req.Version > 0 {
		return fmt.Errorf("version must be zero when tagging latest, got: %d", req.Version)
	}
	tag := &api.JobVersionTag{Name: name, Description: req.Description, TaggedTime: time.Now().UnixNano()}
	index, err := c.s.store.Write("", func(tx *state.Tx) error {
		if now := tx.Job(id); req.Latest && now != nil {
			req.Version = *now.Version
		}
		var old *api.Job
		for _, v := range tx.Versions(id) {
			if v.VersionTag != nil && v.VersionTag.Name == name && *v.Version != req.Version {
				return fmt.Errorf("tag %q already exists on a different version of job %q", name, id.Job)
			}
			if *v.Version == req.Version {
				old = v
			}
		}
		if old == nil {
			return fmt.Errorf("job %q version %d not found", id.Job, req.Version)
		}
		j := *old
		j.VersionTag = tag
		tx.AmendVersion(&j)
		return nil
	})
	if err != nil {
		return err
	}
	return c.reply(map[string]any{"Name": tag.Name, "Description": tag.Description, "TaggedTime": tag.TaggedTime, "Index": index}, index)
}

func untagVersion(c *call) error {
	if err := c.need("submit-job", "tag-job-version"); err != nil {
		return err
	}
	id, name, err := c.tagged()
	if err != nil {
		return err
	}
	index, err := c.s.store.Write("", func(tx *state.Tx) error {
		for _, v := range tx.Versions(id) {
			if v.VersionTag != nil && v.VersionTag.Name == name {
				j := *v
				j.VersionTag = nil
				tx.AmendVersion(&j)
				return nil
			}
		}
		return fmt.Errorf("tag %q not found on job %q", name, id.Job)
	})
	if err != nil {
		return err
	}
	return c.reply(map[string]any{"Index": index}, index)
}
