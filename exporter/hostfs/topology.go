package hostfs

import (
	"strconv"
	"strings"
)

// Package is the number of the socket that a CPU is in; 0 where the kernel does not say,
// as for a CPU that is offline.
func (r Root) Package(cpu int) int {
	data, err := Read(r.Sys("devices", "system", "cpu", "cpu"+strconv.Itoa(cpu), "topology", "physical_package_id"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		return 0 // some machines say -1
	}
	return n
}
