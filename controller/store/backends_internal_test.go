package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"
	bolt "go.etcd.io/bbolt"

	"pitchpipe/test/consulserver"
	"pitchpipe/test/nomadagent"
)

// leadUntilKilled is the child of the test that kills a leader.
func leadUntilKilled(path string) {
	ctx := context.Background()
	kv, err := OpenFile(ctx, path)
	if err == nil {
		_, err = kv.Put(ctx, "key", []byte("by the child"), 0)
	}
	if err == nil {
		err = Lead(ctx, kv, "the child", silentLog(), func(context.Context, *Lease) error {
			fmt.Println("leads")
			select {}
		})
	}
	fmt.Println(err)
	os.Exit(1)
}

func TestAnotherProcessTakesOverFromAKilledOne(t *testing.T) {
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
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "leads\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	kv, err := OpenFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if holder, err := kv.Leader(t.Context()); err != nil || holder != "the child" {
		t.Errorf("the leader is %q, %v", holder, err)
	}
	if e := get(t, kv, "key"); string(e.Value) != "by the child" {
		t.Errorf("the child's value is %q", e.Value)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	l := leading(t, kv, "the parent")
	l.leads(t, "the parent")
	l.release(t)
}

// An earlier version kept a database in the file, and a full disk could leave it empty.
func TestALockFileOfAnyContentIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", strings.Repeat("\x00", 1<<15)} {
		path := filepath.Join(t.TempDir(), "shared.db")
		kv, err := OpenFile(t.Context(), path)
		if err := errors.Join(err, os.WriteFile(path+".leader.lock", []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err = kv.Leader(t.Context())
		fails(t, "the leader", err, ErrNotFound)
		l := leading(t, kv, "first")
		if holder, err := kv.Leader(t.Context()); err != nil || holder != "first" {
			t.Errorf("the leader is %q, %v", holder, err)
		}
		l.release(t)
	}
}

func TestRemovingTheLockFileEndsTheLeadership(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shared.db")
	kv, err := OpenFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	first := leading(t, kv, "first")
	if err := os.Remove(path + ".leader.lock"); err != nil {
		t.Fatal(err)
	}
	second := leading(t, kv, "second")
	fails(t, "check", first.Check(t.Context()), ErrLost)
	if err := <-first.err; err != nil || !first.Lost() {
		t.Errorf("the first ended with %v", err)
	}
	second.leads(t, "the second")
	second.release(t)
}

func TestAFileOfAnotherKindIsRefusedAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	bucket := func(t *testing.T, name, key, value string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "some.db")
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := filepath.Join(t.TempDir(), "thesis.txt")
	if err := os.WriteFile(text, []byte("years of work, far more than fits into a page of bbolt"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a file of knowledge":       bucket(t, "observations", "a", "b"),
		"a store of an old version": bucket(t, bucketMeta, keySchema, "1"),
		"a text":                    text,
	} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(t.Context(), path); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s is opened: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
}

func TestErrorsOfConsulHaveTheirNames(t *testing.T) {
	t.Parallel()
	server := consulserver.New(consulserver.Config{Token: "secret"})
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		token    string
		headless bool
		want     error
	}{
		"no token":      {"", false, ErrDenied},
		"another token": {"wrong", false, ErrDenied},
		"no leader":     {"secret", true, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // the server has one leader or none
			server.Headless(tc.headless)
			defer server.Headless(false)
			c, err := consul.NewClient(&consul.Config{Address: "consul.invalid", Token: tc.token, HttpClient: &http.Client{Transport: server.Transport()}})
			if err != nil {
				t.Fatal(err)
			}
			kv := NewConsul(c, "test", Options{})
			checkErrors(t, kv, tc.want)
			if errors.Is(tc.want, ErrDenied) {
				fails(t, "lead", <-candidate(t, kv, "me").err, ErrDenied)
			}
		})
	}
}

func checkErrors(t *testing.T, kv KV, want error) {
	t.Helper()
	_, get := kv.Get(t.Context(), "key")
	_, put := kv.Put(t.Context(), "key", []byte("x"), 0)
	_, list := kv.List(t.Context(), "")
	_, leader := kv.Leader(t.Context())
	for call, err := range map[string]error{"get": get, "put": put, "list": list, "leader": leader, "delete": kv.Delete(t.Context(), "key")} {
		fails(t, call, err, want)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the token is in the error: %v", call, err)
		}
	}
}

func TestAnAbsentNomadIsUnavailable(t *testing.T) {
	t.Parallel()
	c, err := nomad.NewClient(&nomad.Config{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	checkErrors(t, NewNomad(c, "", "p", Options{}), ErrUnavailable)
}

// Nomad frees a lapsed lock when its delay is over, even if another holds it by then. Lead
// therefore releases no lock that it lost. This test may go when a later Nomad differs.
func TestNomadFreesTheNextHoldersLockAfterALateRelease(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lock to lapse, 20 s and more")
	}
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	vars := a.Client(t).Variables()
	acquire := func(id string) error {
		_, _, err := vars.AcquireLock(&nomad.Variable{
			Path: "trap", Items: nomad.VariableItems{"holder": id}, Lock: &nomad.VariableLock{ID: id, TTL: "10s", LockDelay: "8s"},
		}, nil)
		return err
	}
	holds := func(id string) error {
		_, _, err := vars.RenewLock(&nomad.Variable{Path: "trap", Lock: &nomad.VariableLock{ID: id}}, nil)
		return err
	}
	const first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	if err := errors.Join(acquire(first), holds(first)); err != nil { // from now on it lives for twice its time
		t.Fatal(err)
	}
	time.Sleep(21 * time.Second) // it lapsed, and its delay goes on
	if _, _, err := vars.ReleaseLock(&nomad.Variable{Path: "trap", Lock: &nomad.VariableLock{ID: first}}, nil); err != nil {
		t.Skip("this Nomad takes no late release: ", err)
	}
	if err := errors.Join(acquire(second), holds(second)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(12 * time.Second); holds(second) == nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Skip("this Nomad leaves the lock of the next holder alone")
		}
	}
	t.Log("the second lost its lock to the delay of the first")
}
