package command

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/nomadagent"
)

// controllerOf answers at a socket in a controller's place.
func controllerOf(t *testing.T, headStart http.HandlerFunc) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+api.PathHeadStarts, headStart)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}} //nolint:gosec // of a test
	server.Start()
	t.Cleanup(server.Close)
	client := api.NewClient(socket)
	t.Cleanup(client.Close)
	return client
}

// A job that is submitted to Nomad begins with what the controller says, and as it is
// where the controller says nothing, something wrong, or nothing in time.
func TestAJobOfNomadIsSubmittedWithWhatTheControllerSays(t *testing.T) {
	t.Parallel()
	agent := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.InProcess})
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		off    bool
		want   string // intent with which the job begins
	}{
		{"a change", says(api.HeadStart{Intent: "x/1", Change: driver.Change{Env: map[string]string{"N": "2"}}}), false, "x/1"},
		{"nothing", says(api.HeadStart{}), false, ""},
		{"a change that no job can have", says(api.HeadStart{Intent: "x/1", Change: driver.Change{Cores: -1}}), false, ""},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, false, ""},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, false, ""},
		{"nothing in time", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, false, ""},
		{"a change of a job that is off", says(api.HeadStart{Intent: "x/1", Change: driver.Change{Env: map[string]string{"N": "2"}}}), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			client := controllerOf(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.answer(w, r) })
			a := &app{World: World{Environ: []string{"NOMAD_ADDR=" + agent.Addr}, Stderr: io.Discard}}
			id := strings.ReplaceAll(c.name, " ", "-")
			src := strings.NewReplacer(`job "train"`, `job "`+id+`"`, `mode = "observe"`, `mode = "apply"`).Replace(trained)
			job, _, err := a.submitWith(context.WithoutCancel(t.Context()), client, api.Submission{Filename: "train.nomad.hcl", Source: []byte(src), Off: c.off}, nil)
			if err != nil || job.ID != id {
				t.Fatalf("%+v, %v", job, err)
			}
			there, _, err := agent.Client(t).Jobs().Info(id, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, begun := spec.Begun(there)
			if m.Intent != c.want || begun != (c.want != "") || *there.Version != 0 {
				t.Errorf("registered with %+v, version %d; want intent %q, once", m, *there.Version, c.want)
			}
			if n := asked.Load(); (n == 1) == c.off {
				t.Errorf("the controller was asked %d times", n)
			}
		})
	}
}

func says(h api.HeadStart) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(h) }
}
