package config

import (
	"errors"
	"strings"
)

// Broker is what acts for the controller of a Slurm site.
type Broker struct {
	Socket     string   // path of its Unix socket
	Dir        string   // directory of its durable state
	Controller []string // accounts that it answers, beside root
	Accept     string   // plugin: a job's record by the submission plugin counts; script: its script
	Above      []string // partitions in which a job may get more than its owner asked for
	Restarts   int      // how often it puts one job back into the queue at most
}

// brokerKeys are the settings of `pitchpipe broker`.
func brokerKeys() []key {
	return []key{
		{
			name: "broker.socket", want: "want an absolute path of at most 107 bytes",
			fallback: func(surroundings, Config) string { return "/run/pitchpipe-broker/broker.sock" },
			doc:      "Unix socket on which `pitchpipe broker` answers",
			set:      func(c *Config, s string) error { return setSocket(&c.Broker.Socket, s) },
		},
		{
			name: "broker.dir", want: "want an absolute path",
			fallback: func(surroundings, Config) string { return "/var/lib/pitchpipe-broker" },
			doc:      "directory of what the broker remembers of jobs, and of its audit file",
			set:      func(c *Config, s string) error { return setPath(&c.Broker.Dir, s) },
		},
		{
			name: "broker.controller", want: "want names of accounts with commas between them",
			fallback: func(surroundings, Config) string { return "pitchpipe" },
			doc:      "accounts that the broker answers beside root: that of the controller",
			set:      func(c *Config, s string) error { return setNames(&c.Broker.Controller, s, "accounts") },
		},
		{
			name: "broker.accept", want: "want plugin or script",
			fallback: func(surroundings, Config) string { return "plugin" },
			doc:      "what says that a job may be changed: what the submission plugin recorded with it, or, where there is no plugin, its script",
			set:      func(c *Config, s string) error { return setWord(&c.Broker.Accept, s, []string{"plugin", "script"}) },
		},
		{
			name: "broker.above", want: "want names of partitions with commas between them, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none",
			doc:      "partitions in which a job may get more than its owner asked for",
			set: func(c *Config, s string) error {
				if s == "" {
					c.Broker.Above = nil
					return nil
				}
				return setNames(&c.Broker.Above, s, "partitions")
			},
		},
		{
			name: "broker.restarts", want: "want a whole number from 1 to 1000",
			fallback: func(surroundings, Config) string { return "20" },
			doc:      "how often the broker puts one job back into the queue at most",
			set: func(c *Config, s string) error {
				if err := setInt(&c.Broker.Restarts, s, 1000); err != nil || c.Broker.Restarts == 0 {
					return errors.New("want a whole number from 1 to 1000")
				}
				return nil
			},
		},
	}
}

// setNames takes names with commas between them.
func setNames(to *[]string, s, of string) error {
	var out []string
	for name := range strings.SplitSeq(s, ",") {
		if name == "" || strings.ContainsAny(name, " |\n\t") {
			return errors.New("want names of " + of + " with commas between them")
		}
		out = append(out, name)
	}
	*to = out
	return nil
}
