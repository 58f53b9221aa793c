package nodes

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

// nomadServices finds the exporters in Nomad's own service discovery, which names the ids
// of nodes: it reads the name of each node once.
type nomadServices struct {
	client             *api.Client
	service, namespace string

	mu    sync.Mutex
	names map[string]string // of nodes, by their ids
}

// FindInNomad finds exporters by the service NAME, in the namespace of the client, or
// NAME@NAMESPACE. The client needs the rights to read jobs in that namespace, and nodes.
func FindInNomad(client *api.Client, service string) (Finder, error) {
	name, namespace, in := strings.Cut(service, "@")
	if name == "" || in && namespace == "" || strings.ContainsAny(service, "/ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	return &nomadServices{client: client, service: name, namespace: namespace, names: map[string]string{}}, nil
}

// String implements Finder.
func (n *nomadServices) String() string { return "service " + n.service + " of Nomad" }

// Find implements Finder. The oldest registration of a node comes first. A node whose name
// cannot be read is left out.
func (n *nomadServices) Find(ctx context.Context) (map[string][]string, error) {
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
		addAddress(out, name, s.Address, s.Port)
	}
	n.forget(there)
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", n, errors.Join(errs...))
	}
	return out, nil
}

func (n *nomadServices) name(ctx context.Context, id string) (string, error) {
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

func (n *nomadServices) forget(there map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.names {
		if !there[id] {
			delete(n.names, id)
		}
	}
}

// addAddress adds an address of a node, unless it is invalid or there already.
func addAddress(to map[string][]string, node, host string, port int) {
	if node == "" || host == "" || port < 1 || port > 65535 {
		return
	}
	at := net.JoinHostPort(host, strconv.Itoa(port))
	if !slices.Contains(to[node], at) {
		to[node] = append(to[node], at)
	}
}
