package consulserver_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"pitchpipe/test/consulserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Consul of either kind.
type world struct {
	*api.Client
	ttl string // the shortest time to live of a session
	n   *atomic.Int32
}

// key is one that no other test has.
func (w world) key() string { return fmt.Sprintf("test/%d/key", w.n.Add(1)) }

func (w world) session(t *testing.T, behavior string, delay time.Duration) string {
	t.Helper()
	id, _, err := w.Session().CreateNoChecks(&api.SessionEntry{TTL: w.ttl, Behavior: behavior, LockDelay: delay}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// both runs a test on the in-process server and, where there is one, on an agent of
// Consul: what is expected is the same.
func both(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	connect := func(t *testing.T, address, ttl string) world {
		client, err := api.NewClient(&api.Config{Address: address, Transport: api.DefaultConfig().Transport})
		if err != nil {
			t.Fatal(err)
		}
		return world{client, ttl, &atomic.Int32{}}
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

func must[T any](t *testing.T) func(v T, _ any, err error) T {
	t.Helper()
	return func(v T, _ any, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestAKeyIsWrittenWhereItsIndexIsTheOneExpected(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		kv, key := w.KV(), w.key()
		cas := func(index uint64, value string) bool {
			t.Helper()
			done, _, err := kv.CAS(&api.KVPair{Key: key, Value: []byte(value), ModifyIndex: index}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		if got, meta, err := kv.Get(key, nil); err != nil || got != nil || meta.LastIndex == 0 {
			t.Errorf("before: %v, %v", got, err)
		}
		if !cas(0, "one") || cas(0, "two") {
			t.Error("index 0 is not that of what is not there")
		}
		first, _, err := kv.Get(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cas(first.ModifyIndex+1000, "x") || !cas(first.ModifyIndex, "two") || cas(first.ModifyIndex, "three") {
			t.Error("another index than that of the key is taken, or its own is not")
		}
		second, _, err := kv.Get(key, nil)
		if err != nil || string(second.Value) != "two" || second.ModifyIndex <= first.ModifyIndex || second.CreateIndex != first.CreateIndex {
			t.Errorf("%+v after %+v, %v", second, first, err)
		}
		if done, _, err := kv.DeleteCAS(first, nil); err != nil || done {
			t.Errorf("deletion at an old index: %t, %v", done, err)
		}
		if done, _, err := kv.DeleteCAS(second, nil); err != nil || !done {
			t.Errorf("deletion at its index: %t, %v", done, err)
		}
		// What is not there counts as deleted at any index: who needs to know asks by a
		// transaction.
		if done, _, err := kv.DeleteCAS(second, nil); err != nil || !done {
			t.Errorf("deletion of nothing: %t, %v", done, err)
		}
	})
}

func TestAValueBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		if _, err := w.KV().Put(&api.KVPair{Key: w.key(), Value: make([]byte, 512<<10)}, nil); err != nil {
			t.Errorf("512 KiB: %v", err)
		}
		_, err := w.KV().Put(&api.KVPair{Key: w.key(), Value: make([]byte, 512<<10+1)}, nil)
		if err == nil || !strings.Contains(err.Error(), "413") || !strings.Contains(err.Error(), "too large") {
			t.Errorf("one byte more: %v", err)
		}
	})
}

func TestKeysAreListedBelowAPrefix(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		root := w.key()
		for _, key := range []string{"/b", "/a/2", "/a/1", "x"} {
			if _, err := w.KV().Put(&api.KVPair{Key: root + key, Value: []byte(key)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		pairs := must[api.KVPairs](t)(w.KV().List(root+"/", nil))
		var got []string
		for _, p := range pairs {
			got = append(got, strings.TrimPrefix(p.Key, root)+"="+string(p.Value))
		}
		if diff := cmp.Diff([]string{"/a/1=/a/1", "/a/2=/a/2", "/b=/b"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		names := must[[]string](t)(w.KV().Keys(root+"/", "/", nil))
		if diff := cmp.Diff([]string{root + "/a/", root + "/b"}, names); diff != "" {
			t.Errorf("names up to the separator (-want +got):\n%s", diff)
		}
		if _, err := w.KV().DeleteTree(root+"/a", nil); err != nil {
			t.Fatal(err)
		}
		if pairs := must[api.KVPairs](t)(w.KV().List(root, nil)); len(pairs) != 2 {
			t.Errorf("%d keys are left, want 2", len(pairs))
		}
	})
}

func TestAQueryWaitsForAChangeAndNoLonger(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		kv, key := w.KV(), w.key()
		if _, err := kv.Put(&api.KVPair{Key: key, Value: []byte("one")}, nil); err != nil {
			t.Fatal(err)
		}
		_, meta, err := kv.Get(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		// A change elsewhere does not end it, the end of the wait does.
		began := time.Now()
		if _, err := kv.Put(&api.KVPair{Key: w.key(), Value: []byte("elsewhere")}, nil); err != nil {
			t.Fatal(err)
		}
		_, same, err := kv.Get(key, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: 300 * time.Millisecond})
		if err != nil || same.LastIndex != meta.LastIndex || time.Since(began) < 300*time.Millisecond {
			t.Errorf("unchanged: index %d after %d, %v", same.LastIndex, meta.LastIndex, err)
		}
		type answer struct {
			pair  *api.KVPair
			index uint64
			err   error
		}
		answers := make(chan answer, 1)
		go func() {
			p, m, err := kv.Get(key, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: 5 * time.Minute})
			answers <- answer{p, m.LastIndex, err}
		}()
		if _, err := kv.Put(&api.KVPair{Key: key, Value: []byte("two")}, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-answers; got.err != nil || string(got.pair.Value) != "two" || got.index <= meta.LastIndex {
			t.Errorf("changed: %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := kv.Get(key, (&api.QueryOptions{WaitIndex: 1 << 40}).WithContext(ctx)); err == nil {
			t.Error("a query outlives its context")
		}
	})
}

func TestATransactionIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		a, b := w.key(), w.key()
		run := func(ops ...*api.KVTxnOp) (bool, *api.TxnResponse) {
			t.Helper()
			var all api.TxnOps
			for _, op := range ops {
				all = append(all, &api.TxnOp{KV: op})
			}
			done, out, _, err := w.Txn().Txn(all, nil)
			if err != nil {
				t.Fatal(err)
			}
			return done, out
		}
		done, out := run(&api.KVTxnOp{Verb: api.KVCAS, Key: a, Value: []byte("one")})
		if !done || len(out.Results) != 1 || out.Results[0].KV.ModifyIndex == 0 || out.Results[0].KV.Value != nil {
			t.Fatalf("%t, %+v", done, out)
		}
		index := out.Results[0].KV.ModifyIndex
		done, out = run(
			&api.KVTxnOp{Verb: api.KVSet, Key: b, Value: []byte("x")},
			&api.KVTxnOp{Verb: api.KVCAS, Key: a, Value: []byte("two"), Index: index + 1000})
		if done || len(out.Errors) != 1 || out.Errors[0].OpIndex != 1 || !strings.Contains(out.Errors[0].What, "index is stale") {
			t.Errorf("%t, %+v", done, out)
		}
		if p, _, err := w.KV().Get(b, nil); err != nil || p != nil {
			t.Errorf("half of it happened: %v, %v", p, err)
		}
		if done, _ := run(&api.KVTxnOp{Verb: api.KVCheckIndex, Key: b, Index: 1}, &api.KVTxnOp{Verb: api.KVDelete, Key: b}); done {
			t.Error("the index of what is not there passes")
		}
		if done, _ := run(&api.KVTxnOp{Verb: api.KVCheckIndex, Key: a, Index: index}, &api.KVTxnOp{Verb: api.KVDelete, Key: a}); !done {
			t.Error("its own index does not pass")
		}
		if done, _ := run(&api.KVTxnOp{Verb: api.KVCheckNotExists, Key: a}); !done {
			t.Error("what was deleted is there")
		}
	})
}

func TestALockIsFreeAtOnceAfterItsReleaseAndLateAfterItsSession(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		key := w.key()
		acquire := func(session string) bool {
			t.Helper()
			got, _, err := w.KV().Acquire(&api.KVPair{Key: key, Value: []byte(session), Session: session}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		// Without a time to live they last until somebody ends them.
		endless := api.SessionEntry{Behavior: "release", LockDelay: 2 * time.Second}
		one := must[string](t)(w.Session().CreateNoChecks(&endless, nil))
		two := must[string](t)(w.Session().CreateNoChecks(&endless, nil))
		if !acquire(one) || acquire(two) || !acquire(one) {
			t.Error("a lock that one has another gets, or itself not again")
		}
		p, _, err := w.KV().Get(key, nil)
		if err != nil || p.Session != one || p.LockIndex != 1 {
			t.Errorf("the lock: %+v, %v", p, err)
		}
		// Locks are only advice: anybody may write the key.
		if _, err := w.KV().Put(&api.KVPair{Key: key, Value: []byte("anybody")}, nil); err != nil {
			t.Error(err)
		}
		if got, _, err := w.KV().Release(&api.KVPair{Key: key, Session: two}, nil); err != nil || got {
			t.Errorf("released by another: %t, %v", got, err)
		}
		if got, _, err := w.KV().Release(&api.KVPair{Key: key, Session: one}, nil); err != nil || !got {
			t.Errorf("released: %t, %v", got, err)
		}
		if !acquire(two) {
			t.Error("after the release it is not free")
		}
		if _, _, err := w.KV().Release(&api.KVPair{Key: key, Session: two}, nil); err != nil || !acquire(one) {
			t.Fatalf("it does not come back: %v", err)
		}
		if _, err := w.Session().Destroy(one, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if acquire(two) && time.Since(began) < time.Second {
			t.Error("after its session ended it is free at once")
		}
		await(t, func() bool { return acquire(two) })
		if took := time.Since(began); took < time.Second {
			t.Errorf("it was free after %v", took)
		}
		if _, _, err := w.KV().Acquire(&api.KVPair{Key: key, Session: one}, nil); err == nil || !strings.Contains(err.Error(), "invalid session") {
			t.Errorf("acquired by a session that ended: %v", err)
		}
	})
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

func TestASessionEndsAfterItsTimeAndDoesWhatItSays(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		for _, behavior := range []string{"release", "delete"} {
			key := w.key()
			id := w.session(t, behavior, time.Millisecond)
			if got, _, err := w.KV().Acquire(&api.KVPair{Key: key, Session: id, Value: []byte("x")}, nil); err != nil || !got {
				t.Fatalf("%t, %v", got, err)
			}
			if e, _, err := w.Session().Renew(id, nil); err != nil || e == nil || e.TTL != w.ttl || e.Behavior != behavior {
				t.Errorf("renewed: %+v, %v", e, err)
			}
			ttl, err := time.ParseDuration(w.ttl)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			await(t, func() bool {
				e, _, err := w.Session().Info(id, nil)
				return err == nil && e == nil
			})
			if took := time.Since(began); took < ttl {
				t.Errorf("%s: it ended after %v, before its time to live", behavior, took)
			}
			if e, _, err := w.Session().Renew(id, nil); err != nil || e != nil {
				t.Errorf("renewed after its end: %+v, %v", e, err)
			}
			p, _, err := w.KV().Get(key, nil)
			if err != nil || (p == nil) != (behavior == "delete") || p != nil && p.Session != "" {
				t.Errorf("%s: the key is %+v, %v", behavior, p, err)
			}
		}
		for ttl, want := range map[string]string{"1ms": "Invalid Session TTL", "25h": "Invalid Session TTL", "soon": "invalid"} {
			if _, _, err := w.Session().CreateNoChecks(&api.SessionEntry{TTL: ttl}, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a time to live of %s: %v", ttl, err)
			}
		}
	})
}

func TestTheCatalogTellsWhereServicesAre(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w world) {
		for i, name := range []string{"node-a", "node-b"} {
			if _, err := w.Catalog().Register(&api.CatalogRegistration{
				Node: name, Address: fmt.Sprintf("127.0.0.%d", i+2), NodeMeta: map[string]string{"rack": name},
				Service: &api.AgentService{ID: "exporter", Service: "pitchpipe-exporter", Port: 9836 + i, Tags: []string{"energy", name}},
			}, nil); err != nil {
				t.Fatal(err)
			}
		}
		services := must[[]*api.CatalogService](t)(w.Catalog().Service("pitchpipe-exporter", "", nil))
		var got []string
		for _, s := range services {
			got = append(got, fmt.Sprintf("%s %s:%d %v %s", s.Node, s.Address, s.ServicePort, s.ServiceTags, s.NodeMeta["rack"]))
		}
		if diff := cmp.Diff([]string{"node-a 127.0.0.2:9836 [energy node-a] node-a", "node-b 127.0.0.3:9837 [energy node-b] node-b"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if one := must[[]*api.CatalogService](t)(w.Catalog().Service("pitchpipe-exporter", "node-b", nil)); len(one) != 1 || one[0].Node != "node-b" {
			t.Errorf("by tag: %v", one)
		}
		if none := must[[]*api.CatalogService](t)(w.Catalog().Service("nobody", "", nil)); len(none) != 0 {
			t.Errorf("nobody's service: %v", none)
		}
		nodes := must[[]*api.Node](t)(w.Catalog().Nodes(nil))
		if len(nodes) != 3 {
			t.Errorf("%d nodes, want two and the agent's own", len(nodes))
		}
		_, meta, err := w.Catalog().Service("pitchpipe-exporter", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Catalog().Deregister(&api.CatalogDeregistration{Node: "node-a"}, nil); err != nil {
			t.Fatal(err)
		}
		left := must[[]*api.CatalogService](t)(w.Catalog().Service("pitchpipe-exporter", "", &api.QueryOptions{WaitIndex: meta.LastIndex}))
		if len(left) != 1 || left[0].Node != "node-b" {
			t.Errorf("after the deregistration: %v", left)
		}
	})
}

func TestASessionThatDependsOnANodeEndsWithIt(t *testing.T) {
	t.Parallel()
	s := consulserver.New(consulserver.Config{})
	address, stop := s.Listen()
	t.Cleanup(stop)
	client, err := api.NewClient(&api.Config{Address: address, Transport: api.DefaultConfig().Transport})
	if err != nil {
		t.Fatal(err)
	}
	bound := must[string](t)(client.Session().Create(&api.SessionEntry{}, nil))
	free := must[string](t)(client.Session().CreateNoChecks(&api.SessionEntry{}, nil))
	s.Fail("consul-1")
	left := must[[]*api.SessionEntry](t)(client.Session().List(nil))
	if len(left) != 1 || left[0].ID != free {
		t.Errorf("left are %v, want %s and not %s", left, free, bound)
	}
}

func TestWhatConsulHasAndThisServerHasNotIsNotFound(t *testing.T) {
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
	if got, err := client.Status().Leader(); err != nil || got == "" || bytes.ContainsAny([]byte(got), "\"\n") {
		t.Errorf("leader: %q, %v", got, err)
	}
}
