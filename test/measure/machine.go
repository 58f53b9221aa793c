package measure

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// Machine is where it was measured.
type Machine struct {
	CPU               string
	Cores             int
	Load, LoadAfter   string // of one, five and fifteen minutes
	Kernel, GoVersion string
}

// ThisMachine describes it as it is now.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Load: Load(), GoVersion: runtime.Version(), CPU: "unknown"}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if all, err := fs.CPUInfo(); err == nil && len(all) > 0 {
			m.CPU = cmp.Or(all[0].ModelName, m.CPU)
		}
	}
	return m
}

// Heading are two lines that say on which machine something was measured.
func (m Machine) Heading() string {
	return fmt.Sprintf("%d cores of %s, Linux %s, %s\nload average before %s, after %s",
		m.Cores, m.CPU, m.Kernel, m.GoVersion, m.Load, m.LoadAfter)
}

// Load is the load average of one, five and fifteen minutes.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(text))
	return strings.Join(f[:min(3, len(f))], " ")
}
