package nomadagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

const patience = 3 * time.Minute // for an agent to be ready or gone, on a machine that is busy

// backend is an agent of either kind.
type backend interface {
	addr() string
	kill(context.Context) error  // as a crash does
	start(context.Context) error // after kill
	stop(context.Context) error  // nothing is left
	logs() string
	gone() error // why it ended by itself; nil while it runs
}

// Agent is a running Nomad: a server and a client on one node. Only Client is safe
// for concurrent use.
type Agent struct {
	Addr    string // http://127.0.0.1:port, the same after a restart
	Token   string // the management token; empty without ACLs
	Real    bool   // the program nomad, else the server in this process
	Version string // of Nomad

	backend backend
}

// Launch starts an agent and returns when its node is ready for jobs. The context bounds
// the start; the agent runs until Stop. The error is ErrUnavailable where this machine can
// have no such agent.
func Launch(ctx context.Context, o Options) (*Agent, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	launch := launchInProcess
	if o.Kind == Real {
		launch = launchReal
	}
	b, err := launch(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &Agent{Addr: b.addr(), Real: o.Kind == Real, backend: b}
	if err := a.up(ctx, o); err != nil {
		err = fmt.Errorf("%w\n%s", err, tail(b.logs(), 4000))
		return nil, errors.Join(err, b.stop(context.WithoutCancel(ctx)))
	}
	return a, nil
}

// up makes the token and waits for the node.
func (a *Agent) up(ctx context.Context, o Options) error {
	if o.ACL {
		if err := a.await(ctx, a.bootstrap); err != nil {
			return fmt.Errorf("bootstrap the ACLs: %w", err)
		}
	}
	return a.Ready(ctx)
}

func (a *Agent) bootstrap(ctx context.Context) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	token, _, err := c.ACLTokens().Bootstrap((&api.WriteOptions{}).WithContext(ctx))
	if err != nil {
		return err
	}
	a.Token = token.SecretID
	return nil
}

// Ready waits until there is a leader and the node takes jobs.
func (a *Agent) Ready(ctx context.Context) error {
	return a.await(ctx, func(ctx context.Context) error {
		c, err := a.Connect()
		if err != nil {
			return err
		}
		defer c.Close()
		q := (&api.QueryOptions{}).WithContext(ctx)
		nodes, _, err := c.Nodes().List(q)
		if err != nil {
			return err
		}
		if len(nodes) != 1 || nodes[0].Status != api.NodeStatusReady {
			return fmt.Errorf("%d nodes, the first not ready", len(nodes))
		}
		if d := nodes[0].Drivers["raw_exec"]; d == nil || !d.Healthy {
			return errors.New("raw_exec is not healthy")
		}
		a.Version = nodes[0].Version
		return nil
	})
}

// await asks until the error is gone or patience ends. One question may take seconds: a
// server without a leader lets its clients wait.
func (a *Agent) await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		once, done := context.WithTimeout(ctx, 10*time.Second)
		err := ask(once)
		done()
		if err == nil {
			return nil
		}
		if gone := a.backend.gone(); gone != nil {
			return fmt.Errorf("%w: %w", gone, err)
		}
		if over := driver.Pause(ctx, 50*time.Millisecond); over != nil {
			return fmt.Errorf("%w: %w", over, err)
		}
	}
}

// Connect makes a client with the management token and its own connections, so that none stays
// idle in a shared pool. Close it.
func (a *Agent) Connect() (*api.Client, error) {
	return api.NewClient(&api.Config{Address: a.Addr, SecretID: a.Token, Namespace: api.DefaultNamespace})
}

// Client is a client with the management token, closed with the test.
func (a *Agent) Client(t testing.TB) *api.Client {
	t.Helper()
	c, err := a.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Kill ends the agent as a crash does; the tasks run on. Nothing listens at the address
// until Revive.
func (a *Agent) Kill(ctx context.Context) error { return a.backend.kill(ctx) }

// Revive starts the agent after Kill, with its state and at its address, and waits
// until the node is ready.
func (a *Agent) Revive(ctx context.Context) error {
	if err := a.backend.start(ctx); err != nil {
		return err
	}
	if err := a.Ready(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(a.backend.logs(), 4000))
	}
	return nil
}

// Stop ends the agent and every process of its jobs, and removes what they left.
func (a *Agent) Stop(ctx context.Context) error { return a.backend.stop(ctx) }

// Name says which Nomad it is, for tables and reports.
func (a *Agent) Name() string {
	if a.Real {
		return "nomad agent " + a.Version
	}
	return "in-process server (as Nomad " + a.Version + ")"
}

// Do sends a raw request, for tests of what the client library hides, and returns the
// status and the body.
func (a *Agent) Do(ctx context.Context, method, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.Addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if a.Token != "" {
		r.Header.Set("X-Nomad-Token", a.Token)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
