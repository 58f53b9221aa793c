package sim_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/test/sim"
)

// The suite calls t.Run and t.Parallel, which a bubble does not allow, so it
// runs in real time.
func TestConformance(t *testing.T) {
	t.Parallel()
	node := sim.NodeSpec{Name: "node-1", Cores: 4, MemoryBytes: 8 << 30}
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		crash := &drivertest.Crash{}
		c, err := sim.New(sim.Config{Nodes: []sim.NodeSpec{node}, AfterStep: crash.At})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return drivertest.Harness{
			Driver: c, Job: conformanceJob,
			Checkpoint: driver.Checkpoint{Signal: "SIGUSR1", Exit: 85},
			Cores:      node.Cores, MemoryBytes: node.MemoryBytes,
			// What a crash takes is the copy of the record that was not saved.
			Crash: crash, Reopen: func(*testing.T) driver.Driver { return c },
		}
	})
}

// conformanceJob writes the job file of an abstract behaviour.
func conformanceJob(t *testing.T, b drivertest.Behaviour) driver.Spec {
	options := []string{
		"job-name=" + cmp.Or(b.Name, "conformance"),
		fmt.Sprintf("cpus-per-task=%d", max(1, b.Cores)),
	}
	if b.MemoryBytes > 0 {
		options = append(options, fmt.Sprintf("mem=%dM", b.MemoryBytes>>20))
	}
	if b.TimeLimit > 0 {
		options = append(options, "time="+time.Time{}.Add(b.TimeLimit).Format("15:04:05"))
	}
	words := []string{
		fmt.Sprintf("epochs=%d", b.Epochs),
		fmt.Sprintf("seconds=%g", max(1e-6, b.Epoch.Seconds())),
		fmt.Sprintf("memory=%d", b.UseMemory),
		fmt.Sprintf("exit=%d", b.ExitCode),
		fmt.Sprintf("ignore_signal=%t", b.IgnoreSignal),
		fmt.Sprintf("missing=%t", b.MissingCommand),
	}
	if b.Saves {
		words = append(words, "checkpoint=1ms")
	}
	switch {
	case b.SaysSaved:
		words = append(words, "checkpoint_exit=none")
	case b.LeavesWith != 0:
		words = append(words, fmt.Sprintf("checkpoint_exit=%d", b.LeavesWith))
	}
	if b.ShowSettings {
		words = append(words, "show_settings=true")
	}
	if b.ShowEnv != "" {
		words = append(words, "show_env="+b.ShowEnv)
	}
	s := spec(strings.Join(options, " "), strings.Join(words, " "))
	s.Owner = cmp.Or(b.Owner, userName(t))
	return s
}
