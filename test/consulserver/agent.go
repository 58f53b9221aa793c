package consulserver

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"pitchpipe/test/sandbox"
)

// StartAgent starts "consul agent -dev" on free loopback ports and returns its address,
// as in "127.0.0.1:1234". It ends with the test, which is skipped where the program is
// not on PATH.
func StartAgent(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("consul")
	if err != nil {
		t.Skip("the program consul is not on PATH")
	}
	ports, err := sandbox.Ports(3)
	if err != nil {
		t.Fatal(err)
	}
	address, port := sandbox.Loopback(ports[0]), strconv.Itoa
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1",
		"-http-port="+port(ports[0]), "-https-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
		"-serf-lan-port="+port(ports[1]), "-serf-wan-port=-1", "-server-port="+port(ports[2]), "-log-level=error")
	cmd.Dir = t.TempDir()
	agent, err := sandbox.Begin("the agent of Consul", "", cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.End(syscall.SIGTERM, 10*time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := agent.Await(ctx, func(ctx context.Context) error { return leads(ctx, address) }); err != nil {
		t.Fatal(err)
	}
	return address
}

// leads asks whether the agent can write.
func leads(ctx context.Context, address string) error {
	call, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(call, http.MethodPut, "http://"+address+"/v1/kv/ready", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
