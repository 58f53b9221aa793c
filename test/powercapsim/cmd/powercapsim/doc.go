// Command powercapsim keeps a powercap tree that follows this machine's real load:
//
//	powercapsim --dir /tmp/sys --idle-watts 20 --max-watts 100
//	pitchpipe-exporter --path.sysfs /tmp/sys --path.cgroupfs /sys/fs/cgroup
//
// The directory becomes a sysfs of nothing but class/powercap and the list of CPUs.
package main
