package consulserver_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"pitchpipe/test/consulserver"
	"pitchpipe/test/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// consul is a Consul of either kind.
type consul struct {
	*api.Client

	ttl string // the shortest time to live of a session
	n   *atomic.Int32
}

// key is one that no other test has.
func (c consul) key() string { return fmt.Sprintf("test/%d/key", c.n.Add(1)) }

func (c consul) session(t *testing.T, ttl string, delay time.Duration) string {
	t.Helper()
	id, _, err := c.Session().CreateNoChecks(&api.SessionEntry{TTL: ttl, Behavior: "release", LockDelay: delay}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// cas writes a key at an index; it returns the new one, 0 where the index is stale.
func (c consul) cas(t *testing.T, key, value string, index uint64) uint64 {
	t.Helper()
	done, out, _, err := c.Txn().Txn(api.TxnOps{{KV: &api.KVTxnOp{Verb: api.KVCAS, Key: key, Value: []byte(value), Index: index}}}, nil)
	switch {
	case err != nil:
		t.Fatal(err)
	case !done && (len(out.Errors) != 1 || !strings.Contains(out.Errors[0].What, "index is stale")):
		t.Errorf("refused by %+v", out.Errors)
	case done && (len(out.Results) != 1 || out.Results[0].KV.Value != nil):
		t.Errorf("the results are %+v", out.Results)
	case done:
		return out.Results[0].KV.ModifyIndex
	}
	return 0
}

// both runs a test on the in-process server and, where there is one, on an agent of
// Consul, with the same expectations.
func both(t *testing.T, test func(t *testing.T, c consul)) {
	t.Helper()
	connect := func(t *testing.T, address, ttl string) consul {
		t.Helper()
		client, err := api.NewClient(&api.Config{Address: address, Transport: api.DefaultConfig().Transport})
		if err != nil {
			t.Fatal(err)
		}
		return consul{client, ttl, &atomic.Int32{}}
	}
	t.Run("in-process", func(t *testing.T) {
		t.Parallel()
		address, stop := consulserver.New(consulserver.Config{MinTTL: time.Second}).Listen()
		t.Cleanup(stop)
		test(t, connect(t, address, "1s"))
	})
	t.Run("agent of Consul", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, consulserver.StartAgent(t), "10s"))
	})
}

func TestAKeyIsWrittenAtTheExpectedIndexOnly(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		key := c.key()
		if got, _, err := c.KV().Get(key, nil); err != nil || got != nil {
			t.Errorf("before: %v, %v", got, err)
		}
		first := c.cas(t, key, "one", 0)
		if first == 0 || c.cas(t, key, "x", 0) != 0 || c.cas(t, key, "x", first+1000) != 0 {
			t.Error("a missing key has another index than 0, or a key has any")
		}
		second := c.cas(t, key, "two", first)
		p, _, err := c.KV().Get(key, nil)
		if err != nil || second <= first || string(p.Value) != "two" || p.ModifyIndex != second || p.CreateIndex != first {
			t.Errorf("%+v at %d after %d, %v", p, second, first, err)
		}
		for range 2 {
			if _, err := c.KV().Delete(key, nil); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		if c.cas(t, key, "x", second) != 0 || c.cas(t, key, "three", 0) <= second {
			t.Error("indexes do not grow over a deletion")
		}
	})
}

func TestKeysAreListedBelowAPrefix(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		root := c.key()
		for _, key := range []string{"/b", "/a/2", "/a/1", "x"} {
			c.cas(t, root+key, key, 0)
		}
		pairs, _, err := c.KV().List(root+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pairs {
			got = append(got, strings.TrimPrefix(p.Key, root)+"="+string(p.Value))
		}
		if diff := cmp.Diff([]string{"/a/1=/a/1", "/a/2=/a/2", "/b=/b"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if pairs, _, err := c.KV().List(root+"/none", nil); err != nil || len(pairs) != 0 {
			t.Errorf("below nothing: %v, %v", pairs, err)
		}
	})
}

func TestARequestBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		_, _, _, err := c.Txn().Txn(api.TxnOps{{KV: &api.KVTxnOp{Verb: api.KVCAS, Key: c.key(), Value: make([]byte, 390<<10)}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("a value that is more than 512 KiB as base64: %v", err)
		}
	})
}

