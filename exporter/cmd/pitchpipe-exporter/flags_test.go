package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadFlagsAreErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, says string }{
		{"--web.listen-address=0.0.0.0:9820", "want a loopback address"},
		{"--web.listen-address=99999", "--web.listen-address=99999: want HOST:PORT"},
		{"--web.jobs=none", "--web.jobs=none: want own or all"},
		{"--sampling.interval=1ms", "--sampling.interval=1ms: want 50ms to 30s"},
		{"--sampling.interval=1m", "--sampling.interval=1m0s: want 50ms to 30s"},
		{"--sampling.discover=-1s", "--sampling.discover=-1s: want 10ms to 30s"},
		{"--sampling.discover=10h", "--sampling.discover=10h0m0s: want 10ms to 30s"},
		{"--sampling.ring=-5", "--sampling.ring=-5: want 1 to 1000000"},
		{"--sampling.ring=999999999999", "want 1 to 1000000"},
		{"--sampling.keep=-5m", "--sampling.keep=-5m0s: want more than 0s"},
		{"--sampling.keep=0", "want more than 0s"},
		{"--log.level=loud", "--log.level=loud: want debug, info, warn or error"},
		{"--energy.model.idle-watts=50 --energy.model.max-watts=10", "--energy.model.max-watts: energy model: want 0 <= idle <= max"},
		{"--path.procfs=/nonexistent", `could not read "/nonexistent"`},
		{"--path.rootfs=/nonexistent", `could not read "/nonexistent/proc"`},
		{"--path.sysfs=/proc/version", "--path.sysfs=/proc/version: want a folder"},
		{"--path.cgroupfs=/nonexistent", "--path.cgroupfs=/nonexistent: want a folder"},
		{"--state.file=" + state, "--state.file=" + state + ": want a file"},
		{"doctor --state.file=" + state, "want a file"},
		{"--socket=", "--socket=: want a path"},
		{"--attrib.environ=yes", "--attrib.environ: want own, any or off"},
		{"--unknown", "unknown flag"},
		{"argument", "unknown command"},
		{"--api.readers=root,nosuchuser", `--api.readers: "nosuchuser": user: unknown user nosuchuser`},
		{"--api.listen-address=127.0.0.1:0 --api.clients=c", "on loopback too"},
		{"--api.cert=/x --api.key=/x --api.client-ca=/x --api.clients=c", "--api.listen-address=: want HOST:PORT"},
		{"--api.listen-address=:0 --api.cert=/nonexistent/c --api.key=/nonexistent/k --api.client-ca=/nonexistent/a --api.clients=c", "no such file"},
	} {
		cmd := command()
		cmd.SetArgs(append([]string{"--socket", filepath.Join(dir, "s"), "--web.listen-address="}, strings.Fields(tc.args)...))
		cmd.SetOut(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.args, err, tc.says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v; want nothing beside the folder", left, err)
	}
}
