package nomad_test

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/nomadagent"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait most of the time: for epochs, graces and restarts.
	if err := flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))); err != nil {
		println(err.Error())
		os.Exit(2)
	}
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) //nolint:gosec // made by program
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		// Jobs as large as the node need one that no one else uses.
		var node sync.RWMutex
		drivertest.Run(t, func(t *testing.T) drivertest.Harness {
			t.Helper()
			if strings.Contains(t.Name(), "do_not_fit_beside_each_other") || strings.Contains(t.Name(), "_room_") {
				node.Lock()
				t.Cleanup(node.Unlock)
			} else {
				node.RLock()
				t.Cleanup(node.RUnlock)
			}
			crash := &drivertest.Crash{}
			h := newBench(t, a.Client(t), func(c *nomad.Config) { c.AfterStep = crash.At }).harness(t)
			h.Crash = crash
			return h
		})
	})
}
