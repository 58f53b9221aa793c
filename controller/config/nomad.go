package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Nomad is how a Nomad cluster is reached. What is empty stands in Nomad's own
// environment variables: NOMAD_ADDR, NOMAD_TOKEN, NOMAD_CACERT and their like.
type Nomad struct {
	Address    string        // http://HOST:PORT, https://HOST:PORT or unix:///PATH
	Namespaces []string      // whose jobs are seen; * = of all; none = default
	TokenFile  string        // file of the token
	CA         string        // file of the authority whose servers are believed
	Cert       string        // file of the controller's certificate
	Key        string        // file of its private key
	People     []Person      // who sees and steers the jobs of a namespace
	Dir        string        // directory of the journal of its jobs
	Resync     time.Duration // how often everything is read anew
}

// Person is a user of this machine who counts as an owner of the jobs of a namespace.
// Nomad knows no owner of a job.
type Person struct{ Namespace, Name string } // Name * = everybody

const wantPeople = "want NAMESPACE=USER with commas between them, with * for every user, or nothing"

func setPeople(to *[]Person, s string) error {
	*to = nil
	for pair := range strings.SplitSeq(s, ",") {
		if s == "" {
			return nil
		}
		namespace, name, ok := strings.Cut(pair, "=")
		p := Person{Namespace: namespace, Name: name}
		var checked string
		if !ok || setName(&checked, namespace) != nil || name != "*" && setName(&checked, name) != nil {
			return errors.New(wantPeople)
		}
		*to = append(*to, p)
	}
	return nil
}

const wantNomad = "want https://HOST:PORT, http://HOST:PORT or unix:///PATH, or nothing"

// nomadKeys are the settings of the driver for Nomad.
func nomadKeys() []key {
	empty := func(surroundings, Config) string { return "" }
	return []key{
		{
			name: "nomad.address", want: wantNomad, fallback: empty, printed: "NOMAD_ADDR, else this machine's agent",
			doc: "address of a Nomad agent; http to another machine only without a token, which would be read on the way",
			set: func(c *Config, s string) error { return setNomad(&c.Nomad.Address, s) },
		},
		{
			name: "nomad.namespaces", want: "want names of namespaces with commas between them, or *, or nothing", fallback: empty, printed: "default",
			doc: "namespaces whose jobs are tuned; * for all that the token may read",
			set: func(c *Config, s string) error { return setNamespaces(&c.Nomad.Namespaces, s) },
		},
		{
			name: "nomad.people", want: wantPeople, fallback: empty, printed: "nobody but root, the controller's user, and a user of the namespace's name",
			doc: "who sees, stops and switches off the jobs of a namespace by this controller, as if they were his own: Nomad knows no owner of a job",
			set: func(c *Config, s string) error { return setPeople(&c.Nomad.People, s) },
		},
		{
			name: "nomad.token_file", want: "want an absolute path, or nothing", fallback: empty,
			printed: "NOMAD_TOKEN, else the workload identity where the controller is a job of Nomad",
			doc:     "file of the token, readable for its owner alone; read again when it changes",
			set:     func(c *Config, s string) error { return setMaybePath(&c.Nomad.TokenFile, s) },
		},
		{
			name: "nomad.ca", want: "want an absolute path, or nothing", fallback: empty, printed: "NOMAD_CACERT, else the machine's",
			doc: "certificate of the authority that the agent's own certificate has to come from",
			set: func(c *Config, s string) error { return setMaybePath(&c.Nomad.CA, s) },
		},
		{
			name: "nomad.cert", want: "want an absolute path, or nothing", fallback: empty, printed: "NOMAD_CLIENT_CERT, else none",
			doc: "certificate by which the agent knows the controller",
			set: func(c *Config, s string) error { return setMaybePath(&c.Nomad.Cert, s) },
		},
		{
			name: "nomad.key", want: "want an absolute path, or nothing", fallback: empty, printed: "NOMAD_CLIENT_KEY, else none",
			doc: "private key of nomad.cert",
			set: func(c *Config, s string) error { return setMaybePath(&c.Nomad.Key, s) },
		},
		{
			name: "nomad.dir", want: "want an absolute path",
			fallback: func(_ surroundings, c Config) string { return filepath.Join(c.State, "nomad") },
			printed:  "the folder nomad of state",
			doc:      "directory of what the driver for Nomad remembers of jobs",
			set:      func(c *Config, s string) error { return setPath(&c.Nomad.Dir, s) },
		},
		{
			name: "nomad.resync", want: "want a time from 1s to 1h, such as 30s",
			fallback: func(surroundings, Config) string { return "30s" },
			doc:      "how often all jobs and allocations are read although Nomad told of no change",
			set:      func(c *Config, s string) error { return setPeriod(&c.Nomad.Resync, s, time.Second, time.Hour) },
		},
	}
}

func setNomad(to *string, s string) error {
	if s == "" {
		*to = ""
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil, u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New(wantNomad)
	case u.Scheme == "unix":
		if u.Host != "" || !filepath.IsAbs(u.Path) || len(u.Path) > maxSocketPath {
			return errors.New(wantNomad)
		}
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", strings.Trim(u.Path, "/") != "":
		return errors.New(wantNomad)
	}
	*to = s
	return nil
}

func setNamespaces(to *[]string, s string) error {
	*to = nil
	if s == "" {
		return nil
	}
	all := strings.Split(s, ",")
	for _, name := range all {
		var checked string
		if name == "*" && len(all) == 1 {
			continue
		}
		if err := setName(&checked, name); err != nil {
			return errors.New("want names of namespaces with commas between them, or * alone")
		}
	}
	*to = all
	return nil
}

// maxToken is the longest token that is read: a workload identity has about 1 KiB.
const maxToken = 16 << 10

// ReadToken reads a secret: one line of a file that nobody but its owner, who is root
// or the user of this process, may read or write. The error is an Error, and names the
// file and never its content.
func ReadToken(path string) (string, error) {
	fault := func(found string, cause error) (string, error) {
		return "", Error{Where: path, Key: "token", Found: found, Want: "want a file with the token alone, that only its owner may read", cause: cause}
	}
	f, err := os.Open(path)
	if err != nil {
		return fault("cannot be read", err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return fault("cannot be read", err)
	case !info.Mode().IsRegular():
		return fault("is no file", fs.ErrInvalid)
	case info.Mode().Perm()&0o077 != 0:
		return fault(fmt.Sprintf("has the mode %04o, by which others may read or write it", info.Mode().Perm()), fs.ErrPermission)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fault(fmt.Sprintf("belongs to uid %d", stat.Uid), fs.ErrPermission)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return fault("cannot be read", err)
	}
	token := bytes.TrimSpace(data)
	if len(token) == 0 || len(data) > maxToken || bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fault("holds no token", fs.ErrInvalid)
	}
	return string(token), nil
}
