// Package hostfs is where the exporter reads the host: a rooted /proc, /sys and
// cgroup tree, so that tests run on generated trees and a container can read its
// host.
//
// In come paths; out come bytes of bounded size, the cgroup hierarchies that are
// mounted, and the few formats that several collectors share (keyed counters, CPU
// lists, pressure). Nothing is cached and nothing is ever written.
package hostfs
