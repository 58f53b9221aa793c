package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

// Others who take all connections that they get, idle or slow, do not keep out the owner
// of a job or the operator, and the sampler samples on.
func TestOwnersAndOperatorsGetInBesideACrowd(t *testing.T) {
	const owner, id = 64101, "crowded"
	dirs := leaves(t, id+".1")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(peercredtest.Dir(t), "s")
	client := exporterOn(t, socket, "--web.listen-address="+address, "--log.level=error")
	job := exec.CommandContext(t.Context(), "sleep", "600")
	job.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = job.Process.Kill(), job.Wait() })
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(job.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	samples := func() int {
		w, _ := client.Window(t.Context(), id, 1, 0) // it may not have been seen yet
		if w.Job.UID != owner {
			return 0
		}
		return len(w.Samples)
	}
	eventually(t, "the job is seen", func() bool { return samples() > 0 })

	others := []uint32{64111, 64112, 64113, 64114}
	onSocket := peercredtest.Surround(t, "unix", socket, 125, 50, others...)
	onTCP := peercredtest.Surround(t, "tcp", address, 125, 50, others...)
	onSocket.Settle(t, 512)
	onTCP.Settle(t, 512)
	before := samples()
	for range 3 {
		if text := peercredtest.Answers(t, owner, "unix", socket, http.MethodGet, api.PathJobs, http.StatusOK); !strings.Contains(text, id) {
			t.Errorf("the owner sees %s", text)
		}
		peercredtest.Answers(t, 0, "unix", socket, http.MethodGet, api.PathNode, http.StatusOK)
		if text := peercredtest.Answers(t, 0, "tcp", address, http.MethodGet, "/metrics", http.StatusOK); !strings.Contains(text, id) {
			t.Error("the operator's metrics do not have the job")
		}
	}
	eventually(t, "further samples come", func() bool { return samples() > before+3 })
}
