package nomadserver

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/state"
)

// version is that of the agent whose behaviour this is.
const version = "2.0.6-dev"

func defaultConfig() api.SchedulerConfiguration {
	return api.SchedulerConfiguration{SchedulerAlgorithm: api.SchedulerAlgorithmBinpack, PreemptionConfig: api.PreemptionConfig{SystemSchedulerEnabled: true}}
}

// memoryMax tells whether tasks may use more memory than they ask for.
func (s *Server) memoryMax() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.MemoryOversubscriptionEnabled
}

func readConfig(c *call) error {
	if !c.may("", "operator:read") {
		return denied()
	}
	c.s.mu.Lock()
	config, at := c.s.config, c.s.configAt
	c.s.mu.Unlock()
	config.CreateIndex, config.ModifyIndex = 1, at
	return c.reply(map[string]any{"SchedulerConfig": config, "Index": at, "LastContact": 0, "KnownLeader": true, "NextToken": ""}, at)
}

func writeConfig(c *call) error {
	if !c.may("", "operator:write") {
		return denied()
	}
	var config api.SchedulerConfiguration
	if err := c.decode(&config); err != nil {
		return err
	}
	config.SchedulerAlgorithm = cmp.Or(config.SchedulerAlgorithm, api.SchedulerAlgorithmBinpack)
	at := c.s.store.Next()
	c.s.mu.Lock()
	c.s.config, c.s.configAt = config, at
	c.s.mu.Unlock()
	return c.reply(map[string]any{"Updated": true, "Index": at}, at)
}

func listNodes(c *call) error {
	if !c.may("", "node:read") {
		return denied()
	}
	out := []*api.NodeListStub{}
	if s := c.s.node.stub(c.truth("resources")); strings.HasPrefix(s.ID, c.query("prefix")) {
		out = append(out, s)
	}
	return c.watch(func(*state.Tables) (any, uint64, error) { return out, 1, nil }, state.Nodes)
}

func readNode(c *call) error {
	if !c.may("", "node:read") {
		return denied()
	}
	return c.watch(func(*state.Tables) (any, uint64, error) {
		if len(c.name) != 36 {
			return nil, 0, fmt.Errorf("node lookup failed: index error: UUID must be 36 characters")
		}
		if c.name != c.s.node.id {
			return nil, 0, refuse(http.StatusNotFound, "node not found")
		}
		return c.s.node.body(), 1, nil
	}, state.Nodes)
}

func nodeAllocs(c *call) error {
	if !c.may("", "node:read") {
		return denied()
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.Allocation{}
		for _, a := range t.Allocs("*") {
			if a.NodeID == c.name && c.may(a.Namespace, "read-job") {
				out = append(out, a)
			}
		}
		return out, t.Touched(state.Allocs), nil
	}, state.Allocs)
}

func agentSelf(c *call) error {
	if !c.may("", "agent:read") {
		return denied()
	}
	return c.reply(map[string]any{
		"config": map[string]any{
			"Region": "global", "Datacenter": "dc1", "NodeName": c.s.node.name, "Version": map[string]any{"Version": "2.0.6", "VersionPrerelease": "dev"},
			"ACL": map[string]any{"Enabled": c.s.opts.ACL}, "Server": map[string]any{"Enabled": true}, "Client": map[string]any{"Enabled": true},
		},
		"member": map[string]any{
			"Name": c.s.node.name + ".global", "Addr": "127.0.0.1", "Port": 4648, "Status": "alive",
			"Tags": map[string]string{"role": "nomad", "region": "global", "dc": "dc1", "build": version},
		},
		"stats": map[string]any{"nomad": map[string]string{"server": "true", "leader": "true"}, "client": map[string]string{"node_id": c.s.node.id}},
	}, 0)
}

func agentHealth(c *call) error {
	ok := map[string]any{"ok": true, "message": "ok"}
	return c.reply(map[string]any{"client": ok, "server": ok}, 0)
}

func statusLeader(c *call) error { return c.reply(strings.TrimPrefix(c.s.Addr(), "http://"), 0) }

func statusPeers(c *call) error {
	return c.reply([]string{strings.TrimPrefix(c.s.Addr(), "http://")}, 0)
}

func listRegions(c *call) error { return c.reply([]string{"global"}, 0) }

// nodeStats is what a client measures of its machine; only what is known is said.
func nodeStats(c *call) error {
	if !c.may("", "node:read") {
		return denied()
	}
	return c.reply(&api.HostStats{
		Memory: &api.HostMemoryStats{Total: uint64(c.s.opts.MemoryMB) << 20},
	}, 0)
}

func (s *Server) hasNamespace(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.namespaces[name]
	return ok
}

func listNamespaces(c *call) error {
	c.s.mu.Lock()
	all := slices.Collect(maps.Values(c.s.namespaces))
	c.s.mu.Unlock()
	slices.SortFunc(all, func(a, b api.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	out := []api.Namespace{}
	var index uint64 = 1
	for _, ns := range all {
		index = max(index, ns.ModifyIndex)
		if strings.HasPrefix(ns.Name, c.query("prefix")) && c.may(ns.Name, "read-job", "list-jobs") {
			out = append(out, ns)
		}
	}
	return c.reply(out, index)
}

func readNamespace(c *call) error {
	c.s.mu.Lock()
	ns, ok := c.s.namespaces[c.name]
	c.s.mu.Unlock()
	if !ok || !c.may(c.name, "read-job", "list-jobs") {
		return refuse(http.StatusNotFound, "Namespace not found")
	}
	return c.reply(ns, ns.ModifyIndex)
}

func writeNamespace(c *call) error {
	if !c.may("", "operator:write") {
		return denied()
	}
	ns := api.Namespace{Name: c.name}
	if err := c.decode(&ns); err != nil {
		return err
	}
	if ns.Name == "" {
		return refuse(http.StatusBadRequest, "Missing namespace name")
	}
	at := c.s.store.Next()
	c.s.mu.Lock()
	ns.CreateIndex, ns.ModifyIndex = cmp.Or(c.s.namespaces[ns.Name].CreateIndex, at), at
	c.s.namespaces[ns.Name] = ns
	c.s.mu.Unlock()
	return c.reply(nil, at)
}

func deleteNamespace(c *call) error {
	if !c.may("", "operator:write") {
		return denied()
	}
	used := false
	c.s.store.Read(func(t *state.Tables) {
		used = slices.ContainsFunc(t.Jobs(c.name), func(j *api.Job) bool { return *j.Status != state.Dead })
	})
	switch {
	case c.name == "default":
		return refuse(http.StatusBadRequest, "default namespace can not be deleted")
	case used:
		return refuse(http.StatusInternalServerError, "namespace %q has non-terminal jobs in regions: [global]", c.name)
	}
	at := c.s.store.Next()
	c.s.mu.Lock()
	delete(c.s.namespaces, c.name)
	c.s.mu.Unlock()
	return c.reply(nil, at)
}
