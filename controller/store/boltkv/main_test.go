package boltkv_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/store/boltkv"
)

// envLead makes this test binary a leader that waits to be killed.
const envLead = "PITCHPIPE_TEST_BOLTKV_LEAD"

func TestMain(m *testing.M) {
	if path := os.Getenv(envLead); path != "" {
		s, err := boltkv.Open(context.Background(), path)
		if err == nil {
			_, err = s.Put(context.Background(), "key", []byte("by the child"), 0)
		}
		if err == nil {
			_, err = s.Lead(context.Background(), "name", "the child")
		}
		fmt.Println("leads", err)
		select {}
	}
	goleak.VerifyTestMain(m)
}

func TestAnotherProcessTakesOverFromOneThatWasKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envLead+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "leads <nil>\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	s, err := boltkv.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	if holder, err := s.Leader(t.Context(), "name"); err != nil || holder != "the child" {
		t.Errorf("the leader is %q, %v", holder, err)
	}
	if e, err := s.Get(t.Context(), "key"); err != nil || string(e.Value) != "by the child" {
		t.Errorf("the child's value is %q, %v", e.Value, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	l, err := s.Lead(t.Context(), "name", "the parent")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
