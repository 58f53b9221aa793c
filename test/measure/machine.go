package measure

import (
	"os"
	"runtime"
	"strings"
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
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
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
