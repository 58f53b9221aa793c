package energy

import (
	"strings"

	"pitchpipe/exporter/hostfs"
)

// packageScope reports whether RAPL counts by package even where the kernel reads it once
// for each die. Intel's processors of several dies count by die. AMD's, and Hygon's, have
// one counter for the package, which some kernels (6.9 and a few after it) show once for
// each group of cores that they call a die: the sum would be several times the truth.
func packageScope(root hostfs.Root) bool {
	data, err := hostfs.Read(root.Proc("cpuinfo"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "vendor_id" {
			vendor := strings.TrimSpace(value)
			return vendor == "AuthenticAMD" || vendor == "HygonGenuine"
		}
	}
	return false
}
