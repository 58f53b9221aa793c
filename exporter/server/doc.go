// Package server answers the exporter's questions over HTTP: jobs, samples and
// progress marks on a Unix socket, metrics there and on loopback, and where it is
// asked for the same over TLS.
//
// In come requests whose peer credentials the kernel vouches for, or whose
// certificate an authority; out goes what the caller may see: users their own jobs,
// root and whoever the administrator names all. The metrics tell everybody
// of the node, and of those jobs that he may see; who asks over loopback, the kernel
// knows as well. No user can take the room of the others: connections and requests in a
// second are bounded for each, and who owns a job that runs has connections beside those.
// A progress report names no job: its sender's cgroup or environment does, as long as the
// process that opened the connection lives. Only who sees all may name a job and report on
// its behalf, which is the one report that TLS takes. The package measures nothing and
// waits for nothing but the sampler's acceptance of a mark.
package server
