// Package server answers the exporter's questions over HTTP: jobs, samples and
// progress marks on a Unix socket, metrics there and on loopback.
//
// In come requests whose peer credentials the kernel vouches for; out goes what the
// caller may see: users their own jobs, root all. A progress report names no job:
// its sender's cgroup or environment does. The package measures nothing and waits
// for nothing but the sampler's acceptance of a mark.
package server
