package server_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/server"
)

func TestWhoOnlyScrapesGetsTheMetricsAndNothingElse(t *testing.T) {
	t.Parallel()
	s := &site{ca: certstest.New(t, "site"), marker: &marker{}}
	s.files = s.ca.Files(t, node(), s.ca)
	s.serve(t, server.Remote{Clients: []string{"controller"}, Scrapers: []string{"prometheus"}})
	files := s.ca.Files(t, certstest.Leaf{Name: "prometheus", Client: true}, s.ca)
	c := s.client(t, files)
	if _, err := c.Jobs(t.Context()); !errors.Is(err, api.ErrDenied) || !strings.Contains(err.Error(), "for the metrics alone") {
		t.Errorf("jobs: %v, want %v", err, api.ErrDenied)
	}
	if err := c.SetBudget(t.Context(), "local/theirs", 1, api.Budget{Joules: 1}); !errors.Is(err, api.ErrDenied) {
		t.Errorf("a budget: %v, want %v", err, api.ErrDenied)
	}
	if err := c.ReportFor(t.Context(), "local/theirs", 1, api.Report{Epoch: 1}); !errors.Is(err, api.ErrDenied) {
		t.Errorf("a report: %v, want %v", err, api.ErrDenied)
	}
	if _, err := s.client(t, s.ca.Files(t, controller(), s.ca)).Jobs(t.Context()); err != nil {
		t.Errorf("the controller: %v", err)
	}
	own, err := certs.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := own.Current()
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: now.CA, Certificates: []tls.Certificate{now.Certificate}}}
	defer transport.CloseIdleConnections()
	for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), method, s.address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want || (want == http.StatusOK) != (string(text) == "metrics\n") {
			t.Errorf("%s: status %d, want %d: %s, %v", method, res.StatusCode, want, text, err)
		}
	}
}
