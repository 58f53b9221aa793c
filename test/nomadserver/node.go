package nomadserver

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

// class is that of the one node.
const class = "test"

// version is that of the agent whose behaviour this is.
const version = "2.0.6-dev"

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

// run is the runner of an allocation, nil where there is none.
func (n *node) run(alloc string) *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs[alloc]
}

// follow starts and ends allocations as a transaction says.
func (n *node) follow(allocs []*api.Allocation) {
	if n.s.ctx.Err() != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range allocs {
		r := n.runs[a.ID]
		switch {
		case r == nil && !cluster.AllocEnded(a):
			r = newRun(n, a)
			n.runs[a.ID] = r
			n.work.Go(r.execute)
		case r != nil && a.ServerTerminalStatus():
			r.stop()
		}
	}
}

// offer is what the scheduler may give away.
func (n *node) offer(t *cluster.Tables) cluster.Node {
	return cluster.Node{
		Cores: n.s.opts.Cores, MHzPerCore: mhzPerCore, MemoryMB: n.s.opts.MemoryMB, Attributes: n.targets(),
		Drivers: []string{"raw_exec"}, Reserved: t.Reserved, MemoryMax: n.s.opts.Oversubscribe,
	}
}

// attributes are what a client says about its machine.
func (n *node) attributes() map[string]string {
	return map[string]string{
		"cpu.arch": runtime.GOARCH, "cpu.numcores": strconv.Itoa(n.s.opts.Cores), "driver.raw_exec": "1", "kernel.name": runtime.GOOS,
		"nomad.version": version, "os.signals": "SIGABRT,SIGCONT,SIGHUP,SIGINT,SIGKILL,SIGQUIT,SIGSTOP,SIGTERM,SIGUSR1,SIGUSR2",
		"unique.hostname": n.name, "unique.storage.volume": n.s.dir,
	}
}

// targets are the names by which constraints and tasks find them.
func (n *node) targets() map[string]string {
	out := map[string]string{"node.unique.id": n.id, "node.unique.name": n.name, "node.datacenter": "dc1", "node.class": class}
	for k, v := range n.attributes() {
		out["attr."+k] = v
	}
	return out
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
		ID: n.id, Name: n.name, Datacenter: "dc1", NodePool: "default", NodeClass: class, HTTPAddr: strings.TrimPrefix(n.s.Addr(), "http://"),
		Attributes: n.attributes(), Status: api.NodeStatusReady, SchedulingEligibility: api.NodeSchedulingEligible,
		NodeResources: res, ReservedResources: &api.NodeReservedResources{},
		Drivers:         map[string]*api.DriverInfo{"raw_exec": {Detected: true, Healthy: true, HealthDescription: "Healthy"}},
		StatusUpdatedAt: n.since.Unix(), CreateIndex: 1, ModifyIndex: 1,
	}
}

func listNodes(c *call, _ *cluster.Tables) (any, uint64, error) {
	b := c.s.node.body()
	stub := &api.NodeListStub{
		Address: "127.0.0.1", ID: b.ID, Name: b.Name, Datacenter: b.Datacenter, NodePool: b.NodePool, Status: b.Status,
		SchedulingEligibility: b.SchedulingEligibility, NodeClass: b.NodeClass, Version: version, Drivers: maps.Clone(b.Drivers),
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
	if c.truth("resources") {
		stub.NodeResources, stub.ReservedResources = b.NodeResources, b.ReservedResources
	}
	return []*api.NodeListStub{stub}, 1, nil
}

func readNode(c *call, _ *cluster.Tables) (any, uint64, error) {
	switch {
	case len(c.name) != 36:
		return nil, 0, fmt.Errorf("node lookup failed: index error: UUID must be 36 characters")
	case c.name != c.s.node.id:
		return nil, 0, refuse(http.StatusNotFound, "node not found")
	}
	return c.s.node.body(), 1, nil
}
