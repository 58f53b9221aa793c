package nomad_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/drivertest"
)

// The clock of the servers may not be that of the controller: a schedule that lies behind
// for them is never kept.
func TestAHeldJobBeginsWhereTheServersClockIsAnother(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){"theirs is four seconds ahead": clockAhead})
}

func clockAhead(t *testing.T, s *story) {
	const layout = "5 4 15 2 1 * 2006" // seconds first, as the schedule has it
	s.proxy.set(func(p *proxy) {
		p.before = func(r *http.Request) {
			if !registers(r) {
				return
			}
			var req api.JobRegisterRequest
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(body, &req)
			}
			if err == nil && req.Job != nil && req.Job.Periodic != nil {
				var at time.Time
				if at, err = time.Parse(layout, req.Job.Periodic.Specs[0]); err == nil {
					req.Job.Periodic.Specs[0] = at.Add(-4 * time.Second).Format(layout)
					body, err = json.Marshal(req)
				}
			}
			if err != nil {
				t.Error(err)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
	})
	spec := s.job(t, drivertest.Behaviour{Epochs: 1})
	spec.NotBefore = time.Now().Add(time.Second)
	job, err := s.d.Start(t.Context(), "request", spec)
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t, job.ID, "it begins and ends", ended)
}