func TestALockIsFreeAtOnceAfterItsReleaseAndLateAfterItsSession(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		key := c.key()
		acquire := func(session string) bool {
			t.Helper()
			got, _, err := c.KV().Acquire(&api.KVPair{Key: key, Value: []byte(session), Session: session}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		// Without a time to live they last until they are destroyed.
		one, two := c.session(t, "", 2*time.Second), c.session(t, "", 2*time.Second)
		if !acquire(one) || acquire(two) || !acquire(one) {
			t.Error("another session gets a lock that is held, or its holder does not get it again")
		}
		p, _, err := c.KV().Get(key, nil)
		if err != nil || p.Session != one || p.LockIndex != 1 {
			t.Errorf("the lock: %+v, %v", p, err)
		}
		if c.cas(t, key, "written by anybody", p.ModifyIndex) == 0 {
			t.Error("a lock is only advice, and prevents a write")
		}
		if got, _, err := c.KV().Release(&api.KVPair{Key: key, Session: two}, nil); err != nil || got {
			t.Errorf("released by another: %t, %v", got, err)
		}
		if got, _, err := c.KV().Release(&api.KVPair{Key: key, Session: one}, nil); err != nil || !got || !acquire(two) {
			t.Errorf("after the release it is not free: %t, %v", got, err)
		}
		if _, err := c.Session().Destroy(two, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		await(t, func() bool { return acquire(one) })
		if took := time.Since(began); took < time.Second {
			t.Errorf("it was free %v after its session ended", took)
		}
		if _, _, err := c.KV().Acquire(&api.KVPair{Key: key, Session: two}, nil); err == nil || !strings.Contains(err.Error(), "invalid session") {
			t.Errorf("acquired by a session that ended: %v", err)
		}
	})
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	sandbox.Until(t, 3*time.Minute, "it comes", done)
}

func TestASessionEndsAfterItsTimeAndFreesItsKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		key, id := c.key(), c.session(t, c.ttl, time.Millisecond)
		if got, _, err := c.KV().Acquire(&api.KVPair{Key: key, Session: id, Value: []byte("x")}, nil); err != nil || !got {
			t.Fatalf("%t, %v", got, err)
		}
		if e, _, err := c.Session().Renew(id, nil); err != nil || e == nil || e.TTL != c.ttl {
			t.Errorf("renewed: %+v, %v", e, err)
		}
		ttl, err := time.ParseDuration(c.ttl)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var p *api.KVPair
		await(t, func() bool {
			p, _, err = c.KV().Get(key, nil)
			return err == nil && p.Session == ""
		})
		if took := time.Since(began); took < ttl || string(p.Value) != "x" {
			t.Errorf("it ended after %v, before its time to live; the key is %+v", took, p)
		}
		if e, _, err := c.Session().Renew(id, nil); err != nil || e != nil {
			t.Errorf("renewed after its end: %+v, %v", e, err)
		}
		for ttl, want := range map[string]string{"1ms": "Invalid Session TTL", "25h": "Invalid Session TTL", "soon": "invalid"} {
			if _, _, err := c.Session().CreateNoChecks(&api.SessionEntry{TTL: ttl}, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a time to live of %s: %v", ttl, err)
			}
		}
	})
}

func TestTheCatalogShowsServicesByName(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, c consul) {
		for i, name := range []string{"node-a", "node-b"} {
			if _, err := c.Catalog().Register(&api.CatalogRegistration{
				Node: name, Address: fmt.Sprintf("127.0.0.%d", i+2), Service: &api.AgentService{ID: "exporter", Service: "pitchpipe-exporter", Port: 9836 + i},
			}, nil); err != nil {
				t.Fatal(err)
			}
		}
		services, _, err := c.Catalog().Service("pitchpipe-exporter", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range services {
			got = append(got, fmt.Sprintf("%s %s:%d", s.Node, s.Address, s.ServicePort))
		}
		if diff := cmp.Diff([]string{"node-a 127.0.0.2:9836", "node-b 127.0.0.3:9837"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if none, _, err := c.Catalog().Service("another", "", nil); err != nil || len(none) != 0 {
			t.Errorf("another service: %v, %v", none, err)
		}
	})
}

func TestUnknownEndpointsAreNotFound(t *testing.T) {
	t.Parallel()
	address, stop := consulserver.New(consulserver.Config{}).Listen()
	t.Cleanup(stop)
	client, err := api.NewClient(&api.Config{Address: address, Transport: api.DefaultConfig().Transport})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Health().Service("x", "", false, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("health: %v", err)
	}
}
