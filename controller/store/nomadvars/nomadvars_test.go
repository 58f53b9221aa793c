package nomadvars_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"go.uber.org/goleak"

	"pitchpipe/controller/store/nomadvars"
	"pitchpipe/controller/store/storetest"
	"pitchpipe/test/nomadagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// switched is a way to a server that can be cut.
type switched struct {
	http.RoundTripper
	cut atomic.Bool
}

func (s *switched) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		<-req.Context().Done() // as of packets that nobody answers
		return nil, req.Context().Err()
	}
	return s.RoundTripper.RoundTrip(req)
}

func (s *switched) silence() func() {
	s.cut.Store(true)
	return func() { s.cut.Store(false) }
}

// cluster is a Nomad and a prefix in it.
type cluster struct {
	address, token, prefix string
	delay                  time.Duration
}

func (c cluster) Client(t *testing.T) storetest.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	way := &switched{RoundTripper: transport}
	client, err := api.NewClient(&api.Config{Address: c.address, SecretID: c.token, HttpClient: &http.Client{Transport: way}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := nomadvars.New(nomadvars.Config{Client: client, Prefix: c.prefix, Delay: c.delay, Retry: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Client{Store: s, Silence: way.silence}
}

// suite runs the suite on an agent, each test below a prefix of its own.
func suite(t *testing.T, address, token string) {
	t.Helper()
	var n atomic.Int32
	letters := func() string {
		return "pitchpipe/test-" + strings.Repeat("x", int(n.Add(1)))
	}
	storetest.Run(t, storetest.Target{
		Small: true,
		New: func(*testing.T) storetest.Backend {
			return cluster{address, token, letters(), 500 * time.Millisecond}
		},
	})
}

func TestTheSuiteHolds(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		suite(t, a.Addr, a.Token)
	})
}
