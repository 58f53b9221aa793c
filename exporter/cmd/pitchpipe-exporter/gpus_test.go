package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/collector/gpu/card"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
)

// A helper that writes what the real one would, of one GPU that a process is on: 100 J a
// second by its counter.
const helperScript = `#!/bin/sh
n=0
while true; do
	n=$((n + 1))
	echo "{\"at\":\"$(date -u +%%Y-%%m-%%dT%%H:%%M:%%S.%%NZ)\",\"driver\":\"1\",\"devices\":[{\"uuid\":\"GPU-a\",\"joules\":$((n * 20)),\"watts\":100,\"busy\":0.5,\"processes\":[{\"pid\":%d,\"memory_bytes\":1024}]}]}"
	sleep 0.2
done
`

func TestAJobIsChargedWithItsGPU(t *testing.T) {
	t.Parallel()
	job := exec.CommandContext(t.Context(), "sleep", "1000")
	job.Env = append(os.Environ(), "PITCHPIPE_JOB_ID=on-a-gpu", "PITCHPIPE_ATTEMPT=1")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = job.Process.Kill(); _ = job.Wait() })
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(helperScript, job.Process.Pid)), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	client, _ := exporter(t, "--gpu.helper="+path)
	about, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said string
	for _, s := range about.Sources {
		if s.Name == "gpu/nvidia" && s.Support == api.Supported {
			said = s.Reason
		}
	}
	if said != "1 GPUs by helper" {
		t.Errorf("the node says %q of its GPUs: %+v", said, about.Sources)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		w, err := client.Window(t.Context(), "on-a-gpu", 1, 0)
		if err == nil && len(w.Samples) > 0 {
			v := w.Samples[len(w.Samples)-1].Values
			if joules := v[api.ColGPUJoules]; joules >= 40 && v[api.ColGPUMemory] == 1024 && v[api.ColGPUs] == 1 && v[api.ColGPUBusy] > 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: %+v", err, w)
		}
	}
}

// A machine that has a card of NVIDIA's, or of others, and no driver yet.
func plantCard(t *testing.T, root, vendor, class string) {
	t.Helper()
	plantFile(t, filepath.Join(root, "sys/bus/pci/devices/0000:3b:00.0/vendor"), vendor+"\n")
	plantFile(t, filepath.Join(root, "sys/bus/pci/devices/0000:3b:00.0/class"), class+"\n")
	plantFile(t, filepath.Join(root, "proc/stat"), "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n")
}

func TestOnlyACardOfNVIDIAsIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vendor, class string
		waits         bool
	}{
		"a card for a screen": {"0x10de", "0x030000", true}, "one for computing": {"0x10de", "0x030200", true},
		"its sound": {"0x10de", "0x040300", false}, "another's card": {"0x1002", "0x030000", false},
	} {
		dir := t.TempDir()
		plantCard(t, dir, tc.vendor, tc.class)
		g, said := findGPUs(t.Context(), gpuOptions{}, hostfs.Root{}.Below(dir), time.Second, slog.New(slog.DiscardHandler))
		if (g.source != nil) != tc.waits || len(said) != 1 || said[0].Support != api.Unsupported || strings.Contains(said[0].Reason, "no driver yet") != tc.waits {
			t.Errorf("%s: %+v, source %v; want one that waits: %v", name, said, g.source, tc.waits)
		}
	}
}

func TestAProgramThatWasNamedAndIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	_, said := findGPUs(t.Context(), gpuOptions{helper: "/nonexistent/helper"}, hostfs.Root{}.Below(t.TempDir()), time.Second, slog.New(slog.DiscardHandler))
	if len(said) != 1 || said[0].Support != api.Unsupported || !strings.Contains(said[0].Reason, "/nonexistent/helper: no such file") {
		t.Errorf("%+v", said)
	}
}

func TestADriverThatIsLoadedLaterIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		plantCard(t, dir, "0x10de", "0x030200")
		g, _ := findGPUs(t.Context(), gpuOptions{}, hostfs.Root{}.Below(dir), time.Second, slog.New(slog.DiscardHandler))
		if g.source == nil {
			t.Fatal("nothing waits for the driver")
		}
		// The programs that would be asked are not on this machine.
		asked := &fakeBackend{}
		g.source = gpu.NewSource(nil, asked)
		me := &self{with: equipment{gpus: g, about: api.Node{Sources: []api.Source{{Name: "node/cpu", Support: api.Supported}, {Name: "gpu/nvidia"}}}}}
		card := func() api.Source { return me.node(t.Context(), &sampler.Snapshot{}).Sources[1] }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.run(ctx, slog.New(slog.DiscardHandler)) }()
		time.Sleep(time.Hour)
		if got := card(); asked.runs.Load() > 0 || got.Support != api.Unsupported || !strings.Contains(got.Reason, "no driver yet") {
			t.Errorf("%+v, asked %d times without a driver", got, asked.runs.Load())
		}
		plantFile(t, filepath.Join(dir, "proc/driver/nvidia/version"), "1\n")
		time.Sleep(2 * driverAgain)
		n := me.node(t.Context(), &sampler.Snapshot{})
		if got := card(); got.Support != api.Supported || got.Silent || got.Reason != "1 GPUs by fake" || len(n.Sources) != 4 {
			t.Errorf("%+v; want the card that was read, and all else that is said: %+v", got, n.Sources)
		}
		asked.mute.Store(true)
		time.Sleep(time.Minute)
		if got := card(); !got.Silent || got.Reason != "does not answer" {
			t.Errorf("%+v of a card that was not read for a minute", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// fakeBackend reads one card each second.
type fakeBackend struct {
	runs atomic.Int64
	mute atomic.Bool
}

func (b *fakeBackend) Name() string { return "fake" }

func (b *fakeBackend) Run(ctx context.Context, emit func(card.Reading)) error {
	b.runs.Add(1)
	for {
		if !b.mute.Load() {
			joules, watts := 1.0, 100.0
			emit(card.Reading{At: time.Now(), Devices: []card.Device{{UUID: "a", Joules: &joules, Watts: &watts, Processes: &[]card.Process{}}}})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func TestANodeWithoutADriverSaysSo(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("this machine has NVIDIA's driver")
	}
	client, _ := exporter(t)
	about, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range about.Sources {
		if s.Name == "gpu/nvidia" {
			if s.Support != api.Unsupported || !strings.Contains(s.Reason, "driver") {
				t.Errorf("%+v", s)
			}
			return
		}
	}
	t.Errorf("nothing is said about GPUs: %+v", about.Sources)
}
