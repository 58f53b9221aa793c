// Package hostfs reads the host: a rooted /proc, /sys and cgroup tree, so that tests run on
// generated trees and a container can read its host.
//
// Input: paths. Output: bytes of bounded size, the cgroup hierarchies that are mounted, and the
// formats that several collectors share. The package never caches and never writes.
package hostfs
