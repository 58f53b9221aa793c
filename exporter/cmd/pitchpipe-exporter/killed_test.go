package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/sampler"
)

// The test binary is an exporter: this variable has its arguments, one a line.
const exporterRole = "PITCHPIPE_EXPORTER_TEST_ARGUMENTS"

func beExporter(args string) error {
	cmd := command()
	cmd.SetArgs(strings.Split(args, "\n"))
	return cmd.ExecuteContext(context.Background())
}

// machineWithAJob is the root of a machine where local/killed runs.
func machineWithAJob(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cgroup := filepath.Join(dir, "sys/fs/cgroup/pitchpipe/killed.1")
	for name, text := range map[string]string{
		filepath.Join(dir, "proc/stat"):                            "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n",
		filepath.Join(dir, "proc/loadavg"):                         "0 0 0 1/1 1\n",
		filepath.Join(dir, "sys/fs/cgroup/cgroup.controllers"):     "cpu memory cpuset\n",
		filepath.Join(dir, "sys/devices/system/cpu/online"):        "0\n",
		filepath.Join(cgroup, "cpu.stat"):                          "usage_usec 7000000\nuser_usec 4000000\nsystem_usec 3000000\n",
		filepath.Join(cgroup, "cpuset.cpus.effective"):             "0\n",
		filepath.Join(cgroup, "cgroup.procs"):                      "4000000\n",
		filepath.Join(dir, "sys/fs/cgroup/pitchpipe/cgroup.procs"): "",
	} {
		plantFile(t, name, text)
	}
	return dir
}

// Without a journal too: the state is saved when the last sample has been taken, and not before.
func TestAnExporterThatIsStoppedKeepsItsLastSample(t *testing.T) {
	dir := machineWithAJob(t)
	state, socket := filepath.Join(dir, "state.json"), filepath.Join(t.TempDir(), "s")
	plantFile(t, filepath.Join(state+".journal", "is"), "a folder")
	cmd := command()
	cmd.SetArgs([]string{"--socket", socket, "--web.listen-address=", "--path.rootfs", dir, "--state.file", state, "--sampling.interval=30s", "--log.level=error"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	client := api.NewClient(socket)
	defer client.Close()
	eventually(t, "the job is seen", func() bool { jobs, err := client.Jobs(t.Context()); return err == nil && len(jobs) == 1 })
	time.Sleep(300 * time.Millisecond)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s, err := sampler.LoadState(state); err != nil || len(s.Jobs) != 1 || s.Jobs[0].Joules.Total() < 1 {
		t.Errorf("%+v, %v; want the joules of the time between the first and the last sample", s.Jobs, err)
	}
}

// An exporter that is killed, as one that the machine had no memory for, has shown figures
// that the next one goes on from: a counter that falls looks like one that begins at 0.
func TestAnExporterThatIsKilledSetsNoJobsJoulesBack(t *testing.T) {
	dir := machineWithAJob(t)
	const series = `pitchpipe_job_energy_joules_total{manager="local",job_id="killed"`
	last := 0.0
	for range 3 {
		socket := filepath.Join(t.TempDir(), "s")
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), exporterRole+"="+strings.Join([]string{
			"--socket", socket, "--web.listen-address=", "--path.rootfs", dir, "--state.file", filepath.Join(dir, "state.json"),
			"--sampling.interval=100ms", "--sampling.discover=20ms", "--log.level=error",
		}, "\n"))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		client := api.NewClient(socket)
		eventually(t, "it answers", func() bool { _, err := client.Node(t.Context()); return err == nil })
		first := 0.0
		eventually(t, "the job's joules are shown", func() bool { first = figure(t, socket, series); return first > 0 })
		if first < last {
			t.Errorf("%v J after the %v J that the one before had shown", first, last)
		}
		eventually(t, "they grow", func() bool { last = figure(t, socket, series); return last > first+3 })
		client.Close()
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
	}
}
