package nomadagent

import (
	"context"
	"fmt"
	"path/filepath"
)

// KillClient ends the real agent's client alone, as a crash does; its tasks run on, and
// the server goes on without it. In this process there is none: ErrUnavailable.
func (a *Agent) KillClient(context.Context) error {
	p, ok := a.backend.(*program)
	if !ok {
		return fmt.Errorf("%w that has a client of its own", ErrUnavailable)
	}
	return p.client.kill()
}

// ReviveClient starts the client after KillClient and waits until the node is ready.
func (a *Agent) ReviveClient(ctx context.Context) error {
	p, ok := a.backend.(*program)
	if !ok {
		return fmt.Errorf("%w that has a client of its own", ErrUnavailable)
	}
	if err := p.client.start(p.room, p.dir, "client", p.path, "agent", "-config="+filepath.Join(p.dir, "client.hcl")); err != nil {
		return err
	}
	if err := p.answers(ctx, &p.client, loopback(p.ports[3])+"/v1/agent/health?type=client", ""); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(p.logs(), 4000))
	}
	return a.Ready(ctx)
}
