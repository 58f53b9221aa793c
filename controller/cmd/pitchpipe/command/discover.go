package command

import (
	"fmt"
	"log/slog"

	consul "github.com/hashicorp/consul/api"

	"pitchpipe/controller/daemon/nodes"
)

// finder returns the registry that the configuration names, or nil where it names none.
func (a *app) finder(log *slog.Logger) (nodes.Finder, error) {
	with := a.cfg.Exporter
	var found nodes.Finder
	var err error
	switch with.Discovery {
	case "nomad":
		client, cerr := a.nomadClient(log)
		if cerr != nil {
			return nil, cerr
		}
		found, err = nodes.FindInNomad(client, with.Service)
	case "consul":
		// Its address, token and certificates are in Consul's own environment variables.
		client, cerr := consul.NewClient(consul.DefaultConfig())
		if cerr != nil {
			return nil, fmt.Errorf("%w way to Consul: %w", errInvalid, cerr)
		}
		found, err = nodes.FindInConsul(client, with.Service)
	default:
		return nil, nil //nolint:nilnil // no registry is asked
	}
	if err != nil {
		return nil, fmt.Errorf("%w configuration: exporter.service: %w", errInvalid, err)
	}
	return found, nil
}
