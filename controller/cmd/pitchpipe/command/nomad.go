package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/nomad"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

func (a *app) nomadEnvironment() *nomadapi.Config {
	insecure, _ := strconv.ParseBool(a.env("NOMAD_SKIP_VERIFY")) // what is not a boolean is false, as for nomad
	c := &nomadapi.Config{
		Address: cmp.Or(a.env("NOMAD_ADDR"), "http://127.0.0.1:4646"), Region: a.env("NOMAD_REGION"),
		Namespace: a.env("NOMAD_NAMESPACE"), SecretID: a.env("NOMAD_TOKEN"),
		TLSConfig: &nomadapi.TLSConfig{
			CACert: a.env("NOMAD_CACERT"), CAPath: a.env("NOMAD_CAPATH"), ClientCert: a.env("NOMAD_CLIENT_CERT"),
			ClientKey: a.env("NOMAD_CLIENT_KEY"), TLSServerName: a.env("NOMAD_TLS_SERVER_NAME"), Insecure: insecure,
		},
	}
	if user, password, ok := strings.Cut(a.env("NOMAD_HTTP_AUTH"), ":"); ok {
		c.HttpAuth = &nomadapi.HttpBasicAuth{Username: user, Password: password}
	}
	return c
}

func (a *app) nomadAsCaller() (*nomadapi.Client, error) {
	client, err := nomadapi.NewClient(a.nomadEnvironment())
	return client, invalid("way to Nomad", err)
}

// submitToNomad registers the job with the caller's own rights, as Nomad's environment
// variables give them. Where it is to be tuned and nothing was chosen for it, the
// controller is asked first with what it is to begin, since Nomad starts it at once.
func (a *app) submitToNomad(controller *api.Client, change *driver.Change) func(context.Context, *jobfile.Job, driver.Spec) (driver.JobID, error) {
	return func(ctx context.Context, file *jobfile.Job, s driver.Spec) (driver.JobID, error) {
		client, err := a.nomadAsCaller()
		if err != nil {
			return "", err
		}
		defer client.Close()
		u := nomad.Submission{
			Client: client, Namespace: a.env("NOMAD_NAMESPACE"),
			Warn: func(text string) { fmt.Fprintf(a.Stderr, "pitchpipe: %s: %s\n", s.Filename, text) },
		}
		switch {
		case change != nil:
			u.Change = *change
		case file.Stanza != nil && !s.Off:
			u.Ask = func(ctx context.Context, job []byte) (nomad.Beginning, bool) {
				return a.headStart(ctx, controller, job)
			}
		}
		return u.Submit(ctx, s)
	}
}

// stopInNomad deregisters a job with the rights that submitToNomad registers it with.
func (a *app) stopInNomad(ctx context.Context, id driver.JobID) error {
	client, err := a.nomadAsCaller()
	if err != nil {
		return err
	}
	defer client.Close()
	return nomad.Stop(ctx, client, id)
}

// headStart asks the controller, which knows jobs of this kind, with what a job is to begin.
// Whatever goes wrong with that, the job begins as it is.
func (a *app) headStart(ctx context.Context, controller *api.Client, job []byte) (nomad.Beginning, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // for so long a submission may wait
	defer cancel()
	h, err := controller.HeadStart(ctx, job)
	if err != nil {
		a.logger().Debug("the job begins as it is", "err", err)
		return nomad.Beginning{}, false
	}
	return nomad.Beginning{Intent: h.Intent, Change: h.Change}, h.Intent != ""
}

// nomadClient is a client with the rights of the controller. Its token is, in this
// order, in nomad.token_file, in NOMAD_TOKEN, or the workload identity of the task that
// the controller is.
func (a *app) nomadClient(log *slog.Logger) (*nomadapi.Client, error) {
	return a.nomadClientTo(a.cfg.Nomad, "", log) // each call names its namespace
}

// nomadStore is the client of a shared store in Nomad's variables: the controller's own,
// but for what the store is configured with.
func (a *app) nomadStore(log *slog.Logger) (*nomadapi.Client, error) {
	with := a.cfg.Nomad
	with.Address, with.TokenFile = cmp.Or(a.cfg.Store.Address, with.Address), cmp.Or(a.cfg.Store.TokenFile, with.TokenFile)
	return a.nomadClientTo(with, cmp.Or(a.cfg.Store.Namespace, a.env("NOMAD_NAMESPACE")), log)
}

