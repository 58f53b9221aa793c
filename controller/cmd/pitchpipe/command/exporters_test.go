package command_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/exporter/api/certs/certstest"
)

func TestTheControllerDoesNotStartWithoutAWayToTheExporters(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	own := ca.Files(t, certstest.Leaf{Name: "controller", Client: true}, ca)
	other := ca.Files(t, certstest.Leaf{Name: "other", Client: true}, ca)
	for _, tc := range []struct {
		name string
		args []string
		says string
	}{
		{"over TLS and no certificates", []string{"--exporter.nodes=https://{node}:9836"}, "a certificate, its key and the authority"},
		{
			"a key that is another's",
			[]string{"--exporter.nodes=https://{node}:9836", "--exporter.cert=" + own.Cert, "--exporter.key=" + other.Key, "--exporter.ca=" + own.CA},
			"private key does not match",
		},
		{"a pattern without a node", []string{"--exporter.nodes=https://n1:9836"}, "want unix:/PATH/{node}.sock or https://{node}:PORT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := pitchpipe(t, append([]string{"controller", "--listen=", "--site=", "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s")}, tc.args...)...)
			if r.code != command.ExitInvalid || !strings.Contains(r.errors, tc.says) || !strings.Contains(r.errors, "exporter") {
				t.Errorf("exit %d, errors %q; want %d and %q", r.code, r.errors, command.ExitInvalid, tc.says)
			}
		})
	}
}
