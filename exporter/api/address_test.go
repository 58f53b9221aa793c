package api_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
)

func TestAddressesAreSocketsOrHostsWithPorts(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	own, err := certs.Open(ca.Files(t, certstest.Leaf{Name: "c", Client: true}, ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		"unix:/run/x.sock": true, "https://n1:9836": true, "https://n1.example.org:9836": true, "https://10.0.0.1:9836": true, "https://[::1]:9836": true,
		"": false, "n1:9836": false, "/run/x.sock": false, "unix:x.sock": false, "unix:": false, "unix:/a\x00b": false,
		"http://n1:9836": false, "https://n1": false, "https://:9836": false, "https://n1:": false, "https://n1:0": false, "https://n1:65536": false,
		"https://n1:9836/": false, "https://u@n1:9836": false, "https://n1:9836?": false, "https://n1:9836#x": false, "https://n1:98 36": false,
		"unix:/" + strings.Repeat("x", 107): false,
	} {
		if err := api.CheckAddress(address); ok != (err == nil) || err != nil && !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v, want it accepted: %v", address, err, ok)
		}
		c, err := api.NewClientAt(address, own)
		if ok != (err == nil) || err != nil && !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v, want a client: %v", address, err, ok)
		}
		if err == nil {
			c.Close()
		}
	}
	if _, err := api.NewClientAt("https://n1:9836", nil); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("https without certificates: %v, want %v", err, api.ErrInvalid)
	}
	if c, err := api.NewClientAt("unix:/run/x.sock", nil); err != nil {
		t.Errorf("a socket needs none: %v", err)
	} else {
		c.Close()
	}
}

func TestWithoutAnExporterBehindItAnAddressIsUnavailable(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	own, err := certs.Open(ca.Files(t, certstest.Leaf{Name: "c", Client: true}, ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := api.NewClientAt(address, own)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Node(t.Context()); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v, want %v and the address", err, api.ErrUnavailable)
	}
}

func FuzzCheckAddress(f *testing.F) {
	for _, seed := range []string{"unix:/run/x.sock", "https://n1:9836", "https://[::1]:9836", "https://u@h:1/x?y#z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		err := api.CheckAddress(address)
		if err != nil && !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v", address, err)
		}
		rest, isUnix := strings.CutPrefix(address, "unix:")
		if err == nil && !isUnix && strings.ContainsAny(strings.TrimPrefix(address, "https://"), "/?#@\\ \x00") {
			t.Errorf("%q was taken", address)
		}
		if err == nil && isUnix && !strings.HasPrefix(rest, "/") {
			t.Errorf("%q was taken", address)
		}
	})
}
