package benchnomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/measure"
)

// policy lets the tuner do what it wants.
const policy = "default:\n  max_mode: apply\n  control: 0\n"

// patience is how long the controller may take to know every job at its start, and any
// new one.
const patience = 4 * time.Minute

// controller is the pitchpipe program as a controller of a Nomad cluster.
type controller struct {
	cmd    *exec.Cmd
	client *api.Client
	ended  chan struct{} // closed when the process has
	status error         // that it ended with
}

// build makes the program.
func build(ctx context.Context, root, dir string) (string, error) {
	program := filepath.Join(dir, "pitchpipe")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./controller/cmd/pitchpipe")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

func start(ctx context.Context, program, dir, address, token string, trace io.Writer) (*controller, error) {
	site := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(site, []byte(policy), 0o600); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "controller.sock")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "controller", "--driver", "nomad", "--nomad.address", address,
		"--socket", socket, "--state", filepath.Join(dir, "state"), "--site", site, "--listen=", "--log.level", "warn",
		"--exporter.socket", filepath.Join(dir, "no-exporter.sock"))
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "NOMAD_") || strings.HasPrefix(kv, "PITCHPIPE_")
	}), "NOMAD_TOKEN="+token)
	cmd.Stdout, cmd.Stderr = trace, trace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &controller{cmd: cmd, client: api.NewClient(socket), ended: make(chan struct{})}
	go func() {
		c.status = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *controller) stop() error {
	c.client.Close()
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	<-c.ended
	return errors.Join(err, c.status)
}

// known is of how many jobs the controller has something to say.
func (c *controller) known(ctx context.Context, prefix string) (map[string]bool, error) {
	events, err := c.client.History(ctx)
	jobs := map[string]bool{}
	for _, e := range events {
		if strings.HasPrefix(e.Job, prefix) {
			jobs[e.Job] = true
		}
	}
	return jobs, err
}

// await waits until the controller has something to say of the jobs.
func (c *controller) await(ctx context.Context, prefix string, jobs int, look time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		known, err := c.known(ctx, prefix) // at first nobody answers
		if err == nil && len(known) >= jobs {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("the controller has ended: %w", errors.Join(c.status, err))
		default:
		}
		if measure.Pause(ctx, look) != nil {
			return fmt.Errorf("the controller knows %d of %d jobs named %s: %w", len(known), jobs, prefix, errors.Join(ctx.Err(), err))
		}
	}
}
