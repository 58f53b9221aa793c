package command

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/store"
	"pitchpipe/driver"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/test/nomadagent"
)

// encrypted serves an agent over mutual TLS, as an agent with verify_https_client does.
func encrypted(t *testing.T, agent *nomadagent.Agent, ca *certstest.Authority) (address string) {
	t.Helper()
	to, err := url.Parse(agent.Addr)
	if err != nil {
		t.Fatal(err)
	}
	files := ca.Files(t, certstest.Leaf{Name: "server.global.nomad", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, ca)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	})
	s.Config.ErrorLog = quiet
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func TestNomadIsReachedOverMutualTLS(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{ACL: true}, func(t *testing.T, agent *nomadagent.Agent) {
		ca, other := certstest.New(t, "ours"), certstest.New(t, "another")
		mine := certstest.Leaf{Name: "pitchpipe", Client: true}
		files := ca.Files(t, mine, ca)
		n := config.Nomad{
			Address: encrypted(t, agent, ca), CA: files.CA, Cert: files.Cert, Key: files.Key,
			TokenFile: file(t, t.TempDir(), "token", agent.Token, 0o600, time.Now()), Dir: t.TempDir(),
		}
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		for name, change := range map[string]func(*config.Nomad){
			"an authority that is not the agent's": func(n *config.Nomad) { n.CA = other.Files(t, mine, other).CA },
			"a certificate that it does not know":  func(n *config.Nomad) { f := other.Files(t, mine, other); n.Cert, n.Key = f.Cert, f.Key },
			"no certificate":                       func(n *config.Nomad) { n.Cert, n.Key = "", "" },
		} {
			with := n
			change(&with)
			c, err := configured(nil, with).nomadClient(log)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Jobs().List(nil); err == nil || strings.Contains(err.Error(), agent.Token) {
				t.Errorf("%s: %v, want it refused, and the token not told", name, err)
			}
			c.Close()
		}
		a := configured(nil, n)
		a.cfg.Store = config.Store{Kind: "nomad", Prefix: "pair"}
		exporters, err := nodes.New(nodes.Config{Socket: filepath.Join(t.TempDir(), "no.sock"), Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer exporters.Close()
		d, err := a.nomadDriver(t.Context(), exporters, nil, log)
		if err != nil {
			t.Fatal(err)
		}
		job, err := d.Start(t.Context(), "request", driver.Spec{Filename: "x.nomad.hcl", Source: []byte(strings.Replace(trained, `"/bin/true"`, `"/bin/echo"`, 1))})
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(3 * time.Minute); !job.State.Ended() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if job, err = d.Get(t.Context(), job.ID); err != nil {
				t.Fatal(err)
			}
		}
		out, err := d.Logs(t.Context(), job.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(out)
		if err = errors.Join(err, out.Close(), d.(io.Closer).Close()); err != nil || job.State != driver.Succeeded || string(text) != "1\n" { //nolint:forcetypeassert // it is one
			t.Errorf("%s after %q (%v)", job.State, text, err)
		}
		overTLS(t, a, log)
		if strings.Contains(said.String(), agent.Token) {
			t.Error("the token was logged")
		}
	})
}

// overTLS: the shared store has the same way to Nomad, and the same token.
func overTLS(t *testing.T, a *app, log *slog.Logger) {
	t.Helper()
	client, err := a.nomadStore(log)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := store.NewNomad(client, "", a.cfg.Store.Prefix, store.Options{}).Put(t.Context(), "state/x", []byte("y"), 0); err != nil {
		t.Error(err)
	}
}

// The store's own keys override those of the driver, and a file for everybody is refused.
func TestTheStoresWayToNomad(t *testing.T) {
	t.Parallel()
	address, tokens := asked(t, nil)
	dir := t.TempDir()
	mine, open := file(t, dir, "mine", secret, 0o600, time.Now()), file(t, dir, "open", secret, 0o644, time.Now())
	a := configured([]string{"NOMAD_NAMESPACE=ops"}, config.Nomad{Address: "http://127.0.0.1:1"})
	a.cfg.Store = config.Store{Kind: "nomad", Address: address, TokenFile: mine}
	c, err := a.nomadStore(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Variables().List(&nomadapi.QueryOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := tokens(); len(got) != 1 || got[0] != secret || c.Address() != address {
		t.Errorf("asked %s with %d tokens", c.Address(), len(got))
	}
	a.cfg.Store.TokenFile = open
	if _, err := a.nomadStore(slog.New(slog.DiscardHandler)); !errors.Is(err, errInvalid) || strings.Contains(err.Error(), secret) {
		t.Errorf("a file for everybody: %v", err)
	}
}
