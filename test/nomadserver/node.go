package nomadserver

import (
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/schedule"
	"pitchpipe/test/nomadserver/state"
)

// node is the one client of the cluster: it runs what is placed on it.
type node struct {
	s        *Server
	id, name string
	since    time.Time
	work     sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*run // by allocation
}

func newNode(s *Server) *node {
	name, err := os.Hostname()
	if err != nil {
		name = "node"
	}
	return &node{s: s, id: uuid(), name: name, since: time.Now(), runs: map[string]*run{}}
}

func (n *node) wait() { n.work.Wait() }

// run is the runner of an allocation, nil where there is none.
func (n *node) run(alloc string) *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs[alloc]
}

// see starts and ends allocations as a transaction says.
func (n *node) see(c state.Commit) {
	if n.s.ctx.Err() != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, batch := range c.Batches {
		for _, change := range batch {
			a, ok := change.Row.(*api.Allocation)
			if !ok {
				continue
			}
			r := n.runs[a.ID]
			switch {
			case r == nil && !state.AllocEnded(a):
				r = newRun(n, a)
				n.runs[a.ID] = r
				n.work.Go(r.live)
			case r != nil && a.ServerTerminalStatus():
				r.stop()
			}
		}
	}
}

// offer is what the scheduler may give away.
func (n *node) offer(t *state.Tables, memoryMax bool) schedule.Node {
	return schedule.Node{
		Cores: n.s.opts.Cores, MHzPerCore: mhzPerCore, MemoryMB: n.s.opts.MemoryMB,
		Datacenter: "dc1", Pool: "default", Attributes: n.targets(), Drivers: []string{"raw_exec"},
		Reserved: t.Reserved, MemoryMax: memoryMax,
	}
}

// attributes are what a client says of its machine.
func (n *node) attributes() map[string]string {
	return map[string]string{
		"arch": runtime.GOARCH, "cpu.arch": runtime.GOARCH, "cpu.numcores": strconv.Itoa(n.s.opts.Cores),
		"cpu.totalcompute": strconv.Itoa(n.s.opts.Cores * mhzPerCore), "driver.raw_exec": "1",
		"kernel.name": runtime.GOOS, "memory.totalbytes": strconv.Itoa(n.s.opts.MemoryMB << 20),
		"nomad.version": version, "os.name": runtime.GOOS, "os.signals": strings.Join(signals(), ","),
		"unique.hostname": n.name, "unique.network.ip-address": "127.0.0.1", "unique.storage.volume": n.s.opts.Dir,
	}
}

// targets are the names by which constraints find them.
func (n *node) targets() map[string]string {
	out := map[string]string{
		"node.unique.id": n.id, "node.unique.name": n.name, "node.datacenter": "dc1", "node.region": "global",
		"node.pool": "default", "node.class": "",
	}
	for k, v := range n.attributes() {
		out["attr."+k] = v
	}
	return out
}

// signals are those that a task on Linux may be sent.
func signals() []string {
	return strings.Fields("SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGNULL" +
		" SIGPIPE SIGPROF SIGQUIT SIGSEGV SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2" +
		" SIGWINCH SIGXCPU SIGXFSZ")
}

// body is the node as /v1/node shows it.
func (n *node) body() *api.Node {
	res := &api.NodeResources{
		Cpu:    api.NodeCpuResources{CpuShares: int64(n.s.opts.Cores * mhzPerCore), TotalCpuCores: uint16(n.s.opts.Cores)},
		Memory: api.NodeMemoryResources{MemoryMB: int64(n.s.opts.MemoryMB)},
		Disk:   api.NodeDiskResources{DiskMB: 100_000},
	}
	for c := range n.s.opts.Cores {
		res.Cpu.ReservableCpuCores = append(res.Cpu.ReservableCpuCores, uint16(c))
	}
	return &api.Node{
		ID: n.id, Name: n.name, Datacenter: "dc1", NodePool: "default", HTTPAddr: strings.TrimPrefix(n.s.Addr(), "http://"),
		Attributes: n.attributes(), Meta: map[string]string{}, Status: api.NodeStatusReady,
		SchedulingEligibility: api.NodeSchedulingEligible, NodeResources: res, ReservedResources: &api.NodeReservedResources{},
		Resources: &api.Resources{CPU: new(n.s.opts.Cores * mhzPerCore), MemoryMB: new(n.s.opts.MemoryMB)},
		Drivers: map[string]*api.DriverInfo{"raw_exec": {
			Detected: true, Healthy: true, HealthDescription: "Healthy", Attributes: map[string]string{"driver.raw_exec": "1"},
		}},
		StatusUpdatedAt: n.since.Unix(), CreateIndex: 1, ModifyIndex: 1,
	}
}

// stub is the node in a list.
func (n *node) stub(withResources bool) *api.NodeListStub {
	b := n.body()
	out := &api.NodeListStub{
		Address: "127.0.0.1", ID: b.ID, Name: b.Name, Datacenter: b.Datacenter, NodePool: b.NodePool, Status: b.Status,
		SchedulingEligibility: b.SchedulingEligibility, Version: version, Drivers: maps.Clone(b.Drivers),
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
	if withResources {
		out.NodeResources, out.ReservedResources = b.NodeResources, b.ReservedResources
	}
	return out
}
