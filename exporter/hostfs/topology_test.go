package hostfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/exporter/hostfs"
)

func TestACPUIsInTheSocketThatTheKernelSays(t *testing.T) {
	t.Parallel()
	root := hostfs.Root{SysFS: t.TempDir()}
	for cpu, text := range map[string]string{"cpu0": "0\n", "cpu1": "1\n", "cpu2": "-1\n", "cpu3": "first\n"} {
		dir := root.Sys("devices", "system", "cpu", cpu, "topology")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"physical_package_id", "die_id"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for cpu, want := range []int{0, 1, 0, 0, 0} { // the last one is offline
		if pkg, die := root.Package(cpu), root.Die(cpu); pkg != want || die != want {
			t.Errorf("CPU %d is in socket %d and die %d, want %d of both", cpu, pkg, die, want)
		}
	}
}
