package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
)

// As nomad job run does it: a variable of the environment counts where the file declares it
// and the command line says nothing.
func TestVariablesOfTheEnvironmentAreTakenForAJobFile(t *testing.T) {
	t.Parallel()
	const file = `variable "epochs" {
  type = number
}
variable "batch" {
  default = "32"
}
variable "dir" {}
job "train" {
  group "g" {}
}
`
	environ := []string{"NOMAD_VAR_epochs=5", "NOMAD_VAR_epochs=50", "NOMAD_VAR_batch=64", "NOMAD_VAR_dir=a=b", "NOMAD_VAR_other=1", "NOMAD_VAR_=2", "epochs=7"}
	for _, tt := range []struct {
		name, filename, source string
		given, want            map[string]string
	}{
		{"what is declared is taken", "train.nomad.hcl", file, nil, map[string]string{"epochs": "50", "batch": "64", "dir": "a=b"}},
		{"the command line comes first", "train.nomad.hcl", file, map[string]string{"batch": "", "x": "y"}, map[string]string{"epochs": "50", "batch": "", "dir": "a=b", "x": "y"}},
		{"a script of Slurm has none", "train.sh", "#!/bin/bash\n#SBATCH --ntasks=1\ntrue\n", nil, nil},
		{"a file that cannot be read is refused later", "train.nomad.hcl", "job {", nil, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(tt.given)
			got := (&app{World: World{Environ: environ}}).variables(tt.filename, []byte(tt.source), tt.given)
			if diff := cmp.Diff(before, tt.given); diff != "" {
				t.Errorf("what was given is another: %s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAUsersCommandFindsTheController(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own.sock")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		cfg        config.Config
	}{
		{"at the socket that was named, whatever is there", "/named.sock", config.Config{Socket: "/named.sock", Given: map[string]string{"socket": "--socket"}}},
		{"at that of the user's own controller", own, config.Config{Socket: own}},
	} {
		if got := controllerSocket(c.cfg); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// lists is a controller that submits an array, and answers each list of its jobs with the next of these
// (ID STATE, an ended one with "!"). It knows single jobs as the last list has them. It returns its socket.
func lists(t *testing.T, texts ...string) string {
	t.Helper()
	jobs := func() (out []api.Job) {
		for line := range strings.SplitSeq(texts[0], ", ") {
			id, state, _ := strings.Cut(line, " ")
			state, ended := strings.CutSuffix(state, "!")
			out = append(out, api.Job{ID: id, State: state, Ended: ended})
		}
		return out
	}
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("POST "+api.PathJobs, func(w http.ResponseWriter, _ *http.Request) { say(w, api.Job{ID: "7_1", State: "pending"}) })
	mux.HandleFunc("GET "+api.PathJobs, func(w http.ResponseWriter, _ *http.Request) {
		if len(texts) > 1 {
			texts = texts[1:]
		}
		say(w, jobs())
	})
	mux.HandleFunc("GET "+api.PathJob, func(w http.ResponseWriter, r *http.Request) {
		for _, j := range jobs() {
			if j.ID == r.PathValue("id") {
				say(w, j)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		say(w, map[string]string{"error": "there is no job " + r.PathValue("id"), "kind": "not-found"})
	})
	socket := filepath.Join(t.TempDir(), "s")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return socket
}

func TestRunWaitsForAllTasksOfAnArray(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lists []string
		code  int
		says  string
	}{
		{"and succeeds with them", []string{"", "7_1 running, 7_2 pending, 70_1 failed!", "7_1 succeeded!, 7_2 running", "7_1 succeeded!, 7_2 succeeded!"}, ExitOK, ""},
		{"and fails with the second", []string{"", "7_1 running, 7_2 running", "7_1 running, 7_2 failed!", "7_1 succeeded!, 7_2 failed!"}, ExitFailed, "7_2 ended as failed"},
		{"and fails where one vanishes", []string{"", "7_1 running, 7_2 pending", "7_1 running", "7_1 succeeded!"}, ExitFailed, "7_2 ended as lost (its scheduler no longer knows it)"},
		{"and keeps one that ended and is forgotten", []string{"", "7_1 running, 7_2 succeeded!", "7_1 succeeded!"}, ExitOK, ""},
		{"and waits for the first list that has any", []string{"", "70_1 failed!", "7_1 succeeded!, 7_2 succeeded!"}, ExitOK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "a.sbatch")
			if err := os.WriteFile(file, []byte("#!/bin/sh\n#SBATCH --array=1-2\ntrue\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			code := Run(t.Context(), World{Args: []string{"run", "--wait", "--off", file, "--socket", lists(t, c.lists...)}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said})
			if code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("exit %d, %q; want %d, %q", code, said.String(), c.code, c.says)
			}
		})
	}
}
