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

// parse makes a job of a job file, with the variables of the submission and a change as if
// its owner had written them.
func parse(ctx context.Context, client *api.Client, namespace string, s driver.Spec, c driver.Change) (*api.Job, *api.JobSubmission, error) {
	job, sub, err := read(ctx, client, namespace, s)
	if err != nil {
		return nil, nil, err
	}
	if s.Off {
		job.SetMeta(spec.OffMeta, "true")
	}
	if len(s.Env) > 0 {
		_, t := spec.Main(job)
		if t == nil {
			return nil, nil, fmt.Errorf("%s: variables are set for one task, and the job has not one main task: %w", s.Filename, driver.ErrInvalid)
		}
		if t.Env == nil {
			t.Env = map[string]string{}
		}
		maps.Copy(t.Env, s.Env)
	}
	if !c.Empty() {
		if err := spec.Set(job, c); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Filename, err)
		}
	}
	return job, sub, nil
}

// read makes a job of a job file. HCL is parsed by the agent, without the tuning block,
// which then is put where Nomad keeps it; JSON is that of `nomad job inspect`.
func read(ctx context.Context, client *api.Client, namespace string, s driver.Spec) (*api.Job, *api.JobSubmission, error) {
	if bytes.ContainsRune(s.Source, 0) {
		return nil, nil, fmt.Errorf("%s: no text: %w", s.Filename, driver.ErrInvalid)
	}
	if text := bytes.TrimSpace(s.Source); bytes.HasPrefix(text, []byte("{")) {
		job, err := known(text)
		if err == nil { // one that was read from Nomad has what Nomad and changes left in it, a stop included
			job, err = spec.Owner(job)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Filename, err)
		}
		if spec.Deref(job.ID) == "" {
			return nil, nil, fmt.Errorf("%s: a job without an ID: %w", s.Filename, driver.ErrInvalid)
		}
		return job, &api.JobSubmission{Source: string(s.Source), Format: "json"}, nil
	}
	file, err := nomadhcl.ParseForNomad(s.Filename, s.Source, s.Variables)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	source, group := nomadhcl.ForAgent(s.Filename, s.Source)
	in := &api.JobsParseRequest{JobHCL: string(source), Variables: nomadhcl.VariableFile(s.Filename, s.Source, s.Variables)}
	var data json.RawMessage
	if _, err := client.Raw().Write("/v1/jobs/parse", in, &data, order(ctx, namespace)); err != nil {
		err = asked(s.Filename, parseJob, cmp.Or(namespace, api.DefaultNamespace), err)
		if errors.Is(err, driver.ErrInvalid) {
			err = fmt.Errorf("%w: %w", driver.ErrInvalid, nomadhcl.Faults(s.Filename, s.Source, err.Error()))
		}
		return nil, nil, err
	}
	job, err := known(data)
	if err == nil && !bytes.Equal(source, s.Source) {
		err = spec.Carry(job, group, file.Stanza)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Filename, err)
	}
	return job, &api.JobSubmission{Source: string(s.Source), Format: "hcl2", VariableFlags: maps.Clone(s.Variables)}, nil
}

// known reads the JSON of a job, and refuses one with settings that are not known here.
func known(data []byte) (*api.Job, error) {
	job, unknown, err := spec.Read(data)
	if err == nil && unknown != "" {
		err = fmt.Errorf("this version of Pitchpipe does not know %s, which Nomad does, and would lose it: %w", unknown, driver.ErrInvalid)
	}
	return job, err
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
