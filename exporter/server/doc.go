// Package server answers the exporter's questions over HTTP: jobs, samples and
// progress marks on a Unix socket, metrics there and on loopback, and where it is
// asked for all but the marks over TLS.
//
// In come requests whose peer credentials the kernel vouches for, or whose
// certificate an authority; out goes what the caller may see: users their own jobs,
// root and whoever the administrator names all. The metrics are for everybody who
// reaches them, and tell of all jobs. A progress report names no job: its
// sender's cgroup or environment does. The package measures nothing and waits for
// nothing but the sampler's acceptance of a mark.
package server
