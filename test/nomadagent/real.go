package nomadagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pitchpipe/test/sandbox"
)

const (
	// The folder's name leaves room for the sockets below it, whose paths have 107
	// bytes at most.
	parent = "/tmp"
	prefix = "ppnomad"
)

// program is the real Nomad in its folder: two processes, a server and a client. In one
// process the client would register before the server has a leader, and try again only
// after 15 s or more.
type program struct {
	opts   Options
	path   string // of nomad
	dir    string
	ports  []int // of the server HTTP, RPC, Serf, of the client HTTP
	server *sandbox.Process
	client *sandbox.Process
	mounts *mountNamespace
}

func launchReal(ctx context.Context, o Options) (backend, error) {
	path, err := exec.LookPath("nomad")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := sweep(ctx); err != nil {
		return nil, fmt.Errorf("remove what a dead agent left: %w", err)
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	p := &program{opts: o, path: path, dir: dir}
	if err := p.first(ctx); err != nil {
		return nil, errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// first starts the agent on ports that are free. Another process may take one between
// the look and the agent's own attempt.
func (p *program) first(ctx context.Context) error {
	if err := sandbox.Own(p.dir); err != nil {
		return err
	}
	var err error
	if p.mounts, err = enter(ctx, p.dir); err != nil {
		return fmt.Errorf("a namespace for the agent: %w", err)
	}
	for {
		var err error
		if p.ports, err = sandbox.Ports(4); err != nil {
			return err
		}
		for name, text := range map[string]string{"server": p.serverConfig(), "client": p.clientConfig()} {
			if err := os.WriteFile(filepath.Join(p.dir, name+".hcl"), []byte(text), 0o600); err != nil {
				return err
			}
		}
		err = p.start(ctx)
		if err == nil || ctx.Err() != nil || !strings.Contains(p.logs(), "address already in use") {
			return err
		}
		if err := p.kill(ctx); err != nil {
			return err
		}
	}
}

func (p *program) addr() string { return loopback(p.ports[0]) }

func loopback(port int) string { return "http://" + sandbox.Loopback(port) }

// start starts the server, waits until it leads and has the key with which it signs
// identities, without which it refuses clients, and starts the client.
func (p *program) start(ctx context.Context) error {
	if err := p.startPart(ctx, &p.server, "server", p.addr()+"/.well-known/jwks.json", `"kid"`); err != nil {
		return err
	}
	return p.startClient(ctx)
}

func (p *program) startClient(ctx context.Context) error {
	return p.startPart(ctx, &p.client, "client", loopback(p.ports[3])+"/v1/agent/health?type=client", "")
}

func (p *program) startPart(ctx context.Context, part **sandbox.Process, name, url, want string) error {
	started, err := start(p.mounts, p.dir, name, p.path, "agent", "-config="+filepath.Join(p.dir, name+".hcl"))
	if err != nil {
		return err
	}
	*part = started
	if err := started.Await(ctx, func(ctx context.Context) error { return ask(ctx, url, want) }); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(p.logs(), 4000))
	}
	return nil
}

// start starts a program in the namespace; it writes to NAME.log in the folder. Its jobs
// inherit its environment, and cleanup finds them by that.
func start(r *mountNamespace, dir, name string, argv ...string) (*sandbox.Process, error) {
	argv = r.inside(argv)
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...) //nolint:gosec // it lives until it is killed
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + dir, marker + "=" + dir}
	return sandbox.Begin(name, filepath.Join(dir, name+".log"), cmd)
}

// ask wants an answer that has a text.
func ask(ctx context.Context, url, want string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusInternalServerError || !strings.Contains(string(text), want) {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

func (p *program) gone() error { return errors.Join(p.server.Failed(), p.client.Failed()) }

func (p *program) kill(context.Context) error {
	p.client.Kill()
	p.server.Kill()
	return nil
}

func (p *program) stop(ctx context.Context) error {
	p.client.Kill()
	p.server.Kill()
	p.mounts.leave()
	return remove(ctx, p.dir)
}

func (p *program) logs() string {
	var b strings.Builder
	for _, name := range []string{"server", "client"} {
		text, err := os.ReadFile(filepath.Join(p.dir, name+".log"))
		if err == nil {
			fmt.Fprintf(&b, "--- %s\n%s", name, text)
		}
	}
	return b.String()
}

// KillClient ends the real agent's client alone, as a crash does. Its tasks run on, and the
// server goes on without it. The server in this process has no such client: ErrUnavailable.
func (a *Agent) KillClient(context.Context) error {
	p, ok := a.backend.(*program)
	if !ok {
		return fmt.Errorf("%w that has a client of its own", ErrUnavailable)
	}
	p.client.Kill()
	return nil
}

// ReviveClient starts the client after KillClient and waits until the node is ready.
func (a *Agent) ReviveClient(ctx context.Context) error {
	p, ok := a.backend.(*program)
	if !ok {
		return fmt.Errorf("%w that has a client of its own", ErrUnavailable)
	}
	if err := p.startClient(ctx); err != nil {
		return err
	}
	return a.Ready(ctx)
}