func (a *app) nomadClientTo(with config.Nomad, namespace string, log *slog.Logger) (*nomadapi.Client, error) {
	c := a.nomadEnvironment()
	c.Address = cmp.Or(with.Address, c.Address)
	c.TLSConfig.CACert = cmp.Or(with.CA, c.TLSConfig.CACert)
	c.TLSConfig.ClientCert = cmp.Or(with.Cert, c.TLSConfig.ClientCert)
	c.TLSConfig.ClientKey = cmp.Or(with.Key, c.TLSConfig.ClientKey)
	c.Namespace = namespace
	var read func() (string, error)
	identity := filepath.Join(a.env("NOMAD_SECRETS_DIR"), "nomad_token")
	switch _, err := os.Stat(identity); {
	case with.TokenFile != "":
		c.SecretID, read = "", func() (string, error) { return config.ReadToken(with.TokenFile) }
	case err == nil && a.env("NOMAD_SECRETS_DIR") != "" && (c.SecretID == "" || strings.HasPrefix(c.SecretID, "eyJ")):
		// Nomad's agent decides who may read the directory that it is in.
		read = func() (string, error) {
			data, err := os.ReadFile(identity)
			return strings.TrimSpace(string(data)), err
		}
	}
	if read != nil {
		if _, err := read(); err != nil {
			return nil, invalid("configuration: nomad", err)
		}
	}
	address, err := url.Parse(c.Address)
	if err != nil {
		return nil, fmt.Errorf("%w configuration: nomad.address: %q is no address", errInvalid, c.Address)
	}
	if (read != nil || c.SecretID != "") && address.Scheme == "http" && address.Hostname() != "localhost" && !net.ParseIP(address.Hostname()).IsLoopback() {
		return nil, fmt.Errorf("%w configuration: nomad.address: %s: everybody on the way could read the token; want https://", errInvalid, c.Address)
	}
	transport := cleanhttp.DefaultPooledTransport()
	transport.MaxIdleConnsPerHost, transport.TLSClientConfig = 16, &tls.Config{MinVersion: tls.VersionTLS12}
	if address.Scheme == "unix" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address.Path)
		}
		c.Address = "http://127.0.0.1"
	}
	hc := &http.Client{Transport: transport}
	if err := nomadapi.ConfigureTLS(hc, c.TLSConfig); err != nil {
		return nil, invalid("configuration: nomad", err)
	}
	if read != nil {
		hc.Transport = &token{read: read, next: transport, log: log}
	}
	c.HttpClient = hc
	client, err := nomadapi.NewClient(c)
	return client, invalid("configuration: nomad", err)
}

// token puts the token of a file into every request: those of workload identities are renewed.
// It is safe for concurrent use.
type token struct {
	read func() (string, error)
	next *http.Transport
	log  *slog.Logger
	last atomic.Value // a string
}

// RoundTrip implements http.RoundTripper. A token that cannot be read any more stays the last
// one.
func (t *token) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := t.read()
	if err != nil {
		t.log.Warn("the token for Nomad cannot be read, the last one is used", "err", err)
		text, _ = t.last.Load().(string)
	}
	t.last.Store(text)
	r = r.Clone(r.Context())
	r.Header.Set("X-Nomad-Token", text)
	return t.next.RoundTrip(r)
}

// CloseIdleConnections lets the client drop its connections.
func (t *token) CloseIdleConnections() { t.next.CloseIdleConnections() }

// nomadDriver opens the driver for Nomad. Where the controller shares its state the
// journal is in the shared store too.
func (a *app) nomadDriver(ctx context.Context, exporters *nodes.Exporters, candidate *daemon.Candidate, log *slog.Logger) (driver.Driver, error) {
	client, err := a.nomadClient(log)
	if err != nil {
		return nil, err
	}
	var records nomad.Journal
	if candidate != nil {
		records = candidate.Journal()
	} else if records, err = durable.OpenFolder(a.cfg.Nomad.Dir); err != nil {
		return nil, err
	}
	return nomad.New(ctx, nomad.Config{
		Client: client, Namespaces: a.cfg.Nomad.Namespaces, Journal: records, Leads: candidate.Leads,
		Listen: listener(exporters.Report, log), Resync: a.cfg.Nomad.Resync, Logger: log,
	})
}

// listener reads the output of an allocation's task, which Nomad's agent streams, and
// reports each epoch to the exporter of its node. The exporter knows that task as its own job,
// in its first attempt.
func listener(
	report func(ctx context.Context, node, job string, attempt int, r exporterapi.Report) error, log *slog.Logger,
) func(context.Context, string, string, driver.Progress, io.Reader) error {
	return func(ctx context.Context, node, unit string, p driver.Progress, output io.Reader) error {
		pattern, err := regexp.Compile(p.Pattern)
		if err != nil {
			return fmt.Errorf("progress pattern: %w: %w", driver.ErrInvalid, err)
		}
		with := progress.Config{Pattern: pattern, Total: p.Total, Logger: log.With("unit", unit)}
		err = progress.Read(ctx, with, output, func(ctx context.Context, r exporterapi.Report) error {
			return report(ctx, node, "nomad/"+unit, 1, r)
		})
		if errors.Is(err, progress.ErrPattern) {
			return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
		}
		return err
	}
}
