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
}

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
	}
}

func setNodes(to *string, s string) error {
	if s != "" && (!strings.Contains(s, nodePlaceholder) || api.CheckAddress(strings.ReplaceAll(s, nodePlaceholder, "n")) != nil) {
		return errNodes
	}
	*to = s
	return nil
}
