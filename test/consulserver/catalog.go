package consulserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// node is one as the catalog shows it.
type node struct {
	ID              string
	Node            string
	Address         string
	Datacenter      string
	TaggedAddresses map[string]string
	Meta            map[string]string
	CreateIndex     uint64
	ModifyIndex     uint64

	services map[string]*service // by their ids
}

// service is one on a node as the catalog shows it.
type service struct {
	ID              string
	Node            string
	Address         string
	Datacenter      string
	TaggedAddresses map[string]string
	NodeMeta        map[string]string
	ServiceID       string
	ServiceName     string
	ServiceAddress  string // empty: that of the node
	ServicePort     int
	ServiceTags     []string
	ServiceMeta     map[string]string
	CreateIndex     uint64
	ModifyIndex     uint64
}

// registration is the body of a request to register.
type registration struct {
	ID, Node, Address, Datacenter string
	TaggedAddresses, NodeMeta     map[string]string
	SkipNodeUpdate                bool
	Service                       *struct {
		ID, Service, Address string
		Port                 int
		Tags                 []string
		Meta                 map[string]string
	}
}

func (s *Server) serveCatalog(w http.ResponseWriter, req *http.Request, path string) {
	verb, name, _ := strings.Cut(path, "/")
	switch verb {
	case "register", "deregister":
		if !method(w, req, http.MethodPut) {
			return
		}
		var err error
		if verb == "register" {
			err = s.register(req)
		} else {
			err = s.deregister(req)
		}
		if err != nil {
			answerError(w, err)
			return
		}
		answer(w, true)
	case "nodes":
		s.query(w, req, func() (any, uint64) {
			out := []node{}
			for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
				out = append(out, *s.nodes[name])
			}
			return out, s.catIdx
		})
	case "services":
		s.query(w, req, func() (any, uint64) {
			out := map[string][]string{"consul": {}}
			for _, x := range s.services("") {
				out[x.ServiceName] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(out[x.ServiceName], x.ServiceTags))))
			}
			return out, s.catIdx
		})
	case "service":
		if name == "" {
			answerError(w, fail(http.StatusBadRequest, "Missing service name"))
			return
		}
		tags := req.URL.Query()["tag"]
		s.query(w, req, func() (any, uint64) {
			out := slices.DeleteFunc(s.services(name), func(x service) bool {
				return slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(x.ServiceTags, tag) })
			})
			return out, s.catIdx
		})
	default:
		answerError(w, fail(http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint"))
	}
}

// services are those of a name, or all, by node and id. The caller holds mu.
func (s *Server) services(name string) []service {
	out := []service{}
	for _, host := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[host]
		for _, id := range slices.Sorted(maps.Keys(n.services)) {
			x := *n.services[id]
			if name != "" && x.ServiceName != name {
				continue
			}
			x.ID, x.Node, x.Address, x.Datacenter, x.TaggedAddresses, x.NodeMeta = n.ID, n.Node, n.Address, n.Datacenter, n.TaggedAddresses, n.Meta
			out = append(out, x)
		}
	}
	return out
}

func (s *Server) register(req *http.Request) error {
	var in registration
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return fail(http.StatusBadRequest, "Request decode failed: %v", err)
	}
	if in.Node == "" || in.Address == "" && !in.SkipNodeUpdate {
		return fail(http.StatusInternalServerError, "Must provide node and address")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index := s.bump(&s.catIdx)
	n := s.nodes[in.Node]
	if n == nil {
		n = &node{ID: in.ID, Node: in.Node, Datacenter: datacenter, CreateIndex: index, services: map[string]*service{}}
		s.nodes[in.Node] = n
	}
	if !in.SkipNodeUpdate {
		n.Address, n.TaggedAddresses, n.Meta, n.ModifyIndex = in.Address, in.TaggedAddresses, in.NodeMeta, index
	}
	if in.Service == nil {
		return nil
	}
	id := in.Service.ID
	if id == "" {
		id = in.Service.Service
	}
	x := &service{
		ServiceID: id, ServiceName: in.Service.Service, ServiceAddress: in.Service.Address, ServicePort: in.Service.Port,
		ServiceTags: in.Service.Tags, ServiceMeta: in.Service.Meta, CreateIndex: index, ModifyIndex: index,
	}
	if old := n.services[id]; old != nil {
		x.CreateIndex = old.CreateIndex
	}
	n.services[id] = x
	return nil
}

// deregister removes a service, or a node with all that it has, its sessions included.
func (s *Server) deregister(req *http.Request) error {
	var in struct{ Node, ServiceID string }
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return fail(http.StatusBadRequest, "Request decode failed: %v", err)
	}
	if in.Node == "" {
		return fail(http.StatusInternalServerError, "Must provide node")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[in.Node]
	if n == nil {
		return nil
	}
	s.bump(&s.catIdx)
	if in.ServiceID != "" {
		delete(n.services, in.ServiceID)
		return nil
	}
	delete(s.nodes, in.Node)
	s.endSessions(in.Node)
	return nil
}

// Fail says that the health check of a node fails: the sessions that depend on it end.
func (s *Server) Fail(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSessions(node)
}

func (s *Server) endSessions(node string) {
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if x := s.sessions[id]; x.Node == node && len(x.NodeChecks) > 0 {
			s.invalidate(id)
		}
	}
}
