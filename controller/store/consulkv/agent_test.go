package consulkv_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/consulkv"
	"pitchpipe/controller/store/storetest"
	"pitchpipe/test/consulserver"
)

// The same suite on an agent of Consul itself, where there is one.
func TestTheSuiteHoldsOnAnAgentOfConsul(t *testing.T) {
	t.Parallel()
	address := consulserver.StartAgent(t)
	var n atomic.Int32
	storetest.Run(t, storetest.Target{Small: true, New: func(*testing.T) storetest.Backend {
		return cluster{address, fmt.Sprintf("test/%d", n.Add(1)), 10 * time.Second, time.Second}
	}})
}

// plain is a store at the in-process server without a network.
func plain(t *testing.T, s *consulserver.Server, token string) *consulkv.Store {
	t.Helper()
	client, err := api.NewClient(&api.Config{Address: "consul.invalid", Token: token, HttpClient: &http.Client{Transport: s.Transport()}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := consulkv.New(consulkv.Config{Client: client, Prefix: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() }) // nothing of it is left
	return out
}

func TestErrorsOfConsulHaveTheirNames(t *testing.T) {
	t.Parallel()
	server := consulserver.New(consulserver.Config{Token: "secret"})
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		token    string
		headless bool
		want     error
	}{
		"no token":      {"", false, store.ErrDenied},
		"another token": {"wrong", false, store.ErrDenied},
		"no leader":     {"secret", true, store.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // the server has one leader or none
			server.Headless(tc.headless)
			defer server.Headless(false)
			s := plain(t, server, tc.token)
			_, get := s.Get(t.Context(), "key")
			_, put := s.Put(t.Context(), "key", []byte("x"), 0)
			_, keys := s.Keys(t.Context(), "")
			_, leader := s.Leader(t.Context(), "name")
			for call, err := range map[string]error{"get": get, "put": put, "keys": keys, "leader": leader} {
				if !errors.Is(err, tc.want) {
					t.Errorf("%s: %v, want %v", call, err, tc.want)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: the token is in the error: %v", call, err)
				}
			}
			if errors.Is(tc.want, store.ErrDenied) {
				if _, err := s.Lead(t.Context(), "name", "me"); !errors.Is(err, store.ErrDenied) {
					t.Errorf("lead: %v", err)
				}
			}
		})
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	client, err := api.NewClient(&api.Config{Address: "consul.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]consulkv.Config{
		"no client": {Prefix: "p"}, "no prefix": {Client: client}, "a prefix that is no key": {Client: client, Prefix: "/p"},
	} {
		if _, err := consulkv.New(cfg); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
