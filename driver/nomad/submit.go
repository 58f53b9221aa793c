package nomad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Submit registers a job as its user does, with the rights of the client, under the
// job file's own id and with his source as the submission. An id under which a job
// lives is refused with driver.ErrConflict: to register over it would end what runs, or
// run again what has ended. Spec.NotBefore is not honoured: the job begins when there is
// room.
func Submit(ctx context.Context, client *api.Client, s driver.Spec) (driver.JobID, error) {
	job, sub, err := parse(ctx, client, "", s)
	if err != nil {
		return "", err
	}
	if len(s.Env) > 0 {
		_, t := spec.Main(job)
		if t == nil {
			return "", fmt.Errorf("%s: variables are set for one task, and the job has not one main task: %w", s.Filename, driver.ErrInvalid)
		}
		if t.Env == nil {
			t.Env = map[string]string{}
		}
		maps.Copy(t.Env, s.Env)
	}
	// A submission is a run of its own, whoever repeats it.
	if err := once(job, rand.Text()[:12], slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	if s.Off {
		job.SetMeta(spec.OffMeta, "true")
	}
	c := cluster{client}
	at := where{namespace: deref(job.Namespace), id: deref(job.ID)}
	if at.namespace == "" {
		at.namespace = api.DefaultNamespace
	}
	if err := c.validate(ctx, at, job); err != nil {
		return "", err
	}
	index := uint64(0)
	switch there, err := c.job(ctx, at); {
	case errors.Is(err, driver.ErrNotFound):
	case err != nil:
		return "", err
	case deref(there.Status) != "dead":
		return "", fmt.Errorf("%s: a job %s lives (%s): stop it first, or give this one another id: %w", s.Filename, at.id, deref(there.Status), driver.ErrConflict)
	default:
		index = deref(there.JobModifyIndex)
	}
	if err := c.register(ctx, at, job, index, sub); err != nil {
		return "", err
	}
	return at.jobID(), nil
}
