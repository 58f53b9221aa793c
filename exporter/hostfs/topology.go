package hostfs

import (
	"strconv"
	"strings"
)

// Package is the number of the socket that a CPU is in; 0 where the kernel does not say,
// as for a CPU that is offline.
func (r Root) Package(cpu int) int { return r.topology(cpu, "physical_package_id") }

// Die is the number of the die within its socket that a CPU is in; 0 where the kernel does
// not say, as those before 5.3.
func (r Root) Die(cpu int) int { return r.topology(cpu, "die_id") }

func (r Root) topology(cpu int, name string) int {
	data, err := Read(r.Sys("devices", "system", "cpu", "cpu"+strconv.Itoa(cpu), "topology", name))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		return 0 // some machines say -1
	}
	return n
}
