package server_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/server"
)

// The commands of the page make certificates that let a controller read an exporter.
func TestTheCertificatesOfThePageLetTheControllerIn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not there")
	}
	page, err := os.ReadFile("REMOTE.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "set -eu\n"
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of commands, want 3", len(blocks))
	}
	for _, b := range blocks {
		script += string(b[1])
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", script)
	c.Dir, c.Env = dir, append(os.Environ(), "NODE=localhost")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the commands of the page: %v\n%s", err, out)
	}
	file := func(name string) string { return filepath.Join(dir, name) }

	s := &site{files: certs.Files{Cert: file("localhost.crt"), Key: file("localhost.key"), CA: file("ca.crt")}, marker: &marker{}}
	s.serve(t, server.Remote{Clients: []string{"pitchpipe-controller"}})
	_, port, err := net.SplitHostPort(s.address[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	own, err := certs.Open(certs.Files{Cert: file("controller.crt"), Key: file("controller.key"), CA: file("ca.crt")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClientAt("https://localhost:"+port, own)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if jobs, err := client.Jobs(t.Context()); err != nil || len(jobs) != 2 {
		t.Errorf("saw %+v, %v; want the jobs of both users", jobs, err)
	}
}
