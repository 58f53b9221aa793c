package nomad

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// registration reads a job as it is registered, as JSON. Where Nomad would take the job's
// id for a question about another job it is the newest of its versions.
func (c cluster) registration(ctx context.Context, w where) (json.RawMessage, error) {
	what := "job " + w.id
	ask := func(path string, out any) error {
		_, err := c.api.Raw().Query("/v1/job/"+url.PathEscape(w.id)+path, out, query(ctx, w.namespace))
		return asked(what, readJob.in(w.namespace), err)
	}
	var data json.RawMessage
	if spec.Misread(w.id) == "" {
		if err := ask("", &data); err != nil {
			return nil, err
		}
	} else {
		var all struct{ Versions []json.RawMessage }
		if err := ask("/versions", &all); err != nil {
			return nil, err
		}
		if len(all.Versions) == 0 {
			return nil, fmt.Errorf("%s: without versions: %w", what, driver.ErrNotFound)
		}
		data = all.Versions[0]
	}
	var is struct{ ID string }
	if err := json.Unmarshal(data, &is); err != nil || is.ID != w.id {
		return nil, fmt.Errorf("%s: Nomad answers with something else (a job %q, %w)", what, is.ID, driver.ErrInvalid)
	}
	return data, nil
}
