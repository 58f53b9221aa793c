package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	consul "github.com/hashicorp/consul/api"

	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/store"
	"pitchpipe/driver"
	"pitchpipe/test/consulserver"
	"pitchpipe/test/sim"
)

const (
	pairTTL   = 15 * time.Second
	pairDelay = 5 * time.Second
)

// link is a controller's way to the shared store, which can be cut. It then fails at once
// and does not hang: virtual time stops while anybody waits for a mutex.
type link struct {
	http.RoundTripper
	down atomic.Bool
}

var errCut = errors.New("no route to the store")

func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.down.Load() {
		return nil, errCut
	}
	return l.RoundTripper.RoundTrip(req)
}

func (l *link) cut()  { l.down.Store(true) }
func (l *link) mend() { l.down.Store(false) }

// pair is two controllers on one cluster and one shared store.
type pair struct {
	t       *testing.T
	server  *consulserver.Server
	cluster *sim.Cluster
	watcher store.KV // of the test
	dir     string

	mu       sync.Mutex
	rng      *rand.Rand
	stops    bool // an Advance may hang, as of a process that is stopped
	unlawful []string
	steps    int
	n        int
}

func newPair(t *testing.T, seed uint64) *pair {
	t.Helper()
	cluster, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{
		t: t, server: consulserver.New(consulserver.Config{}), cluster: cluster, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 1)),
	}
	p.watcher, _ = p.store()
	return p
}

func (p *pair) close() {
	p.cluster.Close()
	p.server.Close()
}

func (p *pair) store() (store.KV, *link) {
	p.t.Helper()
	way := &link{RoundTripper: p.server.Transport()}
	client, err := consul.NewClient(&consul.Config{Address: "consul.invalid", HttpClient: &http.Client{Transport: way}})
	if err != nil {
		p.t.Fatal(err)
	}
	return store.NewConsul(client, "pitchpipe", store.Options{TTL: pairTTL, Delay: pairDelay}), way
}

func (p *pair) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n)
}

// member is one controller of the pair.
type member struct {
	*daemontest.Controller
	name   string
	way    *link
	cancel context.CancelFunc
	done   chan error
}

// start runs a controller under a new name, on a state that may be an earlier one's.
func (p *pair) start(state string) *member {
	p.t.Helper()
	p.mu.Lock()
	p.n++
	m := &member{name: fmt.Sprintf("controller %d", p.n), done: make(chan error, 1)}
	p.mu.Unlock()
	kv, way := p.store()
	m.way = way
	m.Controller = daemontest.New(p.t, daemontest.Options{
		State: filepath.Join(p.dir, state), Socket: filepath.Join(p.dir, "s"), Site: site, Cluster: p.cluster, Tick: 4 * time.Second,
		Candidate: daemon.NewCandidate(kv, m.name, slog.New(slog.DiscardHandler)),
		Driver:    func(d driver.Driver) driver.Driver { return &acting{d, p, m} },
	})
	ctx, cancel := context.WithCancel(p.t.Context())
	m.cancel = cancel
	go func() { m.done <- m.Daemon.Tune(ctx) }()
	return m
}

// end ends a controller: as it should be, with its leadership released, or as a crash.
func (p *pair) end(m *member, crash bool) {
	p.t.Helper()
	if crash {
		m.way.cut()
	}
	m.cancel()
	if err := <-m.done; err != nil && !crash && !errors.Is(err, daemon.ErrDeposed) && !errors.Is(err, store.ErrUnavailable) {
		p.t.Errorf("%s ended with %v", m.name, err)
	}
	m.Stop(p.t)
}

func (p *pair) leader() string {
	holder, err := p.watcher.Leader(p.t.Context())
	if err != nil {
		return ""
	}
	return holder
}

// acting is a controller's way to the scheduler. Each step must come while that
// controller leads; then anything may happen before it takes effect.
type acting struct {
	driver.Driver
	pair *pair
	who  *member
}

func (a *acting) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	if leader := a.pair.leader(); leader != a.who.name {
		a.pair.mu.Lock()
		a.pair.unlawful = append(a.pair.unlawful, fmt.Sprintf("%s advances %s while %q leads", a.who.name, in.Job, leader))
		a.pair.mu.Unlock()
	}
	a.pair.mu.Lock()
	a.pair.steps++
	stops := a.pair.stops
	a.pair.mu.Unlock()
	if stops && a.pair.draw(8) == 0 {
		// The whole process is stopped here, by SIGSTOP or a machine that stalls, and goes
		// on with the step that it was about to take.
		a.who.way.cut()
		time.Sleep(time.Duration(a.pair.draw(120)) * time.Second)
		a.who.way.mend()
	}
	return a.Driver.Advance(context.WithoutCancel(ctx), in)
}

