package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/controller/store"
	"pitchpipe/controller/store/boltkv"
	"pitchpipe/controller/store/consulkv"
	"pitchpipe/controller/store/nomadvars"
)

// ErrStore means that the shared store cannot be used as it is configured.
var ErrStore = errors.New("shared store")

// OpenSeat opens the shared store that the configuration names; nil: it names none.
// NomadClient makes the client of a store in Nomad, with the rights of the controller.
// Nothing is asked of Nomad or Consul yet. The caller closes it after the Daemon.
func OpenSeat(ctx context.Context, cfg config.Store, nomadClient func() (*nomad.Client, error), log *slog.Logger) (*Seat, error) {
	s, err := openShared(ctx, cfg, nomadClient, log)
	if s == nil || err != nil {
		return nil, err
	}
	return NewSeat(s, "", log), nil
}

func openShared(ctx context.Context, cfg config.Store, nomadClient func() (*nomad.Client, error), log *slog.Logger) (store.Store, error) {
	switch cfg.Kind {
	case "", "none":
		return nil, nil //nolint:nilnil // a controller that is alone has no shared store
	case "file":
		if cfg.Path == "" {
			return nil, fmt.Errorf("%w: store.path is missing: want the absolute path of a file that all controllers of the pair name", ErrStore)
		}
		s, err := boltkv.Open(ctx, cfg.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		return s, nil
	case "nomad":
		client, err := nomadClient()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		s, err := nomadvars.New(nomadvars.Config{Client: client, Namespace: cfg.Namespace, Prefix: cfg.Prefix, TTL: cfg.TTL, Delay: cfg.Delay, Log: log})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		return s, nil
	case "consul":
		// What is not configured is in Consul's own environment variables.
		token := ""
		if cfg.TokenFile != "" {
			var err error
			if token, err = config.ReadToken(cfg.TokenFile); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrStore, err)
			}
		}
		client, err := consul.NewClient(&consul.Config{Address: cfg.Address, Token: token})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		s, err := consulkv.New(consulkv.Config{Client: client, Prefix: cfg.Prefix, TTL: cfg.TTL, Delay: cfg.Delay, Log: log})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w: store.kind %q: want one of %s", ErrStore, cfg.Kind, strings.Join(config.StoreKinds(), ", "))
}
