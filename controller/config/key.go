package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/nearest"
)

// maxSocketPath is the longest path that fits into the kernel's sockaddr_un with
// its ending zero.
const maxSocketPath = 107

// key is one setting of the controller: the one place that knows it.
type key struct {
	name     string
	want     string // what is allowed, for errors and for the reference
	fallback func(surroundings, Config) string
	printed  string // the default in words, where it depends on the machine
	doc      string
	set      func(c *Config, text string) error
}

// variable is the key's environment variable.
func (k key) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.name, ".", "_"))
}

// shown is the default as the reference prints it.
func (k key) shown() string {
	if k.printed != "" {
		return k.printed
	}
	return k.fallback(surroundings{}, Config{})
}

// Drivers lists the schedulers that the key driver knows.
func Drivers() []string { return []string{"local", "slurm", "nomad"} }

// LogFormats lists the formats of the log.
func LogFormats() []string { return []string{"text", "json"} }

// keys lists every setting in the order of the reference. A default may use the
// settings above it.
func keys() []key {
	return slices.Concat(commonKeys(), exporterKeys(), slurmKeys(), brokerKeys(), nomadKeys(), storeKeys(), otherKeys())
}

func commonKeys() []key {
	return []key{
		{
			name: "socket", want: "want an absolute path of at most 107 bytes",
			fallback: func(m surroundings, _ Config) string { return filepath.Join(m.runtimeDir(), "controller.sock") },
			printed:  "/run/pitchpipe/controller.sock for root, else $XDG_RUNTIME_DIR/pitchpipe/controller.sock",
			doc:      "Unix socket on which the controller answers",
			set:      func(c *Config, s string) error { return setSocket(&c.Socket, s) },
		},
		{
			name: "state", want: "want an absolute path",
			fallback: func(m surroundings, _ Config) string { return m.stateDir() },
			printed:  "/var/lib/pitchpipe for root, else $XDG_STATE_HOME/pitchpipe",
			doc:      "directory of the durable state",
			set:      func(c *Config, s string) error { return setPath(&c.State, s) },
		},
		{
			name: "driver", want: "want one of " + strings.Join(Drivers(), ", "),
			fallback: func(surroundings, Config) string { return "local" },
			doc:      "the scheduler whose jobs are tuned",
			set:      func(c *Config, s string) error { return setWord(&c.Driver, s, Drivers()) },
		},
		{
			name: "listen", want: "want a loopback address and a port such as 127.0.0.1:9821, or nothing",
			fallback: func(surroundings, Config) string { return "127.0.0.1:9821" },
			doc:      "TCP address of /metrics; empty for none",
			set:      func(c *Config, s string) error { return setLoopback(&c.Listen, s) },
		},
		{
			name: "local.cluster", want: "want a name of letters, digits, dashes and underscores",
			fallback: func(surroundings, Config) string { return "local" },
			doc:      "name of the embedded scheduler's cluster",
			set:      func(c *Config, s string) error { return setName(&c.Local.Cluster, s) },
		},
		{
			name: "local.cores", want: "want a whole number from 0 to 65536",
			fallback: func(surroundings, Config) string { return "0" },
			doc:      "cores that the embedded scheduler may give to jobs; 0 for all of the machine",
			set:      func(c *Config, s string) error { return setInt(&c.Local.Cores, s, 65536) },
		},
		{
			name: "local.memory", want: "want an amount of memory such as 4GiB",
			fallback: func(surroundings, Config) string { return "0" },
			doc:      "memory that the embedded scheduler may give to jobs; 0 for all of the machine",
			set: func(c *Config, s string) (err error) {
				c.Local.Memory, err = tuning.ParseBytes(s)
				return err
			},
		},
		{
			name: "local.dir", want: "want an absolute path",
			fallback: func(_ surroundings, c Config) string { return filepath.Join(c.State, "local") },
			printed:  "the folder local of state",
			doc:      "directory of the embedded scheduler's jobs",
			set:      func(c *Config, s string) error { return setPath(&c.Local.Dir, s) },
		},
	}
}

func otherKeys() []key {
	return []key{
		{
			name: "log.level", want: "want one of debug, info, warn, error",
			fallback: func(surroundings, Config) string { return "info" },
			doc:      "lower levels are left out of the log",
			set:      setLevel,
		},
		{
			name: "log.format", want: "want one of " + strings.Join(LogFormats(), ", "),
			fallback: func(surroundings, Config) string { return "text" },
			doc:      "form of the log",
			set:      func(c *Config, s string) error { return setWord(&c.Log.Format, s, LogFormats()) },
		},
		{
			name: "resync", want: "want a time from 1s to 24h, such as 30s",
			fallback: func(surroundings, Config) string { return "30s" },
			doc:      "how often every job is looked at although nothing was heard of it",
			set:      setResync,
		},
		{
			name: "site", want: "want an absolute path, or nothing",
			fallback: func(m surroundings, _ Config) string { return m.existing("/etc/pitchpipe/site.yaml") },
			printed:  "/etc/pitchpipe/site.yaml where that file exists",
			doc:      "file of the site's policy; a file that is named here must exist",
			set: func(c *Config, s string) error {
				if s == "" {
					return nil
				}
				return setPath(&c.Site, s)
			},
		},
	}
}

func keyNames() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

func setPath(to *string, s string) error {
	if !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
		return errors.New("want an absolute path")
	}
	*to = filepath.Clean(s)
	return nil
}

func setSocket(to *string, s string) error {
	if err := setPath(to, s); err != nil {
		return err
	}
	if len(*to) > maxSocketPath {
		return fmt.Errorf("want at most %d bytes, which is what the kernel takes as the path of a socket", maxSocketPath)
	}
	return nil
}

func setWord(to *string, s string, words []string) error {
	if !slices.Contains(words, s) {
		want := "want one of " + strings.Join(words, ", ")
		if near := nearest.Word(s, words); near != "" {
			want += fmt.Sprintf("; did you mean %q?", near)
		}
		return errors.New(want)
	}
	*to = s
	return nil
}

func setName(to *string, s string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-", r)
	}
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, odd) {
		return errors.New("want a name of at most 64 letters, digits, dashes and underscores")
	}
	*to = s
	return nil
}

func setInt(to *int, s string, most int) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("want a whole number from 0 to %d", most)
	}
	*to = n
	return nil
}

// setLoopback refuses every address that others could reach: /metrics beyond this
// machine needs TLS and authentication in front of it.
func setLoopback(to *string, s string) error {
	if s == "" {
		*to = ""
		return nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("want a loopback address and a port such as 127.0.0.1:9821, or nothing")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("want a port from 0 to 65535")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("want a loopback address such as 127.0.0.1 or [::1]; beyond this machine put a proxy with TLS and authentication before it")
	}
	*to = s
	return nil
}

func setLevel(c *Config, s string) error {
	switch s {
	case "debug":
		c.Log.Level = slog.LevelDebug
	case "info":
		c.Log.Level = slog.LevelInfo
	case "warn":
		c.Log.Level = slog.LevelWarn
	case "error":
		c.Log.Level = slog.LevelError
	default:
		return errors.New("want one of debug, info, warn, error")
	}
	return nil
}

func setResync(c *Config, s string) error {
	return setPeriod(&c.Resync, s, time.Second, 24*time.Hour)
}
