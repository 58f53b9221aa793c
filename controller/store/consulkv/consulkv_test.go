package consulkv_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"pitchpipe/controller/store/consulkv"
	"pitchpipe/controller/store/storetest"
	"pitchpipe/test/consulserver"
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

// cluster is a Consul and a prefix in it.
type cluster struct {
	address, prefix string
	ttl, delay      time.Duration
}

func (c cluster) Client(t *testing.T) storetest.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	way := &switched{RoundTripper: transport}
	client, err := api.NewClient(&api.Config{Address: c.address, HttpClient: &http.Client{Transport: way}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := consulkv.New(consulkv.Config{Client: client, Prefix: c.prefix, TTL: c.ttl, Delay: c.delay, Retry: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Client{Store: s, Silence: way.silence}
}

func TestTheSuiteHoldsOnTheInProcessServer(t *testing.T) {
	t.Parallel()
	server := consulserver.New(consulserver.Config{MinTTL: time.Second})
	address, stop := server.Listen()
	t.Cleanup(stop)
	storetest.Run(t, storetest.Target{New: func(t *testing.T) storetest.Backend {
		return cluster{address, "test/" + strings.NewReplacer(" ", "-", ",", "").Replace(t.Name()), 2 * time.Second, 200 * time.Millisecond}
	}})
}
