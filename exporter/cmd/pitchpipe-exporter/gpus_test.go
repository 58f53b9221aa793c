package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/api"
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
			if s.Support != api.Unsupported || !strings.Contains(s.Reason, "no NVIDIA driver") {
				t.Errorf("%+v", s)
			}
			return
		}
	}
	t.Errorf("nothing is said about GPUs: %+v", about.Sources)
}
