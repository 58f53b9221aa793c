package faultnomad_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/fault"
	"pitchpipe/test/filterproxy"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// policy has no caps, which hundreds of moves and harm done by faults would reach.
const policy = `default:
  max_mode: apply
  user_restarts: 0
  total_restarts: 0
  pause_after: 0
`

// nodeMemory is small, so that somebody can take all of it.
const nodeMemory = 4096

// world is one agent with everything that works in it.
type world struct {
	t        *testing.T
	tuned    bool // else owners move their jobs by hand
	story    *fault.Story
	dir      string
	agent    *nomadagent.Agent
	nomad    *nomadapi.Client
	exporter string // socket, after what hides the neighbours
	owners   []*owner
	down     spans // of the agent

	mu       sync.Mutex
	jobs     map[string]*job // of all rounds, by id
	starting map[string]bool // jobs whose task was being started when the client was killed
}

// newWorld brings everything up, with controllers or without; nothing is left of it after
// the test.
func newWorld(t *testing.T, tuned bool) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ppnomad-fault-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tuned: tuned, story: fault.NewStory(t), dir: dir, exporter: filepath.Join(dir, "calm.sock"), jobs: map[string]*job{}, starting: map[string]bool{}}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := sandbox.Build(t.Context(), dir, sandbox.Pitchpipe, sandbox.Exporter, sandbox.FaultJob); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path("site.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	kind := nomadagent.Either
	if *sampleFlag {
		kind = nomadagent.InProcess
	}
	w.agent = nomadagent.Start(t, nomadagent.Options{Kind: kind, MemoryMB: nodeMemory})
	w.nomad = w.agent.Client(t)
	if tuned {
		w.meter()
	}
	for _, name := range []string{"alpha", "beta"} {
		w.owners = append(w.owners, newOwner(w, name))
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// meter starts the exporter, and what hides from the controllers that others keep the
// machine busy.
func (w *world) meter() {
	w.t.Helper()
	socket := w.path("exporter.sock")
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.path("pitchpipe-exporter"), "--socket", socket,
		"--web.listen-address=", "--sampling.interval=1s", "--sampling.discover=250ms", "--log.level=error")
	sandbox.Start(w.t, "the exporter", w.path("exporter.log"), cmd)
	client := exporterapi.NewClient(socket)
	defer client.Close()
	w.await("the exporter", func() error { _, err := client.Node(w.t.Context()); return err })
	sandbox.Beside(w.t, "what hides others", func(ctx context.Context) error { return filterproxy.Serve(ctx, w.exporter, socket) })
	w.await("what hides others", func() error { _, err := os.Stat(w.exporter); return err })
}

// await waits for what must come, however loaded the machine is.
func (w *world) await(what string, ask func() error) {
	w.t.Helper()
	if err := eventually(ask); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func eventually(ask func() error) error {
	for end := time.Now().Add(fault.Patience); ; time.Sleep(50 * time.Millisecond) {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (w *world) add(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[j.id()] = j
}

// byID is a job of any round, nil if it is not ours.
func (w *world) byID(id string) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[id]
}

// starts notes the jobs whose tasks are being started. A client that is killed between a
// task's start and its own record of that starts the task again, twice at once.
func (w *world) starts() error {
	list, _, err := w.nomad.Allocations().List(&nomadapi.QueryOptions{Namespace: nomadapi.AllNamespacesNamespace})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range list {
		if a.ClientStatus == nomadapi.AllocClientStatusPending {
			w.starting[a.JobID+"@"+a.Namespace] = true
		}
	}
	return nil
}

// beside reports whether Nomad ran a job twice at once for that reason: its own journal
// says that there were two, and its task was being started when the client was killed.
func (w *world) beside(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starting[j.id()] && strings.Contains(j.journal(), " beside\n")
}

// jobOf is the job of an allocation.
func (w *world) jobOf(alloc string) string {
	a, _, err := w.nomad.Allocations().Info(alloc, &nomadapi.QueryOptions{Namespace: nomadapi.AllNamespacesNamespace})
	if err != nil {
		return ""
	}
	return a.JobID + "@" + a.Namespace
}

// node is the one that there is.
func (w *world) node() (string, error) {
	list, _, err := w.nomad.Nodes().List(nil)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", errors.New("not one node")
	}
	return list[0].ID, nil
}

// freeMemory is how many MiB of the node no allocation has.
func (w *world) freeMemory() (int, error) {
	list, _, err := w.nomad.Allocations().List(&nomadapi.QueryOptions{Namespace: nomadapi.AllNamespacesNamespace, Params: map[string]string{"resources": "true"}})
	if err != nil {
		return 0, err
	}
	free := nodeMemory
	for _, a := range list {
		if terminal(a) {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			free -= int(t.Memory.MemoryMB)
		}
	}
	return free, nil
}

// administer sees that no controller pauses itself, and resumes one that did, so that the
// rest is still struck.
func (w *world) administer(ctx context.Context) {
	for _, o := range w.owners {
		o.resume(ctx)
	}
}

// remains fails the test where something is left of the jobs, or where a controller ended
// by its own fault.
func (w *world) remains() {
	w.t.Helper()
	list, _, err := w.nomad.Allocations().List(&nomadapi.QueryOptions{Namespace: nomadapi.AllNamespacesNamespace})
	if err != nil {
		w.t.Error(err)
	}
	for _, a := range list {
		if !over(a) {
			w.t.Errorf("allocation %s of %s is left: %s", a.ID, a.JobID, a.ClientStatus)
		}
	}
	for _, o := range w.owners {
		if o.controller != nil {
			o.controller.Examine(w.story)
		}
	}
}

// over reports whether nothing of an allocation runs any more or will run.
func over(a *nomadapi.AllocationListStub) bool {
	return terminal(a) || a.DesiredStatus != nomadapi.AllocDesiredStatusRun && a.ClientStatus == nomadapi.AllocClientStatusPending
}

// terminal reports whether an allocation has ended on its node.
func terminal(a *nomadapi.AllocationListStub) bool {
	switch a.ClientStatus {
	case nomadapi.AllocClientStatusComplete, nomadapi.AllocClientStatusFailed, nomadapi.AllocClientStatusLost:
		return true
	}
	return false
}
