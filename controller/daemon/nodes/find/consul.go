package find

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
)

// Consul finds exporters that are registered in Consul's catalogue. It is safe for
// concurrent use. Use NewConsul.
type Consul struct {
	client  *api.Client
	service string
}

// NewConsul looks for a service by its name. The client's rights have to be those to
// read that service and nodes.
func NewConsul(client *api.Client, service string) (*Consul, error) {
	if service == "" || strings.ContainsAny(service, "/@ ") {
		return nil, fmt.Errorf("%w: %q", ErrService, service)
	}
	return &Consul{client: client, service: service}, nil
}

// String says where it looks.
func (c *Consul) String() string { return "service " + c.service + " of Consul" }

// Find returns where the exporter of each node is, as HOST:PORT by the node's name, which
// has to be the one that the scheduler knows it by. A service without an address is at
// its node's. Of several registrations of one node the oldest comes first.
func (c *Consul) Find(ctx context.Context) (map[string][]string, error) {
	found, _, err := c.client.Catalog().Service(c.service, "", (&api.QueryOptions{AllowStale: true}).WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	slices.SortFunc(found, func(a, b *api.CatalogService) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ServiceID, b.ServiceID))
	})
	out := map[string][]string{}
	for _, s := range found {
		add(out, s.Node, cmp.Or(s.ServiceAddress, s.Address), s.ServicePort)
	}
	return out, nil
}
