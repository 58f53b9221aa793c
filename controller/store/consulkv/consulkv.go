// Package consulkv keeps a controller's state in the keys of Consul.
package consulkv

import "github.com/hashicorp/consul/api"

// Config says where.
type Config struct {
	Client *api.Client
	Prefix string // of every key
}
