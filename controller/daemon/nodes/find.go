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

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"
)

// ErrService means that a text names no service.
var ErrService = errors.New("want the name of a service, or NAME@NAMESPACE")

type registered struct {
	node, host string
	port       int
	index      uint64 // of its registration: the oldest of a node comes first
	id         string
}

type services struct {
	name string
	list func(context.Context) ([]registered, error)
}

// String implements Finder.
func (r services) String() string { return r.name }

// Find implements Finder. It leaves out a registration without a valid address.
func (r services) Find(ctx context.Context) (map[string][]string, error) {
	all, err := r.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	slices.SortFunc(all, func(a, b registered) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.id, b.id)) })
	out := map[string][]string{}
	for _, x := range all {
		at := net.JoinHostPort(x.host, strconv.Itoa(x.port))
		if x.node != "" && x.host != "" && x.port >= 1 && x.port <= 65535 && !slices.Contains(out[x.node], at) {
			out[x.node] = append(out[x.node], at)
		}
	}
	return out, nil
}

// FindInConsul finds exporters by the name of a service in Consul's catalog. The client needs
// the rights to read that service and nodes. Consul and the scheduler have to use the same names
// of nodes. A service without an address has its node's.
func FindInConsul(client *consul.Client, service string) (Finder, error) {
	if service == "" || strings.ContainsAny(service, "/@ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	return services{"service " + service + " of Consul", func(ctx context.Context) (out []registered, err error) {
		found, _, err := client.Catalog().Service(service, "", (&consul.QueryOptions{AllowStale: true}).WithContext(ctx))
		for _, s := range found {
			out = append(out, registered{s.Node, cmp.Or(s.ServiceAddress, s.Address), s.ServicePort, s.CreateIndex, s.ServiceID})
		}
		return out, err
	}}, nil
}

// FindInNomad finds exporters by the service NAME in Nomad's own service discovery, in the
// namespace of the client, or NAME@NAMESPACE. The client needs the rights to read jobs in that
// namespace, and nodes: Nomad names the ids of nodes, and the name of each is read once. A node
// whose name cannot be read is left out. One search runs at a time.
func FindInNomad(client *nomad.Client, service string) (Finder, error) {
	name, namespace, in := strings.Cut(service, "@")
	if name == "" || in && namespace == "" || strings.ContainsAny(service, "/ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	var mu sync.Mutex
	names := map[string]string{} // of nodes, by their ids
	return services{"service " + name + " of Nomad", func(ctx context.Context) (out []registered, err error) {
		mu.Lock()
		defer mu.Unlock()
		q := (&nomad.QueryOptions{Namespace: namespace, AllowStale: true}).WithContext(ctx)
		found, _, err := client.Services().Get(name, q)
		if err != nil {
			return nil, err
		}
		var errs []error
		present := map[string]string{}
		for _, s := range found {
			node, known := names[s.NodeID]
			if !known {
				about, _, err := client.Nodes().Info(s.NodeID, (&nomad.QueryOptions{AllowStale: true}).WithContext(ctx))
				if err != nil {
					errs = append(errs, fmt.Errorf("the name of node %s: %w", s.NodeID, err))
					continue
				}
				node = about.Name
			}
			names[s.NodeID], present[s.NodeID] = node, node
			out = append(out, registered{node, s.Address, s.Port, s.CreateIndex, s.ID})
		}
		if names = present; len(out) == 0 {
			err = errors.Join(errs...)
		}
		return out, err
	}}, nil
}
