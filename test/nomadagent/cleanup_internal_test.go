package nomadagent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/test/sandbox"
)

// id is one that no allocation has.
func id(t *testing.T) string {
	t.Helper()
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// group makes a cgroup of a task that holds no process, or skips the test.
func group(t *testing.T, alloc string) string {
	t.Helper()
	parent := filepath.Join(sandbox.CgroupRoot, "freezer", "nomad")
	if os.Geteuid() != 0 {
		t.Skip("not root: no cgroup can be made")
	}
	if _, err := os.Stat(filepath.Join(sandbox.CgroupRoot, "freezer", "cgroup.procs")); err != nil {
		t.Skip("no cgroups of version 1: ", err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil { // it stays: others may share it
		t.Skip("no cgroup can be made: ", err)
	}
	at := filepath.Join(parent, alloc+".main")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return at
}

// folder is that of an agent that had allocations: some it still has, of some there is
// nothing but its log.
func folder(t *testing.T, there, logged []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent")
	for _, alloc := range there {
		if err := os.MkdirAll(filepath.Join(dir, "client", "alloc", alloc), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := "==> Nomad agent started!\n"
	for _, alloc := range logged {
		text += fmt.Sprintf("2026-11-22T00:00:00.000Z [INFO]  client.alloc_runner.task_runner: Task event: alloc_id=%s task=main type=Received msg=\"Task received by client\" failed=false\n", alloc)
		text += fmt.Sprintf("2026-11-22T00:00:01.000Z [INFO]  client.gc: garbage collecting allocation: alloc_id=%s reason=\"forced collection\"\n", alloc)
	}
	text += "2026-11-22T00:00:02.000Z [ERROR] client: cut off: alloc_id=0123"
	if err := os.WriteFile(filepath.Join(dir, "client.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheAllocationsOfAnAgentAreThoseOfItsFolderAndOfItsLog(t *testing.T) {
	t.Parallel()
	const a, b = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
	if diff := cmp.Diff([]string{a, b}, allocations(folder(t, []string{a}, []string{b, a}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := allocations(t.TempDir()); len(got) != 0 {
		t.Errorf("of an empty folder: %v", got)
	}
}

func TestOnlyTheCgroupsOfTheAgentsAllocationsAreRemoved(t *testing.T) {
	t.Parallel()
	mine, gone, other := id(t), id(t), id(t)
	dir := folder(t, []string{mine}, []string{gone})
	groups := []string{group(t, mine), group(t, gone)}
	foreign := group(t, other)
	if err := remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, cg := range groups {
		if _, err := os.Stat(cg); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left (%v)", cg, err)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("another's cgroup: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left (%v)", err)
	}
}
