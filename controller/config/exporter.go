package config

import (
	"errors"
	"strings"

	"pitchpipe/exporter/api"
)

// Exporter is how the exporters are reached.
type Exporter struct {
	Socket string // path of the Unix socket of the one on this machine
	// Nodes is where the exporter of each node is, with {node} where its name belongs:
	// unix:/PATH/{node}.sock or https://{node}:PORT; empty = the one on this machine
	// knows all jobs.
	Nodes string
	Cert  string // file of the controller's certificate, for https; empty = none
	Key   string // file of its private key
	CA    string // file of the authority whose certificates of nodes are believed
	// Discovery is who knows where the exporter of each node is: static (Nodes does),
	// nomad or consul, where Service is registered.
	Discovery string
	Service   string // NAME, or of Nomad NAME@NAMESPACE
}

// Discoveries lists who may know where the exporters are.
func Discoveries() []string { return []string{"static", "nomad", "consul"} }

const nodePlaceholder = "{node}"

var errNodes = errors.New("want unix:/PATH/{node}.sock or https://{node}:PORT, or nothing")

// exporterKeys are the settings that lead to the exporters.
func exporterKeys() []key {
	return []key{
		{
			name: "exporter.socket", want: "want an absolute path of at most 107 bytes",
			fallback: func(surroundings, Config) string { return api.DefaultSocket },
			doc:      "Unix socket of the node's exporter",
			set:      func(c *Config, s string) error { return setSocket(&c.Exporter.Socket, s) },
		},
		{
			name: "exporter.nodes", want: errNodes.Error(),
			fallback: func(surroundings, Config) string { return "" },
			printed:  "the one at exporter.socket measures all jobs",
			doc:      "where the exporter of each node is; {node} stands for the node's name at the scheduler",
			set:      func(c *Config, s string) error { return setNodes(&c.Exporter.Nodes, s) },
		},
		{
			name: "exporter.cert", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none",
			doc:      "certificate by which exporters know the controller, where exporter.nodes begins with https; read again when it changes",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Exporter.Cert, s) },
		},
		{
			name: "exporter.key", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none",
			doc:      "private key of exporter.cert",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Exporter.Key, s) },
		},
		{
			name: "exporter.ca", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none",
			doc:      "certificate of the authority that the exporters' own certificates have to come from",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Exporter.CA, s) },
		},
		{
			name: "exporter.discovery", want: "want one of " + strings.Join(Discoveries(), ", "),
			fallback: func(surroundings, Config) string { return "static" },
			doc:      "who knows where the exporter of each node is: exporter.nodes, or the service discovery of Nomad or Consul; those that are found are asked over TLS, and each shows a certificate for the name of its node",
			set:      func(c *Config, s string) error { return setWord(&c.Exporter.Discovery, s, Discoveries()) },
		},
		{
			name: "exporter.service", want: errService.Error(),
			fallback: func(surroundings, Config) string { return "pitchpipe-exporter" },
			doc:      "name of the exporters' service where exporter.discovery is nomad or consul; of Nomad also NAME@NAMESPACE",
			set:      func(c *Config, s string) error { return setService(&c.Exporter.Service, s) },
		},
	}
}

var errService = errors.New("want the name of a service, or NAME@NAMESPACE")

func setService(to *string, s string) error {
	name, namespace, in := strings.Cut(s, "@")
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	if name == "" || in && namespace == "" || strings.ContainsFunc(name+namespace, odd) {
		return errService
	}
	*to = s
	return nil
}

func setNodes(to *string, s string) error {
	if s != "" && (!strings.Contains(s, nodePlaceholder) || api.CheckAddress(strings.ReplaceAll(s, nodePlaceholder, "n")) != nil) {
		return errNodes
	}
	*to = s
	return nil
}
