package nomad

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/nomad/spec"
)

// parse makes a job of a job file. HCL is parsed by the agent, after the tuning block
// was carried to where Nomad keeps it; JSON is that of `nomad job inspect`.
func parse(ctx context.Context, client *api.Client, namespace string, s driver.Spec) (*api.Job, *api.JobSubmission, error) {
	if bytes.ContainsRune(s.Source, 0) {
		return nil, nil, fmt.Errorf("%s: no text: %w", s.Filename, driver.ErrInvalid)
	}
	if text := bytes.TrimSpace(s.Source); bytes.HasPrefix(text, []byte("{")) {
		job, err := spec.Decode(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Filename, err)
		}
		if deref(job.ID) == "" {
			return nil, nil, fmt.Errorf("%s: a job without an ID: %w", s.Filename, driver.ErrInvalid)
		}
		return job, &api.JobSubmission{Source: string(s.Source), Format: "json"}, nil
	}
	carried, err := nomadhcl.Carry(s.Filename, s.Source)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	in := &api.JobsParseRequest{JobHCL: string(carried.Source), Variables: nomadhcl.VariableFile(s.Filename, s.Source, s.Variables)}
	var data json.RawMessage
	if _, err := client.Raw().Write("/v1/jobs/parse", in, &data, order(ctx, namespace)); err != nil {
		err = asked(s.Filename, parseJob.in(cmp.Or(namespace, api.DefaultNamespace)), err)
		if errors.Is(err, driver.ErrInvalid) {
			if faults := carried.Faults(err.Error()); len(faults) > 0 {
				err = fmt.Errorf("%w: %w", driver.ErrInvalid, faults)
			}
		}
		return nil, nil, err
	}
	job, unknown, err := spec.Read(data)
	if err != nil {
		return nil, nil, err
	}
	if unknown != "" {
		return nil, nil, fmt.Errorf("%s: this version of Pitchpipe does not know %s, which Nomad does, and would lose it: %w", s.Filename, unknown, driver.ErrInvalid)
	}
	return job, &api.JobSubmission{Source: string(s.Source), Format: "hcl2", VariableFlags: maps.Clone(s.Variables)}, nil
}

// once gives the job its completion marker, and Nomad's defaults.
func once(job *api.Job, run string, warn func(string)) error {
	warnings, err := spec.Once(job, run)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		warn(w)
	}
	job.Canonicalize()
	return nil
}
