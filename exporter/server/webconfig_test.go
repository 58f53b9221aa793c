package server_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
)

// The password is "pitch".
const users = "basic_auth_users:\n  prometheus: $2a$04$mobUZKwKbhh3SYtUwjEB3eZw5fE/kd.8VP9Zcd3IYxf2KAneFylMK\n"

func TestAWebConfigAsksForAPasswordAndHidesJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certstest.New(t, "site")
	files := ca.Files(t, node(), ca)
	config := filepath.Join(dir, "web.yml")
	text := "tls_server_config:\n  cert_file: " + files.Cert + "\n  key_file: " + files.Key + "\n" + users
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := fill(t)
	h := metrics.Handler(metrics.Config{
		Node: func() api.Node { return api.Node{Cores: 2} }, Store: store, Snapshot: func() *sampler.Snapshot { return &sampler.Snapshot{} },
	})
	address := freeAddress(t)
	s, err := server.New(server.Config{Socket: filepath.Join(dir, "s"), Metrics: address, WebConfig: config}, static(api.Node{}), store, &marker{}, h)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s.Run)
	own, err := certs.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: own.Current().CA}}}
	defer client.CloseIdleConnections()
	ask := func(password string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("prometheus", password)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(page)
	}
	until(t, "the address serves", func() bool { status, _ := ask(""); return status != 0 })
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "pitch": http.StatusOK} {
		if status, page := ask(password); status != want {
			t.Errorf("password %q: status %d, want %d: %.200s", password, status, want, page)
		}
	}
}

func TestAnAddressBeyondLoopbackNeedsAWebConfigThatIsOne(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(config, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, good := range map[string]bool{"": false, config + "-none": false, config: true} {
		_, err := server.New(server.Config{Socket: "s", Metrics: "0.0.0.0:9820", WebConfig: file}, static(api.Node{}), fill(t), &marker{}, http.NotFoundHandler())
		if good != (err == nil) || !good && !errors.Is(err, server.ErrAddress) {
			t.Errorf("%q: %v", file, err)
		}
	}
}
