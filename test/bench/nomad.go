package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/nomad/api"

	controllerapi "pitchpipe/controller/daemon/api"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// watchNomad measures on its own agent. Without an agent the error is
// nomadagent.ErrUnavailable.
func watchNomad(ctx context.Context, o options) (r report, err error) {
	dir, err := os.MkdirTemp("", "pitchpipe-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := sandbox.Build(ctx, dir, sandbox.Pitchpipe); err != nil {
		return r, err
	}
	agent, err := nomadagent.Launch(ctx, nomadagent.Options{Kind: o.nomad})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, agent.Stop(context.WithoutCancel(ctx))) }()
	client, err := agent.Connect()
	if err != nil {
		return r, err
	}
	defer client.Close()
	counter, err := newCounter(agent.Addr)
	if err != nil {
		return r, err
	}
	defer counter.Close()
	var added atomic.Int64
	add := func(ctx context.Context, stanza bool) (string, time.Time, error) {
		id := fmt.Sprintf("job-%d", added.Add(1))
		_, _, err := client.Jobs().Register(nomadJob(id, stanza), (&api.WriteOptions{}).WithContext(ctx))
		if err != nil {
			err = fmt.Errorf("register %s: %w", id, err)
		}
		return id, time.Now(), err
	}
	return watch(ctx, o, cluster{
		name: agent.Name(), verb: "register",
		fill: func(ctx context.Context) error {
			for i := range o.jobs {
				if _, _, err := add(ctx, o.tuned(i)); err != nil {
					return err
				}
			}
			return nil
		},
		add: add,
		start: func(ctx context.Context) (*site, error) {
			return startNomad(ctx, dir, counter.URL, agent.Token, o.trace, counter)
		},
		asked: func(r report) string {
			return fmt.Sprintf("at most 2 s to seen and under 64 MB; found: %.2f s and %.0f MB at the peak", r.slowest(), float64(r.memory[0].Peak)/1e6)
		},
	})
}

// startNomad starts the controller of the cluster at an address.
func startNomad(ctx context.Context, dir, address, token string, trace io.Writer, c *counter) (*site, error) {
	policyFile, socket := filepath.Join(dir, "site.yaml"), filepath.Join(dir, "controller.sock")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(dir, "pitchpipe"), "controller", "--driver", "nomad",
		"--nomad.address", address, "--socket", socket, "--state", filepath.Join(dir, "state"), "--site", policyFile, "--listen=", "--log.level", "warn",
		"--exporter.socket", filepath.Join(dir, "no-exporter.sock"))
	cmd.Env = sandbox.Environ("NOMAD_TOKEN=" + token)
	s := &site{client: controllerapi.NewClient(socket), traffic: func() (int64, int64) { return c.requests.Load(), c.bytes.Load() }}
	return s, s.run("controller", cmd, trace)
}

// nomadJob is a job that no node may run: it waits, and costs the node nothing.
func nomadJob(id string, stanza bool) *api.Job {
	job := api.NewBatchJob(id, id, "global", 50)
	job.Datacenters = []string{"*"}
	task := api.NewTask("work", "raw_exec").SetConfig("command", "/bin/true").SetConfig("args", []string{id})
	cpu, mib := 100, 32
	task.Resources = &api.Resources{CPU: &cpu, MemoryMB: &mib}
	job.Constrain(&api.Constraint{LTarget: "${node.unique.id}", RTarget: "none", Operand: "="}).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	if stanza {
		off, one := false, int64(1)
		job.TaskGroups[0].Scaling = &api.ScalingPolicy{Enabled: &off, Min: &one, Max: &one, Policy: map[string]any{
			"tuning": []map[string]any{{
				"mode":     "apply",
				"knob":     []map[string]any{{"cores": []map[string]any{{"values": []int{1, 2}}}}},
				"progress": []map[string]any{{"pattern": `epoch (?P<epoch>\d+)`, "total": 100}},
			}},
		}}
	}
	return job
}

// counter is a proxy that counts what the controller asks of the agent.
type counter struct {
	*httptest.Server

	requests, bytes atomic.Int64 // bytes of the answers
}

func newCounter(agent string) (*counter, error) {
	to, err := url.Parse(agent)
	if err != nil {
		return nil, err
	}
	c := &counter{}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // streams go on as they come
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			r.Body = counted{r.Body, &c.bytes}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	return c, nil
}

// counted is a body that counts the bytes that are read from it.
type counted struct {
	io.ReadCloser

	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
