package config

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// Store is where several controllers share their state, of whom one leads.
type Store struct {
	Kind      string        // none: this controller is alone; file, nomad or consul
	Path      string        // of the shared file
	Prefix    string        // of the variables or keys
	Address   string        // of Nomad or Consul; empty = that of their own environment variables
	Namespace string        // of the variables; empty = that of Nomad's own environment variable
	Token     string        // file of the token; empty = that of their own environment variables
	TTL       time.Duration // for how long a leader leads that is not heard
	Delay     time.Duration // for how long nobody leads after that
}

// StoreKinds lists where state can be shared.
func StoreKinds() []string { return []string{"none", "file", "nomad", "consul"} }

// storeKeys are the settings of the shared state.
func storeKeys() []key {
	return []key{
		{
			name: "store.kind", want: "want one of " + strings.Join(StoreKinds(), ", "),
			fallback: func(surroundings, Config) string { return "none" },
			doc:      "where several controllers share their state, so that one leads and the others stand by: a file of this machine, the variables of Nomad, the keys of Consul; none for a controller that is alone",
			set:      func(c *Config, s string) error { return setWord(&c.Store.Kind, s, StoreKinds()) },
		},
		{
			name: "store.path", want: "want an absolute path",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none: needed where store.kind is file",
			doc:      "the shared file, the same for the controllers of a pair; each has its own state",
			set:      func(c *Config, s string) error { return setPath(&c.Store.Path, s) },
		},
		{
			name: "store.prefix", want: wantPrefix,
			fallback: func(surroundings, Config) string { return "pitchpipe" },
			doc:      "where the state lies in Nomad or Consul; the controllers of one pair have the same, and those of another cluster another",
			set:      func(c *Config, s string) error { return setPrefix(&c.Store.Prefix, s) },
		},
		{
			name: "store.address", want: "want an address such as https://nomad.example.org:4646, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "nomad.address and NOMAD_ADDR, or CONSUL_HTTP_ADDR, else this machine's agent",
			doc:      "address of Nomad or Consul",
			set:      func(c *Config, s string) error { c.Store.Address = s; return nil },
		},
		{
			name: "store.namespace", want: "want a name of letters, digits, dashes and underscores, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "NOMAD_NAMESPACE, else default",
			doc:      "Nomad's namespace of the variables",
			set: func(c *Config, s string) error {
				if s == "" {
					c.Store.Namespace = ""
					return nil
				}
				return setName(&c.Store.Namespace, s)
			},
		},
		{
			name: "store.token_file", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "nomad.token_file, NOMAD_TOKEN or the workload identity; CONSUL_HTTP_TOKEN",
			doc:      "file that holds the token for Nomad or Consul, readable for its owner alone",
			set: func(c *Config, s string) error {
				if s == "" {
					return nil
				}
				return setPath(&c.Store.Token, s)
			},
		},
		{
			name: "store.ttl", want: "want a time from 10s to 10m, such as 15s",
			fallback: func(surroundings, Config) string { return "15s" },
			doc:      "for how long a leader leads that cannot reach Nomad or Consul; another takes over after at most twice this time and store.delay",
			set:      func(c *Config, s string) error { return setPeriod(&c.Store.TTL, s, 10*time.Second, 10*time.Minute) },
		},
		{
			name: "store.delay", want: "want a time from 1s to 1m, such as 5s",
			fallback: func(surroundings, Config) string { return "5s" },
			doc:      "for how long nobody leads after a leader that was not heard",
			set:      func(c *Config, s string) error { return setPeriod(&c.Store.Delay, s, time.Second, time.Minute) },
		},
	}
}

const wantPrefix = "want at most 48 letters, digits, dashes and underscores with slashes between them"

var storePrefix = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`)

func setPrefix(to *string, s string) error {
	if len(s) > 48 || !storePrefix.MatchString(s) || s == "nomad" || strings.HasPrefix(s, "nomad/") {
		return errors.New(wantPrefix)
	}
	*to = s
	return nil
}
