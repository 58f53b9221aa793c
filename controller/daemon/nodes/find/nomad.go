package find

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/nomad/api"
)

// ErrService means that a text names no service.
var ErrService = errors.New("want the name of a service, or NAME@NAMESPACE")

// Nomad finds exporters that are registered with Nomad's own service discovery. It is
// safe for concurrent use. Use NewNomad.
type Nomad struct {
	client             *api.Client
	service, namespace string

	mu    sync.Mutex
	names map[string]string // of nodes, by their ids
}

// NewNomad looks for a service NAME, in the namespace of the client, or NAME@NAMESPACE.
// The client's rights have to be those to read jobs in that namespace, and nodes.
func NewNomad(client *api.Client, service string) (*Nomad, error) {
	name, namespace, in := strings.Cut(service, "@")
	if name == "" || in && namespace == "" || strings.ContainsAny(service, "/ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	return &Nomad{client: client, service: name, namespace: namespace, names: map[string]string{}}, nil
}

// String says where it looks.
func (n *Nomad) String() string { return "service " + n.service + " of Nomad" }

// Find returns where the exporter of each node is, as HOST:PORT by the node's name. Of
// several registrations of one node the oldest comes first. A node whose name cannot be
// read leaves the others as they are.
func (n *Nomad) Find(ctx context.Context) (map[string][]string, error) {
	q := (&api.QueryOptions{Namespace: n.namespace, AllowStale: true}).WithContext(ctx)
	found, _, err := n.client.Services().Get(n.service, q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	slices.SortFunc(found, func(a, b *api.ServiceRegistration) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	out := map[string][]string{}
	var errs []error
	there := map[string]bool{}
	for _, s := range found {
		there[s.NodeID] = true
		name, err := n.name(ctx, s.NodeID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		add(out, name, s.Address, s.Port)
	}
	n.forget(there)
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", n, errors.Join(errs...))
	}
	return out, nil
}

func (n *Nomad) name(ctx context.Context, id string) (string, error) {
	n.mu.Lock()
	name, ok := n.names[id]
	n.mu.Unlock()
	if ok {
		return name, nil
	}
	node, _, err := n.client.Nodes().Info(id, (&api.QueryOptions{AllowStale: true}).WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("the name of node %s: %w", id, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[id] = node.Name
	return node.Name, nil
}

func (n *Nomad) forget(there map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.names {
		if !there[id] {
			delete(n.names, id)
		}
	}
}

// add leaves out what is no address, and what stands there already.
func add(to map[string][]string, node, host string, port int) {
	if node == "" || host == "" || port < 1 || port > 65535 {
		return
	}
	at := net.JoinHostPort(host, strconv.Itoa(port))
	if !slices.Contains(to[node], at) {
		to[node] = append(to[node], at)
	}
}