func (p *pair) submit(m *member, name string) string {
	p.t.Helper()
	return submitAs(p.t, m.Controller, peer.Peer{UID: 4242, Name: "alice"}, api.Submission{Filename: "job.sh", Source: tunable(name)}).ID
}

// judge looks whether every job was done once and moved as often as it was meant to be.
func (p *pair) judge(ids []string) (moves int) {
	p.t.Helper()
	for _, text := range p.unlawful {
		p.t.Error(text)
	}
	for _, id := range ids {
		j, err := p.cluster.Get(p.t.Context(), driver.JobID(id))
		if err != nil {
			p.t.Fatal(err)
		}
		if j.State != driver.Succeeded {
			p.t.Errorf("%s is %s", id, j.State)
		}
		var intents []string
		for _, a := range j.Attempts[1:] {
			if a.Cause == driver.CauseLate { // a step came late of an intent that had been given up
				continue
			}
			if a.Intent == "" || slices.Contains(intents, a.Intent) {
				p.t.Errorf("%s was moved twice by the intent %q", id, a.Intent)
			}
			intents = append(intents, a.Intent)
		}
		if len(intents) > 6 { // two restarts and four probes
			p.t.Errorf("%s was moved %d times", id, len(intents))
		}
		moves += len(intents)
	}
	return moves
}

func TestOneOfTwoControllersLeadsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1)
		defer p.close()
		first := p.start("a")
		time.Sleep(2 * time.Second)
		second := p.start("b")
		time.Sleep(2 * time.Second)
		if got := p.leader(); got != first.name {
			t.Fatalf("%q leads", got)
		}
		id := p.submit(first, "work")
		root := peer.Peer{Name: "root"}
		// A standby answers, changes nothing, and says who leads.
		time.Sleep(30 * time.Second)
		here, there := ask(t, first.Controller, id), ask(t, second.Controller, id)
		if here.Phase == "seen" || there.Phase != here.Phase {
			t.Errorf("the leader says the phase is %s, the other %s", here.Phase, there.Phase)
		}
		for _, change := range [][2]string{{"POST", "/v1/pauses"}, {"POST", "/v1/stop/" + id}, {"POST", "/v1/off/" + id}, {"DELETE", "/v1/pauses?scope=cluster"}, {"POST", "/v1/jobs"}} {
			w := as(t, second.Controller, root, change[0], change[1], `{"scope":"cluster"}`)
			if w.Code != 503 || !strings.Contains(w.Body.String(), "controller 1 leads") || !strings.Contains(w.Body.String(), `"standby"`) {
				t.Errorf("%v: %d %s", change, w.Code, w.Body)
			}
		}
		for m, want := range map[*member]string{first: "pitchpipe_leader 1\n", second: "pitchpipe_leader 0\n"} {
			if w := as(t, m.Controller, root, "GET", "/metrics", ""); !strings.Contains(w.Body.String(), want) {
				t.Errorf("the metrics of %s lack %q", m.name, want)
			}
		}
		// What the leader was told is known to the next one.
		if w := as(t, first.Controller, root, "POST", "/v1/pauses", `{"scope":"user","name":"bob"}`); w.Code != 204 {
			t.Fatalf("pause: %d %s", w.Code, w.Body)
		}
		p.end(first, false)
		time.Sleep(3 * time.Second)
		if got := p.leader(); got != second.name {
			t.Fatalf("after the leader released %q leads", got)
		}
		if w := as(t, second.Controller, root, "GET", "/v1/pauses", ""); !strings.Contains(w.Body.String(), "bob") {
			t.Errorf("the pauses of the next leader: %s", w.Body)
		}
		time.Sleep(5 * time.Minute)
		got := ask(t, second.Controller, id)
		if !got.Ended || got.State != "succeeded" || got.Probes+got.Restarts == 0 || got.Epoch != epochs {
			t.Errorf("the job in the end: %+v", got)
		}
		if moves := p.judge([]string{id}); moves != got.Probes+got.Restarts {
			t.Errorf("%d moves at the scheduler, %d in the story", moves, got.Probes+got.Restarts)
		}
		p.end(second, false)
	})
}

func TestALeaderThatIsCutOffStopsAndSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1)
		defer p.close()
		first := p.start("a")
		time.Sleep(2 * time.Second)
		second := p.start("b")
		id := p.submit(first, "work")
		time.Sleep(20 * time.Second)
		first.way.cut()
		began := time.Now()
		err := <-first.done
		if !errors.Is(err, daemon.ErrDeposed) {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(began); took > pairTTL+letGoMost {
			t.Errorf("it ended after %v", took)
		}
		if p.leader() == second.name {
			t.Error("the other led before")
		}
		first.way.mend()
		first.Stop(t)
		time.Sleep(2*pairTTL + pairDelay + 5*time.Second)
		if got := p.leader(); got != second.name {
			t.Errorf("%q leads", got)
		}
		time.Sleep(5 * time.Minute)
		if got := ask(t, second.Controller, id); !got.Ended || got.Epoch != epochs {
			t.Errorf("the job in the end: %+v", got)
		}
		p.judge([]string{id})
		p.end(second, false)
	})
}

// letGoMost bounds the release of what cannot be released any more.
const letGoMost = 15 * time.Second

// Kills, restarts, cut connections and processes that are stopped at the worst moment,
// in any order: no job is moved by two, none is moved twice for one reason, all end.
func TestOfTwoControllersUnderAnyFaultsNoJobIsMovedTwice(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	var mu sync.Mutex
	total := map[string]int{}
	t.Run("rounds", func(t *testing.T) {
		for seed := range rounds {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					counts := faults(t, uint64(seed))
					mu.Lock()
					defer mu.Unlock()
					for what, n := range counts {
						total[what] += n
					}
				})
			})
		}
	})
	t.Logf("in %d rounds: %v", rounds, total)
	if total["moves"] == 0 || total["leaders"] < rounds+1 {
		t.Errorf("nothing was tried: %v", total)
	}
}

func faults(t *testing.T, seed uint64) map[string]int {
	p := newPair(t, seed)
	defer p.close()
	p.stops = true
	counts := map[string]int{}
	states := []string{"a", "b"}
	members := []*member{p.start("a"), p.start("b")}
	time.Sleep(5 * time.Second)
	var ids []string
	leaders := map[string]bool{}
	// A controller that was deposed or could not take over is started again, as by systemd.
	revive := func() {
		for i, m := range members {
			select {
			case err := <-m.done:
				if !errors.Is(err, daemon.ErrDeposed) && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s ended with %v", m.name, err)
				}
				counts["deposed"]++
				m.way.mend()
				m.done <- err
				p.end(m, false)
				members[i] = p.start(states[i])
			default:
			}
		}
	}
	for len(ids) < 5 || time.Duration(counts["rounds"]) < 30 {
		counts["rounds"]++
		revive()
		if leader := p.leader(); leader != "" {
			leaders[leader] = true
			i := slices.IndexFunc(members, func(m *member) bool { return m.name == leader })
			if i >= 0 && len(ids) < 5 {
				job, err := p.cluster.Start(t.Context(), driver.RequestID(fmt.Sprint(len(ids))), driver.Spec{
					Owner: "alice", Filename: "job.sh", Source: tunable(fmt.Sprintf("work%d", len(ids))),
					Progress: driver.Progress{Pattern: `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)`},
				})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, string(job.ID))
			}
		}
		i := p.draw(2)
		m := members[i]
		switch p.draw(6) {
		case 0:
			counts["kills"]++
			p.end(m, true)
			time.Sleep(time.Duration(p.draw(20)) * time.Second)
			members[i] = p.start(states[i])
		case 1:
			counts["restarts"]++
			p.end(m, false)
			members[i] = p.start(states[i])
		case 2:
			counts["cuts"]++
			m.way.cut()
			time.Sleep(time.Duration(p.draw(60)) * time.Second)
			m.way.mend()
		default:
			time.Sleep(time.Duration(p.draw(30)) * time.Second)
		}
	}
	p.mu.Lock()
	p.stops = false
	p.mu.Unlock()
	for range 120 {
		time.Sleep(10 * time.Second)
		revive()
	}
	counts["moves"], counts["steps"], counts["leaders"], counts["jobs"] = p.judge(ids), p.steps, len(leaders), len(ids)
	for _, m := range members {
		p.end(m, false)
	}
	return counts
}
