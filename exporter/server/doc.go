// Package server answers the exporter's questions over HTTP: jobs, samples and progress
// marks on a Unix socket, metrics there and on loopback, and on request the same over TLS.
//
// The input is requests with the kernel's peer credentials, or with a certificate; the
// output is what that caller may see: users their own jobs, root and the administrator's
// readers all. Connections and requests of each user are bounded, so that no user can keep
// the others out. A progress report names no job. The cgroup or environment of its sender
// does, as long as the process that opened the connection lives. Only a caller who sees all
// jobs may name one and report on its behalf, which is the one kind of report that TLS takes.
//
// The package never measures anything, and waits for nothing but the sampler's acceptance
// of a mark.
package server
