package server_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/sampler"
)

// A caller who may see everything tells the same whichever way he comes.
func TestProgressIsReportedOnAJobsBehalf(t *testing.T) {
	t.Parallel()
	overTLS, onSocket := newSite(t, node()), &marker{}
	type way struct {
		client *api.Client
		marker *marker
	}
	ways := map[string]way{"TLS": {overTLS.client(t, overTLS.ca.Files(t, controller(), overTLS.ca)), overTLS.marker}}
	if os.Getuid() == 0 {
		ways["the socket"] = way{start(t, fill(t), onSocket), onSocket}
	}
	loss := 0.5
	want := []api.Report{
		{Epoch: 2, Total: 9, Loss: &loss, Nth: 4, Time: time.Unix(9, 0).UTC()},
		{Saved: true, Nth: 1, Time: time.Unix(10, 0).UTC()},
		{Epoch: 3},
	}
	for name, over := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, job := range []string{"nomad/5b2c.train", "42", "local/a b"} {
				if err := over.client.ReportFor(t.Context(), job, i, want[i]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, over.marker.got); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"nomad/5b2c.train 0", "42 1", "local/a b 2"}, over.marker.on); diff != "" {
				t.Errorf("on behalf of (-want +got):\n%s", diff)
			}
			for _, tc := range []struct {
				name string
				r    api.Report
				fail error
				want error
			}{
				{"a job that is not there may come yet", api.Report{Epoch: 1}, sampler.ErrNoJob, api.ErrNotFound},
				{"an exporter in trouble may take it later", api.Report{Epoch: 1}, context.DeadlineExceeded, api.ErrUnavailable},
				{"epochs count from 1", api.Report{}, nil, api.ErrInvalid},
				{"lines count from 1", api.Report{Epoch: 1, Nth: -1}, nil, api.ErrInvalid},
				{"a save is no epoch", api.Report{Epoch: 1, Saved: true}, nil, api.ErrInvalid},
			} {
				over.marker.mu.Lock()
				over.marker.fail = tc.fail
				over.marker.mu.Unlock()
				if err := over.client.ReportFor(t.Context(), "nomad/x", 1, tc.r); !errors.Is(err, tc.want) {
					t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
				}
			}
		})
	}
}

func TestOverTLSStrangersDoNotReport(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	c := s.client(t, s.ca.Files(t, certstest.Leaf{Name: "stranger", Client: true}, s.ca))
	if err := c.ReportFor(t.Context(), "local/theirs", 1, api.Report{Epoch: 1}); !errors.Is(err, api.ErrDenied) || !strings.Contains(err.Error(), "stranger") {
		t.Errorf("got %v, want %v and the name", err, api.ErrDenied)
	}
	if len(s.marker.got) > 0 {
		t.Errorf("passed on %+v", s.marker.got)
	}
}
