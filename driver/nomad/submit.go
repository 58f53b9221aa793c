package nomad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Submit registers a job as its user does, with the rights of the client, under the
// job file's own id and with his source as the submission. An id under which a job
// lives is refused with driver.ErrConflict: to register over it would end what runs, or
// run again what has ended. Spec.NotBefore is not honoured: the job begins when there is
// room. Warn is told, in a sentence each, what its user should know: where the completion
// marker does not reach, and what Nomad warns of; nil: nobody is.
func Submit(ctx context.Context, client *api.Client, s driver.Spec, warn func(string)) (driver.JobID, error) {
	return SubmitWith(ctx, client, s, driver.Change{}, warn)
}

// SubmitWith is Submit of the job with a change, as if its user had written that. The
// submission says in a remark what it was.
func SubmitWith(ctx context.Context, client *api.Client, s driver.Spec, c driver.Change, warn func(string)) (driver.JobID, error) {
	if warn == nil {
		warn = func(string) {}
	}
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
	if !c.Empty() {
		if err := spec.Set(job, c); err != nil {
			return "", fmt.Errorf("%s: %w", s.Filename, err)
		}
		sub = note(sub, "chosen by short probes", spec.Mark{Change: c})
	}
	// A submission is a run of its own, whoever repeats it.
	if err := once(job, rand.Text()[:12], warn); err != nil {
		return "", err
	}
	if s.Off {
		job.SetMeta(spec.OffMeta, "true")
	}
	to := cluster{api: client}
	at := where{namespace: deref(job.Namespace), id: deref(job.ID)}
	if at.namespace == "" {
		at.namespace = api.DefaultNamespace
	}
	warnings, err := to.validate(ctx, at, job)
	if err != nil {
		return "", err
	}
	if warnings != "" {
		warn("Nomad says: " + strings.Join(strings.Fields(warnings), " "))
	}
	index := uint64(0)
	switch there, err := to.job(ctx, at); {
	case errors.Is(err, driver.ErrNotFound):
	case err != nil:
		return "", err
	case deref(there.Status) != "dead":
		return "", fmt.Errorf("%s: a job %s lives (%s): stop it first, or give this one another id: %w", s.Filename, at.id, deref(there.Status), driver.ErrConflict)
	default:
		index = deref(there.JobModifyIndex)
	}
	if err := to.register(ctx, at, job, index, sub); err != nil {
		return "", err
	}
	return at.jobID(), nil
}
