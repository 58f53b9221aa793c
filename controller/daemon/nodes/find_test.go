package nodes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/test/consulserver"
)

// cluster is the part of Nomad's API that a search needs.
type cluster struct {
	mu       sync.Mutex
	services []nomad.ServiceRegistration
	names    map[string]string // of nodes
	asked    []string
	fail     int // status of every answer
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Path+" "+r.URL.Query().Get("namespace"))
	id, isNode := strings.CutPrefix(r.URL.Path, "/v1/node/")
	name, known := c.names[id]
	switch {
	case c.fail != 0:
		http.Error(w, "No cluster leader", c.fail)
	case isNode && known:
		_ = json.NewEncoder(w).Encode(nomad.Node{ID: id, Name: name})
	case isNode:
		http.Error(w, "node not found", http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(c.services)
	}
}

func (c *cluster) questions() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.asked, "\n")
	c.asked = nil
	return out
}

func (c *cluster) finder(t *testing.T, service string) nodes.Finder {
	t.Helper()
	h := httptest.NewServer(c)
	client, err := nomad.NewClient(&nomad.Config{Address: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		h.CloseClientConnections()
		h.Close()
	})
	f, err := nodes.FindInNomad(client, service)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNomadsServicesAreFoundByTheNamesOfTheirNodes(t *testing.T) {
	t.Parallel()
	c := &cluster{
		names: map[string]string{"id1": "n1", "id2": "N2"},
		services: []nomad.ServiceRegistration{
			{ID: "b", NodeID: "id1", Address: "10.0.0.1", Port: 25001, CreateIndex: 30},
			{ID: "a", NodeID: "id1", Address: "10.0.0.1", Port: 25000, CreateIndex: 20},
			{ID: "c", NodeID: "id1", Address: "10.0.0.1", Port: 25000, CreateIndex: 40},
			{ID: "d", NodeID: "id2", Address: "fd00::2", Port: 9836},
			{ID: "e", NodeID: "id2", Address: "", Port: 9836},
			{ID: "f", NodeID: "id2", Address: "10.0.0.2"},
			{ID: "g", NodeID: "gone", Address: "10.0.0.3", Port: 9836},
		},
	}
	f := c.finder(t, "pitchpipe-exporter@monitoring")
	want := map[string][]string{"n1": {"10.0.0.1:25000", "10.0.0.1:25001"}, "N2": {"[fd00::2]:9836"}}
	for _, asked := range []string{
		"/v1/service/pitchpipe-exporter monitoring\n/v1/node/id2 \n/v1/node/gone \n/v1/node/id1 ",
		"/v1/service/pitchpipe-exporter monitoring\n/v1/node/gone ", // the others' names are known
	} {
		got, err := f.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(sorted(asked), sorted(c.questions())); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	}
	c.mu.Lock()
	c.fail = http.StatusInternalServerError
	c.mu.Unlock()
	if _, err := f.Find(t.Context()); err == nil || !strings.Contains(err.Error(), "service pitchpipe-exporter of Nomad") || !strings.Contains(err.Error(), "No cluster leader") {
		t.Errorf("without a leader: %v", err)
	}
}

func TestADeniedReadOfNamesIsTheError(t *testing.T) {
	t.Parallel()
	c := &cluster{services: []nomad.ServiceRegistration{{ID: "a", NodeID: "id1", Address: "10.0.0.1", Port: 9836}}}
	if _, err := c.finder(t, "x").Find(t.Context()); err == nil || !strings.Contains(err.Error(), "name of node id1") {
		t.Errorf("got %v", err)
	}
	c.services = nil
	if got, err := c.finder(t, "x").Find(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("no exporter at all: %v, %v", got, err)
	}
}

func sorted(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		out[strings.TrimSuffix(line, "\n")]++
	}
	return out
}

func TestServicesHaveNames(t *testing.T) {
	t.Parallel()
	for service, ok := range map[string][2]bool{ // of Nomad, of Consul
		"pitchpipe-exporter": {true, true}, "x@monitoring": {true, false}, "": {}, "x@": {}, "@monitoring": {}, "a/b": {}, "a b": {},
	} {
		if _, err := nodes.FindInNomad(nil, service); ok[0] != (err == nil) || err != nil && !errors.Is(err, nodes.ErrService) {
			t.Errorf("Nomad, %q: %v, want it accepted: %v", service, err, ok[0])
		}
		if _, err := nodes.FindInConsul(nil, service); ok[1] != (err == nil) || err != nil && !errors.Is(err, nodes.ErrService) {
			t.Errorf("Consul, %q: %v, want it accepted: %v", service, err, ok[1])
		}
	}
}

func TestConsulsCatalogueNamesTheNodes(t *testing.T) {
	t.Parallel()
	s := consulserver.New(consulserver.Config{})
	address, stop := s.Listen()
	defer stop()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := consul.NewClient(&consul.Config{Address: address, HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := nodes.FindInConsul(client, "pitchpipe-exporter")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Find(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("before any is registered: %v, %v", got, err)
	}
	for i, r := range []consul.CatalogRegistration{
		{Node: "n1", Address: "10.0.0.1", Service: &consul.AgentService{ID: "z", Service: "pitchpipe-exporter", Port: 9836}},
		{Node: "n1", Address: "10.0.0.1", Service: &consul.AgentService{ID: "a", Service: "pitchpipe-exporter", Address: "10.1.0.1", Port: 9837}},
		{Node: "n2", Address: "10.0.0.2", Service: &consul.AgentService{Service: "pitchpipe-exporter", Address: "10.1.0.2", Port: 9836}},
		{Node: "n3", Address: "10.0.0.3", Service: &consul.AgentService{Service: "another", Port: 80}},
		{Node: "n4", Address: "10.0.0.4", Service: &consul.AgentService{Service: "pitchpipe-exporter"}},
	} {
		if _, err := client.Catalog().Register(&r, nil); err != nil {
			t.Fatal(i, err)
		}
	}
	got, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"n1": {"10.0.0.1:9836", "10.1.0.1:9837"}, "n2": {"10.1.0.2:9836"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	s.Headless(true)
	if _, err := f.Find(t.Context()); err == nil || !strings.Contains(fmt.Sprint(err), "service pitchpipe-exporter of Consul") {
		t.Errorf("without a leader: %v", err)
	}
}
