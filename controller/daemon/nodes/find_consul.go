package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
)

// consulServices finds the exporters in Consul's catalog.
type consulServices struct {
	client  *api.Client
	service string
}

// FindInConsul finds exporters by the name of a service. The client needs the rights to
// read that service and nodes.
func FindInConsul(client *api.Client, service string) (Finder, error) {
	if service == "" || strings.ContainsAny(service, "/@ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	return &consulServices{client: client, service: service}, nil
}

// String implements Finder.
func (c *consulServices) String() string { return "service " + c.service + " of Consul" }

// Find implements Finder. Consul and the scheduler have to use the same names of nodes. A
// service without an address has its node's. The oldest registration of a node comes first.
func (c *consulServices) Find(ctx context.Context) (map[string][]string, error) {
	found, _, err := c.client.Catalog().Service(c.service, "", (&api.QueryOptions{AllowStale: true}).WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	slices.SortFunc(found, func(a, b *api.CatalogService) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ServiceID, b.ServiceID))
	})
	out := map[string][]string{}
	for _, s := range found {
		addAddress(out, s.Node, cmp.Or(s.ServiceAddress, s.Address), s.ServicePort)
	}
	return out, nil
}
