package cgroup

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// OwnCPUs lists the CPUs that this process may use.
func OwnCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("CPUs of this process: %w", err)
	}
	var out []int
	for cpu := range 64 * len(set) {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out, nil
}

// Bind binds a process to CPUs, none: to no one in particular. Of process 0, which is this
// one, it binds the thread that calls it.
func Bind(pid int, cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		return fmt.Errorf("binding to CPUs %v: %w", cpus, err)
	}
	return nil
}
