package faultnomad_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/fault"
	"pitchpipe/test/sandbox"
)

// owner is a namespace with jobs, and the controller that tunes them.
type owner struct {
	w          *world
	name       string // of the namespace
	dir        string
	proxy      *proxy
	client     *api.Client
	controller *fault.Keeper
	down       spans       // of the controller, and of its way to the agent
	hand       *fault.Hand // that moves the jobs without a tuner

	mu      sync.Mutex
	records map[string]record // by file
}

// record is what the driver's journal has of a job.
type record struct {
	at     time.Time // of the file
	Job    string
	Moving json.RawMessage
	Last   json.RawMessage
}

func newOwner(w *world, name string) *owner {
	w.t.Helper()
	o := &owner{w: w, name: name, dir: w.path(name), records: map[string]record{}}
	if _, err := w.nomad.Namespaces().Register(&nomadapi.Namespace{Name: name}, nil); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if !w.tuned {
		o.hand = newHand(o)
		return o
	}
	o.proxy = newProxy(w.t, w.agent.Addr, name, w.jobOf)
	o.client = api.NewClient(o.path("controller.sock"))
	w.t.Cleanup(o.client.Close)
	o.controller = fault.Keep(w.t, "the controller of "+name, w.path("controller-"+name+".log"), o.launch)
	w.await("the controller of "+name, o.answers)
	return o
}

func (o *owner) path(name string) string { return filepath.Join(o.dir, name) }

// launch is the controller as it ships.
func (o *owner) launch() (*exec.Cmd, error) {
	cmd := exec.CommandContext(context.WithoutCancel(o.w.t.Context()), o.w.path("pitchpipe"), "controller", "--config=", "--driver=nomad",
		"--nomad.address="+o.proxy.addr, "--nomad.namespaces="+o.name, "--nomad.dir="+o.path("journal"), "--socket="+o.path("controller.sock"),
		"--state="+o.path("state"), "--exporter.socket="+o.w.exporter, "--listen=", "--site="+o.w.path("site.yaml"), "--resync=2s")
	cmd.Env = sandbox.Environ("NOMAD_TOKEN="+o.w.agent.Token, "HOME="+o.dir)
	return cmd, nil
}

func (o *owner) answers() error {
	_, err := o.client.Jobs(o.w.t.Context())
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, sandbox.Tail(o.controller.Log, 20))
	}
	return err
}

// crash kills the controller and waits until the next one is there.
func (o *owner) crash() error {
	return o.down.during(func() error {
		o.controller.Crash()
		return eventually(o.answers)
	})
}

// moving are the jobs that an intent is in progress for, by the driver's own records.
func (o *owner) moving() []string {
	if o.hand != nil {
		return o.hand.Moving()
	}
	files, err := filepath.Glob(o.path("journal/job-*.json"))
	if err != nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		r, ok := o.records[file]
		if !ok || !r.at.Equal(info.ModTime()) {
			r = record{at: info.ModTime()}
			text, err := os.ReadFile(file)
			if err != nil || json.Unmarshal(text, &r) != nil {
				continue
			}
			o.records[file] = r
		}
		if r.Moving != nil && r.Last == nil && o.w.byID(r.Job) != nil {
			out = append(out, r.Job)
		}
	}
	slices.Sort(out)
	return out
}

// explain is what the controller says about a job; nothing without one.
func (o *owner) explain(job string) (api.Story, error) {
	if o.client == nil {
		return api.Story{}, nil
	}
	return o.client.Explain(o.w.t.Context(), job)
}

// logged are the lines that the controller wrote about a job.
func (o *owner) logged(job string) string {
	if o.controller == nil {
		return ""
	}
	return fault.Grep(o.controller.Log, "job="+job)
}

// meets are the jobs that are being moved, and one more.
func (o *owner) meets(job string) []string {
	out := o.moving()
	if o.w.byID(job) != nil && !slices.Contains(out, job) {
		out = append(out, job)
	}
	return out
}

func (o *owner) read() *nomadapi.QueryOptions  { return &nomadapi.QueryOptions{Namespace: o.name} }
func (o *owner) write() *nomadapi.WriteOptions { return &nomadapi.WriteOptions{Namespace: o.name} }

// resume ends a pause of the tuner's own, which has no reason here: a job that its owner
// purges is cancelled and not lost.
func (o *owner) resume(ctx context.Context) {
	if o.client == nil {
		return
	}
	pauses, err := o.client.Pauses(ctx)
	if err != nil {
		return // it is away
	}
	for _, p := range pauses {
		o.w.t.Errorf("the controller of %s paused %s %s: %s", o.name, p.Scope, p.Name, p.Why)
		o.w.story.Logf("resumed after: %s (%v)", p.Why, o.client.Resume(ctx, p.Scope, p.Name))
	}
}
