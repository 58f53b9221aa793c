package consulserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"
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
	address := freePort(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	agent := exec.CommandContext(ctx, program, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1",
		"-http-port="+port, "-https-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
		"-serf-lan-port="+portOf(t), "-serf-wan-port=-1", "-server-port="+portOf(t), "-log-level=error")
	agent.Dir = t.TempDir()
	agent.Cancel = func() error { return agent.Process.Signal(syscall.SIGTERM) }
	agent.WaitDelay = 10 * time.Second
	if err := agent.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = agent.Wait() // it is ended by a signal
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; {
		if err := leads(t.Context(), address); err == nil {
			return address
		} else if time.Now().After(deadline) {
			t.Fatalf("the agent of Consul is not ready: %v", err)
		}
		select {
		case <-ended:
			t.Fatal("the agent of Consul ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
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

func freePort(t testing.TB) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was said over it
	return l.Addr().String()
}

func portOf(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
